#!/usr/bin/env bash
# Compares AllReduce of float32 by rankrun's shm with Open MPI, PyTorch's Gloo,
# Debian's Gloo, and the bound of the memory.
# Usage: bench/allreduce_vs_peers.sh [--quick] [--any-load]
set -eu
cd "$(dirname "$0")/.."
PYTHONPATH=bench${PYTHONPATH:+:$PYTHONPATH} exec python3 bench/allreduce/allreduce_vs_peers.py "$@"
