#!/usr/bin/env bash
# Writes the generated parts of the man pages from the tables of flags.
# Usage: scripts/man.sh
set -eu
cd "$(dirname "$0")/.."

[ -f build/release/build.ninja ] || cmake --preset release >/dev/null
ninja -C build/release man_parts
part=$(mktemp)
page=$(mktemp)
trap 'rm -f "$part" "$page"' EXIT

for program in rankrun rankctl rankrun-bench; do
  build/release/bin/man_parts "$program" >"$part"
  awk -v part="$part" '
    /^\.\\" Generated from / {
      while ((getline line < part) > 0) print line
      inside = 1
    }
    !inside { print }
    /^\.\\" End of the generated part/ { inside = 0 }
  ' "man/$program.1" >"$page"
  cat "$page" >"man/$program.1"
done
