#!/bin/sh
# bomb.sh RANK: rank RANK starts processes until the kernel refuses one (RLIMIT_NPROC), and fails.
. "${0%/*}/common.sh"
ready
wait_for_all
[ "$RANK" = "$1" ] || exec sleep 60
# The limit does not hold for root.
exec setpriv --reuid=61234 --clear-groups prlimit --nproc=12 sh -c '
  for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sleep 60 & done
  wait'
