#!/usr/bin/env bash
# AllReduce of float32 by rankrun's shm beside Open MPI, PyTorch's Gloo and
# Debian's, and beside what memory allows.
# Usage: bench/allreduce_vs_peers.sh [--quick] [--any-load]
set -eu
cd "$(dirname "$0")/.."
exec python3 bench/allreduce_vs_peers.py "$@"
