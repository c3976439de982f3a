#!/bin/bash
# settings.sh RANK: a training script in shell. A variable is not set where rank RANK runs. The others wait.
set -euo pipefail
. "${0%/*}/common.sh"
ready
wait_for_all
if [ "$RANK" != "$1" ]; then
  export DATA_ROOT=/data
fi
echo "training on $DATA_ROOT/shards"
sleep 60
