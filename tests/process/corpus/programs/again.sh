#!/bin/bash
# again.sh PROGRAM [ARGUMENT...]: a script that starts the training a second time if it has failed.
folder=$CORPUS
for try in 1 2; do
  export CORPUS=$folder/try$try
  mkdir -p "$CORPUS"
  python3 "$@" && exit 0
  echo "training has failed, try $try of 2" >&2
  sleep 0.3
done
exit 1
