#!/usr/bin/env bash
# Compares AllReduce of float32 by rankrun with Open MPI, PyTorch's Gloo and Debian's
# Gloo, and with limits of the machine. With --transport shm, the default, ranks of
# rankrun and of Open MPI exchange data through memory; the limits are the bandwidth of
# the memory, and a bare exchange of the data. With --transport tcp all ranks use TCP over
# loopback; the limits are a round trip of one message, and two streams at once.
# --loaded: another process keeps a core busy. --before: the bin folder of an earlier
# build, which takes its turn, too.
# Usage: bench/allreduce_vs_peers.sh [--quick] [--any-load] [--transport shm|tcp]
#          [--loaded] [--before FOLDER]
set -eu
cd "$(dirname "$0")/.."
PYTHONPATH=bench${PYTHONPATH:+:$PYTHONPATH} exec python3 bench/allreduce/allreduce_vs_peers.py "$@"
