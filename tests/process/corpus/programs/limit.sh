#!/bin/bash
# limit.sh RANK: a script that prepares data with a limit on its time, which is over on rank RANK.
set -e
. "${0%/*}/common.sh"
ready
wait_for_all
if [ "$RANK" = "$1" ]; then
  echo "making the index of /data/corpus"
  timeout 0.5 sleep 60
fi
sleep 60
