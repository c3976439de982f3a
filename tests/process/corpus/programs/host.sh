#!/bin/bash
# host.sh FIRST LAST WAY: the host of ranks FIRST to LAST is set up wrongly by WAY, so that all of them fail.
# The others wait.
. "${0%/*}/common.sh"
ready
wait_for_all
if [ "$RANK" -lt "$1" ] || [ "$RANK" -gt "$2" ]; then
  sleep 60
  exit 0
fi
case $3 in
  pythonhome) # left from an older installation
    export PYTHONHOME=/opt/python3.7
    exec /usr/bin/env python3 -c "print('training')"
    ;;
esac
