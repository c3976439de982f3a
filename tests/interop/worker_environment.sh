#!/bin/sh
# worker_environment.sh RANKRUN VENV: a worker of rankrun has the variables that
# one of torchrun has, with the same values where they are not the launcher's own.
rankrun=$1 venv=$2
program=$(dirname "$0")/worker_environment.py
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export PYTHON_EXEC="$venv/bin/python"
unset OMP_NUM_THREADS CUDA_VISIBLE_DEVICES

compare() {
  "$(dirname "$0")/run.sh" "$rankrun" "$venv" "$@" "$program" show "$folder/ours" || exit $?
  "$venv/bin/torchrun" "$@" "$program" show "$folder/theirs" || exit $?
  "$venv/bin/python" "$program" compare "$folder/ours" "$folder/theirs" || exit $?
}

compare --nproc-per-node 1
compare --nproc-per-node 2 --max-restarts 3
CUDA_VISIBLE_DEVICES=4,5 OMP_NUM_THREADS=3 TORCH_NCCL_ASYNC_ERROR_HANDLING=0 \
  compare --nproc-per-node 2 --master-addr 127.0.0.1 --master-port 0
