#!/usr/bin/env bash
# Measures a restart on one node. Usage: bench/restart.sh [RESTARTS]
set -eu
cd "$(dirname "$0")/.."
bin=build/release/bin
exec $bin/restart_bench $bin/rankrun $bin/restart_worker "${1:-30}"
