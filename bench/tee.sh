#!/usr/bin/env bash
# Measures the forwarding of one worker's output into a file and a pipe: rankrun
# --tee and `tee FILE | cat` in alternation. Prints the median of the ratios;
# the target is at most 1.2. Usage: bench/tee.sh [--quick]
set -eu
cd "$(dirname "$0")/.."
bin=build/release/bin
mib=1024 rounds=5
[ "${1:-}" = --quick ] && mib=64 rounds=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

now() { date +%s%N; }

with_tee() { $bin/tee_worker $mib | tee "$folder/log" | cat >/dev/null; }

with_rankrun() {
  $bin/rankrun -n 1 --tee 3 --log-dir "$folder/logs" $bin/tee_worker $mib | cat >/dev/null
}

# Prints the milliseconds of "$@".
measure() {
  rm -rf "${folder:?}"/*
  local begin
  begin=$(now)
  "$@"
  echo $((($(now) - begin) / 1000000))
}

echo "== $mib MiB of one worker into a file and a pipe, $rounds rounds"
for _ in $(seq $rounds); do
  tee=$(measure with_tee)
  ours=$(measure with_rankrun)
  written=$(cat "$folder"/logs/*/attempt_0/0/stdout.log | wc -c)
  [ "$written" -eq $((mib << 20)) ] || { echo "only $written bytes are in the log" >&2; exit 1; }
  ratio=$((ours * 1000 / tee))
  echo "  tee $tee ms, rankrun $ours ms, ratio $((ratio / 1000)).$(printf %03d $((ratio % 1000)))"
  ratios+=("$ratio")
done
median=$(printf '%s\n' "${ratios[@]}" | sort -n | sed -n "$(((rounds + 1) / 2))p")
echo "  median ratio: $((median / 1000)).$(printf %03d $((median % 1000)))"
