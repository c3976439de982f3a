#!/bin/sh
# beside_torch.sh RANKRUN [PROGRAM [VENV]]: a world on Gloo in a process that also
# has PyTorch's library. PROGRAM is beside_torch.cc, linked to that library; it is
# missing if the library is.
# With VENV, its library, which exports a Gloo of its own, is loaded first. The
# plug-in and its Gloo must be bound to libgloo in both cases. Exit code 77:
# skipped, because PyTorch is missing.
set -eu
rankrun=$1 program=${2:-} venv=${3:-}
torch=
if [ -n "$venv" ]; then
  for torch in "$venv"/lib/python3*/site-packages/torch/lib/libtorch_cpu.so; do :; done
  if [ ! -f "$torch" ]; then
    echo "no PyTorch in $venv (scripts/venv.sh [--newest] installs it)"
    [ -z "${RANKRUN_REQUIRE_TORCH:-}" ] || exit 1
    exit 77
  fi
elif [ ! -x "$program" ]; then
  echo "no PyTorch 1.13 to build against (it is Debian's libtorch-dev)"
  exit 77
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# If bound to another Gloo, the plug-in may request any amount of memory.
ulimit -v 4194304
"$rankrun" -n 2 /usr/bin/env LD_PRELOAD="$torch" \
  LD_DEBUG=bindings LD_DEBUG_OUTPUT="$folder/bindings" "$program"

# "binding file .../librankrun_gloo.so [0] to .../libgloo.so.0 [0]: normal symbol `...'"
grep -h "file [^ ]*/\(librankrun_gloo\|libgloo\)\.so[^ ]* .* symbol .*4gloo" "$folder"/bindings.* \
  >"$folder/of_gloo"
if ! grep -q "file [^ ]*/librankrun_gloo\.so" "$folder/of_gloo"; then
  echo "the plug-in was bound to no Gloo"
  exit 1
fi
if grep -v " to [^ ]*/libgloo\.so" "$folder/of_gloo"; then
  echo "the above must be bound to libgloo"
  exit 1
fi
