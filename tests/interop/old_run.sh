#!/bin/sh
# old_run.sh RANKRUN VENV ARGUMENT...: like run.sh, but with Debian's Python and
# its PyTorch 1.13 instead of the virtual environment. Exit code 77: skipped,
# because it is not installed.
rankrun=$1
shift 2
python=/usr/bin/python3
if ! $python -c 'import torch; assert torch.__version__.startswith("1.13")' 2>/dev/null; then
  echo "no PyTorch 1.13 for $python (it is Debian's python3-torch)"
  exit 77
fi
export PYTHON_EXEC=$python
exec "$rankrun" "$@"
