#!/bin/sh
# ends.sh RANK WAY [ARGUMENT...]: rank RANK ends by WAY once all ranks are there. The others wait.
. "${0%/*}/common.sh"
culprit=$1 way=$2
shift 2
[ "$way" != noisy ] || echo "Connection refused, trying again" >&2
if [ "$way" = stubborn ] && [ "$RANK" != "$culprit" ]; then trap '' TERM; fi
ready
wait_for_all
if [ "$RANK" != "$culprit" ] && [ "$way" != both ]; then
  case $way in
    once | early | fails-in-1) [ "$way" = once ] && [ "$attempt" = 0 ] || exit 0 ;;
    continue) sleep 0.3; exit 0 ;;
    reports-late) trap 'sleep 0.2; echo "checkpoint written" >&2; exit 0' TERM ;;
    fails-on-stop) trap 'echo "cannot write the checkpoint" >&2; exit 9' TERM ;;
  esac
  sleep 60 &
  while ! wait; do :; done
  exit 0
fi
case $way in
  exit | noisy | stubborn | continue | reports-late | fails-on-stop | both) exit "$1" ;;
  once) if [ "$attempt" = 0 ]; then exit "$1"; fi ;;
  early) sleep 0.3; exit "$1" ;;
  fails-in-1) if [ "$attempt" = 0 ]; then exit 3; else exit "$1"; fi ;;
  signal) kill -s "$1" $$; sleep 60 ;;
  says) echo "$2" >&2; exit "$1" ;;
  waits) sleep 60 ;;
esac
