#!/usr/bin/env bash
# Creates build/venv with PyTorch 2.13 (CPU) for the interop tests and the
# benchmarks, with a kernel of Jupyter for the test of notebooks, and with NCCL, if the
# CUDA Toolkit 13 is there, for the plug-in librankrun_nccl.so. With --newest, creates build/venv-newest with PyTorch 2.14.1,
# which needs 5 GB, for interop tests. With --tools, creates build/venv-tools with the tools
# above torchrun that tests/tools runs, which needs 2 GB. Installs nothing twice.
# Usage: scripts/venv.sh [--newest | --tools]
set -eu
cd "$(dirname "$0")/.."
case ${1:-} in
  "") venv=build/venv ;;
  --newest) venv=build/venv-newest ;;
  --tools) venv=build/venv-tools ;;
  *) echo "usage: scripts/venv.sh [--newest | --tools]" >&2; exit 2 ;;
esac
has_torch() { [ -x $venv/bin/python ] && $venv/bin/python -c 'import torch' 2>/dev/null; }
has_nccl() { compgen -G "$venv/lib/python3*/site-packages/nvidia/nccl/include/nccl.h" >/dev/null; }
has_expecttest() { $venv/bin/python -c 'import expecttest' 2>/dev/null; }
has_notebooks() { $venv/bin/python -c 'import cloudpickle, ipykernel, nbclient' 2>/dev/null; }
# The package has NCCL for CUDA 13.
needs_nccl() {
  PATH=$PATH:/usr/local/cuda/bin nvcc --version 2>/dev/null | grep -q 'release 13\.'
}

make_venv() {
  if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
    scripts/setup.sh --packages-only python3 python3-venv
  fi
  mkdir -p build
  python3 -m venv $venv
}

# This version has no build for CPUs only. Its import needs libraries of CUDA, but neither
# Triton nor the bindings for Python, which are a gigabyte.
install_newest() {
  echo "== installing PyTorch 2.14.1 into $venv"
  $venv/bin/pip install --quiet --no-deps torch==2.14.1
  local parts=cublas,cudart,cufft,cufile,cupti,curand,cusolver,cusparse,nvjitlink,nvrtc
  $venv/bin/pip install --quiet "cuda-toolkit[$parts]==13.0.3" nvidia-cudnn-cu13==9.24.0.43 \
    nvidia-cusparselt-cu13==0.8.1 nvidia-nccl-cu13==2.30.7 nvidia-nvshmem-cu13==3.4.5 \
    filelock typing-extensions sympy networkx jinja2 fsspec numpy 2>&1 |
    grep -v 'torch 2.14.1 requires\|dependency resolver' >&2 || true
}

# torchtune and TorchTNT are no longer developed: they need an older torchao and setuptools. Each
# tool for itself, because they disagree on versions of packages that the tests do not use.
install_tools() {
  local tool
  echo "== installing tools above torchrun into $venv"
  $venv/bin/pip install --quiet torch==2.13.0 numpy 'setuptools<81' || return
  for tool in accelerate==1.15.0 lightning==2.6.6 transformers==5.24.0 trl==1.16.0 \
    'torchtune==0.6.1 torchao==0.9.0' torchx==0.7.0 torchtnt==0.2.4 torchft==0.2.0 deepspeed==0.19.8; do
    DS_BUILD_OPS=0 $venv/bin/pip install --quiet $tool || echo "venv.sh: no $tool: its test will be skipped" >&2
  done
}

if [ $venv = build/venv-tools ]; then
  if [ -e $venv/complete ]; then exit 0; fi
  make_venv
  install_tools
  touch $venv/complete
  exit
fi
# PyTorch's own tests need it.
install_expecttest() {
  has_expecttest || $venv/bin/pip install --quiet expecttest ||
    echo "venv.sh: no expecttest: tests of the backend for PyTorch will be skipped" >&2
}

if [ $venv = build/venv-newest ]; then
  if ! has_torch; then
    make_venv
    install_newest
  fi
  has_torch
  install_expecttest
  exit
fi
if ! has_torch; then
  make_venv
  echo "== installing PyTorch 2.13.0 into $venv"
  $venv/bin/pip install --quiet torch==2.13.0 numpy
fi
install_expecttest
if ! has_notebooks; then
  $venv/bin/pip install --quiet nbclient ipykernel cloudpickle ||
    echo "venv.sh: no nbclient and ipykernel: the test of notebooks will be skipped" >&2
fi
if needs_nccl && ! has_nccl; then
  echo "== installing NCCL 2.32.3 into $venv"
  $venv/bin/pip install --quiet --no-deps nvidia-nccl-cu13==2.32.3 ||
    echo "venv.sh: no NCCL: librankrun_nccl.so will not be built" >&2
fi
