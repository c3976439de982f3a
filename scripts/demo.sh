#!/usr/bin/env bash
# Four workers train a small language model on real text, twice: once undisturbed,
# and once with a worker that is killed in the middle. rankrun then restarts the
# workers from the checkpoint. The last lines compare the two losses.
# Usage: scripts/demo.sh
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh demo

bin=$PWD/build/release/bin
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# train NAME FLAGS...: runs the training; prints its output and writes it to
# $folder/NAME.log.
train() {
  local name=$1 begin end
  shift
  begin=$(date +%s.%N)
  "$bin/rankrun" -n 4 --max-restarts 3 \
    "$bin/train_lm" --checkpoint "$folder/$name.checkpoint" --checkpoint-every 50 "$@" 2>&1 |
    tee "$folder/$name.log"
  end=$(date +%s.%N)
  awk -v a="$begin" -v b="$end" 'BEGIN {printf "%.2f\n", b - a}' >"$folder/$name.seconds"
}

set -o pipefail
echo; echo "== undisturbed: 4 workers, 400 steps"
train undisturbed
echo; echo "== the same, rank 2 is killed by SIGKILL at step 220"
train disturbed --die-rank 2 --die-at 220

loss() { sed -n 's/.*final loss //p' "$folder/$1.log"; }
seconds() { cat "$folder/$1.seconds"; }
awk -v a="$(loss undisturbed)" -v b="$(loss disturbed)" \
  -v ta="$(seconds undisturbed)" -v tb="$(seconds disturbed)" 'BEGIN {
  d = (a > b ? a - b : b - a) / a
  printf "\n== result\n"
  printf "%-34s %s\n", "final loss, undisturbed", a
  printf "%-34s %s\n", "final loss, rank 2 killed", b
  printf "%-34s %.1e (allowed: 1e-3)\n", "relative difference", d
  printf "%-34s %.2f s (%.2f s instead of %.2f s)\n", "time lost to the restart", tb - ta, tb, ta
  exit !(a > 0 && d <= 1e-3)
}' || { echo "demo.sh: the losses differ" >&2; exit 1; }
