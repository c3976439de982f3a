#!/usr/bin/env bash
# Compares the backends rankrun and gloo of torch.distributed: all_reduce, dispatch of a call, steps
# of DistributedDataParallel. Usage: bench/pytorch.sh [--quick] [--any-load] [--rounds N]
# [--newest: PyTorch of build/venv-newest]
set -eu
cd "$(dirname "$0")/.."
venv=${RANKRUN_TEST_VENV:-build/venv}
packages=${RANKRUN_TEST_PACKAGES:-build/release/site-packages}
for word in "$@"; do [ "$word" != --newest ] || venv=build/venv-newest; done
if ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
  echo "bench/pytorch.sh: no PyTorch in $venv (scripts/venv.sh [--newest] installs it)" >&2
  exit 77
fi
if [ ! -e "$packages/rankrun/_native.abi3.so" ]; then
  echo "bench/pytorch.sh: no rankrun._native in $packages (scripts/setup.sh builds it)" >&2
  exit 77
fi
export PYTHONPATH=$packages PYTHON_EXEC=$venv/bin/python
exec "$venv/bin/python" bench/pytorch/compare.py "$@"
