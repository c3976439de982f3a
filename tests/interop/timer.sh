#!/bin/sh
# timer.sh RANKRUN VENV PROGRAM: a rank's timer expires once. Only that rank
# must be killed for it, and the restart must succeed.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export TORCHELASTIC_ENABLE_FILE_TIMER=1
"$(dirname "$0")/run.sh" "$1" "$2" -n 2 --max-restarts 1 "$3" >"$log" 2>&1
code=$?
cat "$log"
[ $code -eq 0 ] || exit $code
for part in "cause: rank 1" "killed by SIGKILL, its timer \"slow\" had expired" "next: restart 1 of 1"; do
  grep -q "$part" "$log" || { echo "missing in the output: $part"; exit 1; }
done
