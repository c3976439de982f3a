#!/usr/bin/env bash
# Compares AllReduce of float32 by rankrun with Open MPI, PyTorch's Gloo and Debian's
# Gloo, and with a limit of the machine. With --transport shm, the default, ranks of
# rankrun and of Open MPI exchange data through memory, and the limit is the bandwidth
# of the memory. With --transport tcp all ranks use TCP over loopback, and the limit is
# a round trip of one message.
# Usage: bench/allreduce_vs_peers.sh [--quick] [--any-load] [--transport shm|tcp]
set -eu
cd "$(dirname "$0")/.."
PYTHONPATH=bench${PYTHONPATH:+:$PYTHONPATH} exec python3 bench/allreduce/allreduce_vs_peers.py "$@"
