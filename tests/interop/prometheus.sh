#!/usr/bin/env bash
# A real Prometheus scrapes a running job, and its query API returns the job's values.
# Usage: prometheus.sh RANKRUN     77: Prometheus is not installed
set -u
rankrun=$1
PATH=$PATH:/usr/sbin
for program in prometheus promtool python3; do
  command -v $program >/dev/null || { echo "skipped: there is no $program"; exit 77; }
done
folder=$(mktemp -d)
job= server=
cleanup() {
  for pid in $job $server; do kill "$pid" 2>/dev/null; done
  wait
  rm -rf "$folder"
}
trap cleanup EXIT
fail() { echo "$*"; cat "$folder/err" "$folder/prometheus.log"; exit 1; }

# Returns a body by HTTP; fails if nothing listens.
get() { python3 -c 'import sys, urllib.request as r
print(r.urlopen(sys.argv[1], timeout=5).read().decode(), end="")' "$1" 2>/dev/null; }
# Repeats a command until it succeeds, for a minute at most.
until_ok() {
  local end=$((SECONDS + 60))
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.1
  done
}

# Rank 0 fails once at step 3; the second attempt repeats steps 2 and 3, then waits.
cat >"$folder/worker.sh" <<'EOT'
step=0
[ "$TORCHELASTIC_RESTART_COUNT" = 1 ] && step=1
while [ $step -lt 3 ]; do
  step=$((step + 1))
  echo "$RANK step $step" >"$RANKRUN_SAVE_FIFO"
  sleep 0.2
done
[ "$RANK$TORCHELASTIC_RESTART_COUNT" = 00 ] && exit 3
while [ ! -e "$0.end" ]; do sleep 0.1; done
EOT
XDG_STATE_HOME=$folder OMP_NUM_THREADS=1 "$rankrun" -n 2 --max-restarts 1 --rdzv-id 'job "7"' \
  --metrics 0 sh "$folder/worker.sh" 2>"$folder/err" &
job=$!
until_ok grep -q 'metrics: http' "$folder/err" || fail "rankrun prints no address"
target=$(sed -n 's|.*metrics: http://\(.*\)/metrics|\1|p' "$folder/err")

until_ok get "http://$target/metrics" >"$folder/metrics" || fail "nothing is served"
promtool check metrics <"$folder/metrics" || fail "promtool finds a fault"

cat >"$folder/prometheus.yml" <<EOT
scrape_configs:
  - job_name: rankrun
    scrape_interval: 1s
    static_configs: [{targets: ["$target"]}]
EOT
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus --config.file="$folder/prometheus.yml" --storage.tsdb.path="$folder/data" \
  --web.listen-address="127.0.0.1:$port" >"$folder/prometheus.log" 2>&1 &
server=$!

# Succeeds if the query has the value now.
has() {
  local answer
  answer=$(get "http://127.0.0.1:$port/api/v1/query?query=$(python3 -c \
    'import sys, urllib.parse as p; print(p.quote(sys.argv[1]))' "$1")") || return 1
  [ "$(python3 -c 'import json, sys
result = json.loads(sys.argv[1])["data"]["result"]
print(result[0]["value"][1] if len(result) == 1 else result)' "$answer")" = "$2" ]
}
expect() { until_ok has "$@" || fail "want $2 for $1; the job: $(get "http://$target/metrics")"; }

expect 'up{job="rankrun"}' 1
expect 'rankrun_attempt' 1
expect 'sum(rankrun_workers{state="running"})' 2
expect 'rankrun_failures_total{kind="exit"}' 1
expect 'rankrun_restarts_total{budget="counted"}' 1
expect 'rankrun_step{rank="1"}' 3
expect 'rankrun_repeated_steps_total' 2
expect 'rankrun_info{run_id="job \"7\""}' 1
expect 'rankrun_goodput_ratio > bool 0' 1
expect 'time() - rankrun_job_start_time_seconds < bool 300' 1
touch "$folder/worker.sh.end"
wait "$job" || fail "the job failed"
job=
