#!/bin/sh
# vanish.sh PROGRAMS: removes itself and fails, so that there is no program for a second attempt.
. "$1/common.sh"
ready
wait_for_all
rm -f "$CORPUS/vanish.sh"
exit 3
