#!/usr/bin/env bash
# Compares the store server with PyTorch's and with a server that only echoes.
# Usage: bench/store_vs_torch.sh [--quick] [--any-load]
set -eu
cd "$(dirname "$0")/.."
PYTHONPATH=bench${PYTHONPATH:+:$PYTHONPATH} exec python3 bench/store/store_vs_torch.py "$@"
