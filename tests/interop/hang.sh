#!/bin/sh
# hang.sh RANKRUN VENV PROGRAM: rank 1 of an unmodified program sleeps. The report must name it, not
# those that wait for it, and a notice must name the key of the store for which they wait.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for how in collective store; do
  "$(dirname "$0")/run.sh" "$1" "$2" -n 3 --hang-notice 1 --hang-timeout 4 "$3" $how >"$log" 2>&1
  code=$?
  cat "$log"
  [ $code -ne 77 ] || exit 77
  [ $code -eq 203 ] || { echo "exit code $code instead of 203"; exit 1; }
  for part in "cause: rank 1 " "hung: sleeping ("; do
    grep -qF "$part" "$log" || { echo "missing in the output: $part"; exit 1; }
  done
done
notice="ranks 0, 2 wait for key .*answer of the store, which rank 1 has not set; rank 1 is sleeping"
grep -q "$notice" "$log" || { echo "missing in the output: $notice"; exit 1; }
