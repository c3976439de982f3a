#!/bin/sh
# record.sh RANKRUN VENV PROGRAM: rank 1 of an unmodified program under @record
# raises. The report must name that rank and its exception as the cause.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$(dirname "$0")/run.sh" "$1" "$2" -n 3 "$3" 1 >"$log" 2>&1
code=$?
cat "$log"
[ $code -ne 77 ] || exit 77
[ $code -eq 1 ] || { echo "exit code $code instead of 1"; exit 1; }
for part in "cause: rank 1 " "exception: ValueError: no such shard: 17"; do
  grep -qF "$part" "$log" || { echo "missing in the output: $part"; exit 1; }
done
