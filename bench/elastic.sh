#!/usr/bin/env bash
# Measures how long several nodes, here all on this machine, need to detect a
# loss and to run again, compared with torchrun if it is in the virtual
# environment. Then measures the cost of a thousand nodes at their coordinator.
# Usage: bench/elastic.sh [--quick]
set -eu -o pipefail
cd "$(dirname "$0")/.."
bin=build/release/bin
export OMP_NUM_THREADS=1  # otherwise torchrun prints a warning
rounds=11 peer_rounds=3 limit=60
[ "${1:-}" = --quick ] && rounds=1 peer_rounds=1 limit=5
torchrun=${RANKRUN_TEST_VENV:-build/venv}/bin/torchrun
[ -x "$torchrun" ] || torchrun=
echo "== losses and arrivals, medians of $rounds; torchrun: $peer_rounds, at most $limit s each"
$bin/elastic_bench --rounds $rounds --peer-rounds $peer_rounds --limit $limit \
  $bin/elastic_worker $bin/rankrun ${torchrun:+"$torchrun"}

echo "== agents at one coordinator"
# All agents share one address, and an address may have only a limited number of
# new connections, so some agents retry.
$bin/control_scale 2>&1 | grep -v warning:
