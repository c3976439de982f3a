#!/bin/sh
# installed_package.sh BUILD SOURCE: installs BUILD into an empty folder, then
# builds and runs examples/train_lm from there, as an outside program would.
set -eu
build=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --prefix "$folder/usr" >"$folder/log" || { cat "$folder/log"; exit 1; }
cmake -S "$source/examples/train_lm" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_PREFIX_PATH="$folder/usr" >"$folder/log"
cmake --build "$folder/build" >"$folder/log" || { cat "$folder/log"; exit 1; }
"$folder/usr/bin/rankrun" -n 2 "$folder/build/train_lm" --steps 5 --hidden 8 | tee "$folder/out"
grep -q '^final loss' "$folder/out"
test -f "$folder/usr/share/man/man1/rankrun.1"
