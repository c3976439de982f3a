#!/usr/bin/env bash
# Creates build/venv with PyTorch 2.13 (CPU) for the interop tests and the
# benchmarks, and with NCCL, if the CUDA Toolkit 13 is there, for the plug-in
# librankrun_nccl.so. Does nothing if they are there.
set -eu
cd "$(dirname "$0")/.."
venv=build/venv
has_torch() { [ -x $venv/bin/python ] && $venv/bin/python -c 'import torch' 2>/dev/null; }
has_nccl() { compgen -G "$venv/lib/python3*/site-packages/nvidia/nccl/include/nccl.h" >/dev/null; }
# The package has NCCL for CUDA 13.
needs_nccl() {
  PATH=$PATH:/usr/local/cuda/bin nvcc --version 2>/dev/null | grep -q 'release 13\.'
}
if has_torch && { ! needs_nccl || has_nccl; }; then exit 0; fi
if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
  scripts/setup.sh --packages-only
  echo "== installing python3-venv"
  [ "$(id -u)" -eq 0 ] && as_root=() || as_root=(sudo)
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends python3 python3-venv
fi
mkdir -p build
if ! has_torch; then
  echo "== installing PyTorch 2.13.0 into $venv"
  python3 -m venv $venv
  $venv/bin/pip install --quiet torch==2.13.0 numpy
fi
if needs_nccl && ! has_nccl; then
  echo "== installing NCCL 2.32.3 into $venv"
  $venv/bin/pip install --quiet --no-deps nvidia-nccl-cu13==2.32.3 ||
    echo "venv.sh: no NCCL: librankrun_nccl.so will not be built" >&2
fi
