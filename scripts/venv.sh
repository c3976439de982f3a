#!/usr/bin/env bash
# Creates build/venv with PyTorch 2.13 (CPU) for the interop tests and the
# benchmarks. Does nothing if it exists.
set -eu
cd "$(dirname "$0")/.."
venv=build/venv
if [ -x $venv/bin/python ] && $venv/bin/python -c 'import torch' 2>/dev/null; then exit 0; fi
if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
  scripts/setup.sh --packages-only
  echo "== installing python3-venv"
  [ "$(id -u)" -eq 0 ] && as_root=() || as_root=(sudo)
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends python3 python3-venv
fi
echo "== installing PyTorch 2.13.0 into $venv"
mkdir -p build
python3 -m venv $venv
$venv/bin/pip install --quiet torch==2.13.0 numpy
