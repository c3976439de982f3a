#!/usr/bin/env bash
# Measures rankctl on a running job of 64 workers: how long status, why and ps
# take, beside ps -ef, and what asking ten times a second costs the agent.
# Usage: bench/rankctl.sh [--quick]
set -eu
cd "$(dirname "$0")/.."
bin=build/release/bin
rounds=5 runs=20 load= seconds=5
if [ "${1:-}" = --quick ]; then
  rounds=1 runs=2 load=--any-load seconds=1
fi

folder=$(mktemp -d)
export RANKRUN_SOCKET_DIR=$folder/sockets
$bin/rankrun -n 64 --no-python sleep 600 &
guardian=$!
trap 'kill -TERM $guardian 2>/dev/null; wait $guardian 2>/dev/null || true; rm -rf "$folder"' EXIT
until [ "$($bin/rankctl status 2>/dev/null | grep -c sleeping)" = 64 ]; do sleep 0.1; done

# Each command gets a shell, which drops its output.
printf '#!/bin/sh\nexec "$@" >/dev/null\n' >"$folder/quiet"
chmod +x "$folder/quiet"

echo "== a job of 64 workers, $rounds rounds of $runs runs"
$bin/launch_bench --rounds $rounds --runs $runs $load \
  ps-ef "$folder/quiet ps -ef" \
  status "$folder/quiet $bin/rankctl status" \
  why "$folder/quiet $bin/rankctl why" \
  ps "$folder/quiet $bin/rankctl ps"

# User and system time of the agent, in clock ticks.
agent=$(cat /proc/$guardian/task/$guardian/children)
agent=${agent%% *}
ticks() { awk '{print $14 + $15}' "/proc/$agent/stat"; }
before=$(ticks)
for _ in $(seq $((seconds * 10))); do
  $bin/rankctl status >/dev/null
  sleep 0.1
done
used=$(($(ticks) - before))
echo "== the agent, asked $((seconds * 10)) times: $((used * 1000 / $(getconf CLK_TCK) / (seconds * 10))) ms each"
