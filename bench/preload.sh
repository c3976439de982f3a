#!/usr/bin/env bash
# Compares the start and the restarts of a PyTorch program under torchrun, rankrun, and rankrun
# with --preload. Usage: bench/preload.sh [--quick] [--ranks N] [--rounds N]
set -eu
cd "$(dirname "$0")/.."
venv=${RANKRUN_TEST_VENV:-build/venv}
if [ ! -x "$venv/bin/torchrun" ]; then
  echo "bench/preload.sh: no torchrun in $venv (scripts/venv.sh makes it)" >&2
  exit 77
fi
exec python3 bench/preload/compare.py --venv "$venv" --rankrun build/release/bin/rankrun "$@"
