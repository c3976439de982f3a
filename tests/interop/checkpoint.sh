#!/bin/sh
# checkpoint.sh RANKRUN VENV PROGRAM: a restarted attempt loads the distributed
# checkpoint of the attempt before it.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$(dirname "$0")/run.sh" "$1" "$2" -n 4 --max-restarts 1 "$3" "$folder"
