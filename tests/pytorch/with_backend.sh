#!/bin/sh
# with_backend.sh RANKRUN VENV PACKAGES COMMAND [ARGUMENT...]: runs a command with RANKRUN and the
# Python of VENV in PATH, where PACKAGES has the package rankrun. Exit code 77: skipped, because VENV
# has no PyTorch, or PACKAGES no rankrun._native.
rankrun=$1 venv=$2 packages=$3
shift 3
skip() {
  echo "$1"
  [ -z "$RANKRUN_REQUIRE_TORCH" ] || exit 1
  exit 77
}
"$venv/bin/python" -c 'import torch, expecttest' 2>/dev/null ||
  skip "no PyTorch or no expecttest in $venv (scripts/venv.sh [--newest] installs them)"
[ -e "$packages/rankrun/_native.abi3.so" ] ||
  skip "rankrun._native is not built: no headers of CPython (scripts/setup.sh installs them)"
export PATH="$(dirname "$rankrun"):$venv/bin:$PATH" PYTHONPATH="$packages" PYTHON_EXEC="$venv/bin/python"
exec "$@"
