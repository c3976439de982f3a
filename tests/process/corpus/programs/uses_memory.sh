#!/bin/sh
# uses_memory.sh RANK: rank RANK uses 256 MiB, more than the cgroup of the job has.
. "${0%/*}/common.sh"
ready
wait_for_all
[ "$RANK" = "$1" ] || exec sleep 60
exec python3 -c 'b = bytearray(1 << 28)
for i in range(0, len(b), 4096): b[i] = 1
import time; time.sleep(60)'
