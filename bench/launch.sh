#!/usr/bin/env bash
# Measures the start of 4 and 64 x /bin/true by rankrun and by a bare
# vfork+exec+wait loop. For 4 it also measures the installed peers (torchrun in
# the virtual environment, mpirun). Then measures the memory of rankrun's two
# processes.
# Usage: bench/launch.sh [--quick]
set -eu
cd "$(dirname "$0")/.."
bin=build/release/bin
export OMP_NUM_THREADS=1  # otherwise torchrun prints a warning
rounds=5 runs=50 peer_rounds=5 peer_runs=5 load=
if [ "${1:-}" = --quick ]; then
  rounds=1 runs=5 peer_rounds=1 peer_runs=1 load=--any-load
fi

for n in 4 64; do
  echo "== start of $n x /bin/true, $rounds rounds of $runs runs"
  $bin/launch_bench --rounds $rounds --runs $runs $load \
    bare "$bin/bare_loop $n /bin/true" \
    rankrun "$bin/rankrun -n $n /bin/true"
done

# Peers take seconds per run, so they and rankrun get fewer runs here.
peers=()
torchrun=${RANKRUN_TEST_VENV:-build/venv}/bin/torchrun
[ -x "$torchrun" ] && peers+=(torchrun "$torchrun --nproc-per-node 4 --no-python /bin/true")
if command -v mpirun >/dev/null; then
  peers+=(mpirun "$(command -v mpirun) --allow-run-as-root --oversubscribe -n 4 /bin/true")
fi
if [ ${#peers[@]} -gt 0 ]; then
  echo "== beside peers, $peer_rounds rounds of $peer_runs runs, at most 20 s each"
  $bin/launch_bench --rounds $peer_rounds --runs $peer_runs --limit 20 $load \
    rankrun "$bin/rankrun -n 4 /bin/true" "${peers[@]}"
fi

echo "== memory, 1 s after the start of 4 x sleep"
$bin/rankrun -n 4 --no-python sleep 60 &
guardian=$!
sleep 1
agent=$(cat /proc/$guardian/task/$guardian/children)
sum=0
for pid in $guardian $agent; do
  rss=$(awk '/^VmRSS/ {print $2}' /proc/"$pid"/status)
  echo "  $(tr '\0' ' ' </proc/"$pid"/cmdline): VmRSS $rss KiB"
  sum=$((sum + rss))
done
kill -TERM $guardian
wait $guardian 2>/dev/null || true
echo "  guardian and agent together: $sum KiB"
