#!/bin/sh
# compare.sh RANKRUN VENV [CASE...]: runs compare.py with PyTorch's torchrun.
folder=$(dirname "$0")
if ! "$2/bin/python" -c 'import torch' 2>/dev/null; then
  echo "no PyTorch in $2 (scripts/venv.sh [--newest] installs it)"
  [ -z "$RANKRUN_REQUIRE_TORCH" ] || exit 1
  exit 77
fi
export PYTHON_EXEC="$2/bin/python"
rankrun=$1 torchrun=$2/bin/torchrun
shift 2
exec "$PYTHON_EXEC" "$folder/compare.py" "$rankrun" "$torchrun" "$@"
