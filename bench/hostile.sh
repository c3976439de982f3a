#!/usr/bin/env bash
# Measures restarts and the store of a job while 500 strangers attack its port: silent
# ones, slow ones, garbage, wrong secrets and wrong versions. Target: within twice of
# the quiet job. Usage: bench/hostile.sh [--quick]
set -eu
cd "$(dirname "$0")/.."
restarts=30
[ "${1:-}" = --quick ] && restarts=3
exec python3 bench/hostile/hostile.py build/release/bin $restarts
