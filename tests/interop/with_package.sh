#!/bin/sh
# with_package.sh RANKRUN VENV TEST [ARGUMENT...]: runs a test in Python as if the package rankrun
# was installed in VENV, with the program RANKRUN. Exit code 77: skipped, because VENV has no PyTorch.
set -eu
rankrun=$1 venv=$2
shift 2
"$(dirname "$0")/run.sh" "$rankrun" "$venv" --version
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Python reads .pth files in its own folders only.
cp "$source/python/rankrun.pth" "$folder/sitecustomize.py"
PATH=$(dirname "$rankrun"):$PATH PYTHONPATH=$folder:$source/python "$venv/bin/python" "$@"
