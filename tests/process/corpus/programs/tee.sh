#!/bin/bash
# tee.sh CULPRIT PROGRAM [ARGUMENT...]: the worker is a shell; all output of the program goes through
# tee. The disk under the log of rank CULPRIT is slow.
culprit=$1
shift
set -o pipefail
python3 -u "$@" 2>&1 | {
  tee "$CORPUS/log.$RANK"
  [ "$RANK" != "$culprit" ] || sleep 0.5
}
