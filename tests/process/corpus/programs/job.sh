#!/bin/bash
# job.sh RANK WAY: a training script in shell, of which rank RANK fails by WAY. The others wait.
set -e
. "${0%/*}/common.sh"
ready
wait_for_all
if [ "$RANK" != "$1" ]; then
  sleep 60
  exit 0
fi
case $2 in
  command) # a tool that is installed on the other nodes only
    ibstat --list_of_cas
    ;;
  group) # a habit: no child is left behind
    trap 'kill 0' EXIT
    sleep 60 &
    echo "stage: cannot copy the samples to /scratch" >&2
    exit 3
    ;;
  error-file) # as a program in C++ that writes torchrun's error file, and says nothing else
    printf '{"message": "layer 7 has no gradient", "timestamp": %s}\n' "$(date +%s)" \
      >"$TORCHELASTIC_ERROR_FILE"
    exit 1
    ;;
esac
