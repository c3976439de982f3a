#!/bin/sh
# watch.sh RANKRUN PROGRAM: runs watch.py with PROGRAM, which is old_store.cc.
# Exit code 77: skipped, because it could not be built.
folder=$(dirname "$0")
if [ ! -x "$2" ]; then
  echo "no PyTorch 1.13 to build against (it is Debian's libtorch-dev)"
  exit 77
fi
export PYTHON_EXEC=/usr/bin/python3
exec "$1" -n 1 "$folder/watch.py" "$2"
