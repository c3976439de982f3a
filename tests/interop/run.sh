#!/bin/sh
# run.sh RANKRUN VENV ARGUMENT...: runs rankrun with the virtual environment's
# Python. Exit code 77: skipped, because it has no PyTorch.
rankrun=$1 venv=$2
shift 2
if ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
  echo "no PyTorch in $venv (scripts/venv.sh [--newest] installs it)"
  [ -z "$RANKRUN_REQUIRE_TORCH" ] || exit 1
  exit 77
fi
export PYTHON_EXEC="$venv/bin/python"
exec "$rankrun" "$@"
