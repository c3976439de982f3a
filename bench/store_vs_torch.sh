#!/usr/bin/env bash
# The store server beside PyTorch's, and beside a server that only echoes.
# Usage: bench/store_vs_torch.sh [--quick] [--any-load]
set -eu
cd "$(dirname "$0")/.."
exec python3 bench/store_vs_torch.py "$@"
