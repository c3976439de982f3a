#!/bin/bash
# wrapper.sh PROGRAM [ARGUMENT...]: the worker is a shell that runs the program of users, and passes
# its exit code on. If a signal has killed the program, it first collects facts.
trap 'echo "wrapper: asked to end" >&2' TERM
python3 "$@"
code=$?
if [ $code -gt 128 ]; then
  echo "wrapper: collecting the facts about exit code $code" >&2
  sleep 0.3
  sleep 0.3
fi
exit $code
