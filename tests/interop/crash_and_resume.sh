#!/bin/sh
# crash_and_resume.sh RANKRUN VENV DDP: a rank of an unmodified DDP program
# crashes once. The job must need one restart and continue from its checkpoint.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$(dirname "$0")/run.sh" "$1" "$2" -n 4 --max-restarts 1 "$3" \
  --steps 20 --checkpoint "$folder/ddp.pt" --crash-rank 2 --crash-step 12 >"$folder/log" 2>&1
code=$?
cat "$folder/log"
[ $code -eq 0 ] || exit $code
for part in "cause: rank 2" "next: restart 1 of 1" "resumed at step 10"; do
  grep -q "$part" "$folder/log" || { echo "missing in the output: $part"; exit 1; }
done
