#!/usr/bin/env bash
# Measures InitDeviceMesh beside PyTorch's init_device_mesh, in a job of ROWS x COLUMNS
# ranks on this host. Prints seconds per mesh. PyTorch needs 200 MiB per rank, and is left
# out without build/venv (scripts/venv.sh).
# Usage: bench/mesh.sh [ROWS COLUMNS [MESHES]]
set -eu
cd "$(dirname "$0")/.."
bin=build/release/bin
rows=${1:-8} columns=${2:-8} meshes=${3:-5}
ranks=$((rows * columns))
export OMP_NUM_THREADS=1
for backend in shm tcp gloo; do
  echo "rankrun, $backend:" $(RANKRUN_BACKEND=$backend $bin/rankrun -n $ranks --no-python \
    $bin/mesh_rankrun "$rows" "$columns" "$meshes" | sed 's/^\[0\] //')
done
if [ -x build/venv/bin/python ]; then
  echo "PyTorch, gloo:" $($bin/rankrun -n $ranks build/venv/bin/python bench/mesh/mesh_torch.py \
    "$rows" "$columns" "$meshes" 2> /dev/null | sed 's/^\[0\] //')
fi
