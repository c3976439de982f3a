#!/bin/sh
# run.sh RANKRUN VENV: compares command lines with those of torchrun in the
# virtual environment. Exit code 77: skipped, there is no PyTorch there.
if ! "$2/bin/python" -c 'import torch' 2>/dev/null; then
  echo "no PyTorch in $2 (scripts/venv.sh installs it)"
  [ -z "$RANKRUN_REQUIRE_TORCH" ] || exit 1
  exit 77
fi
exec "$2/bin/python" "$(dirname "$0")/command_lines.py" "$1"
