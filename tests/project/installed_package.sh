#!/bin/sh
# installed_package.sh BUILD SOURCE: installs BUILD into an empty folder, then
# builds and runs programs with the installed package: the examples train_lm,
# store, launch, collectives, rpc, c and backend and the short programs beside
# this file with CMake, and small programs in C++ and C with pkg-config. The
# conformance vectors run over the example backend.
set -eu
build=$1 source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --prefix "$folder/usr" >"$folder/log" || { cat "$folder/log"; exit 1; }
build_with_package() {
  cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_PREFIX_PATH="$folder/usr" >"$folder/log"
  cmake --build "$2" >"$folder/log" || { cat "$folder/log"; exit 1; }
}
for example in train_lm store launch collectives rpc c backend; do
  build_with_package "$source/examples/$example" "$folder/$example"
done
programs=$source/tests/project/short_programs
build_with_package "$programs" "$folder/short_programs"
"$folder/usr/bin/rankrun" -n 2 "$folder/train_lm/train_lm" --steps 5 --hidden 8 | tee "$folder/out"
grep -q 'final loss' "$folder/out"
"$folder/usr/bin/rankrun" -n 2 "$folder/store/meet" --jobs 5 | tee "$folder/out"
grep -q 'all have met: 5 jobs are done' "$folder/out"
"$folder/usr/bin/rankrun" -n 2 "$folder/usr/bin/rankrun-bench" all_reduce --max-bytes 1K | tee "$folder/out"
grep -q 'wrong elements: 0 OK' "$folder/out"
# Uses the installed plug-ins instead of those in the build folder.
"$folder/usr/bin/rankrun" --bind numa -n 2 true
RANKRUN_BACKEND=gloo "$folder/usr/bin/rankrun" -n 2 "$folder/collectives/reports"
"$folder/launch/sweep" 2 0.1 0.5 | tee "$folder/out"  # finds the installed rankrun
grep -q 'best rate: 0.5' "$folder/out"
"$folder/usr/bin/rankrun" -n 2 "$folder/collectives/reports"
"$folder/usr/bin/rankrun" -n 2 "$folder/collectives/handover"
"$folder/usr/bin/rankrun" -n 3 "$folder/rpc/own_agent" | tee "$folder/out"
grep -q 'worker1 keeps: hello worker 1' "$folder/out"
for program in "$programs"/*.cc; do
  "$folder/usr/bin/rankrun" -n 2 "$folder/short_programs/$(basename "$program" .cc)"
done
"$folder/usr/bin/rankrun" -n 2 "$folder/c/pi"
"$folder/usr/bin/rankrun" -n 2 "$source/examples/python/mean.py"
RANKRUN_PLUGIN_DIR="$folder/backend" RANKRUN_BACKEND=local \
  "$folder/usr/bin/rankrun" -n 2 "$folder/c/pi"
RANKRUN_TEST_PLUGIN_DIR="$folder/backend" RANKRUN_TEST_BACKEND=local "$build/bin/comm_tests" \
  --gtest_filter='Vectors/ConformanceTest.*_local' | tee "$folder/out"
grep -q '^\[  PASSED  \] 53 tests' "$folder/out"
test -f "$folder/usr/share/man/man1/rankrun.1"
test -f "$folder/usr/share/man/man1/rankctl.1"
test -f "$folder/usr/share/man/man1/rankrun-bench.1"
test -s "$folder/usr/share/bash-completion/completions/rankrun"
test -s "$folder/usr/share/zsh/site-functions/_rankrun"
test -s "$folder/usr/share/fish/vendor_completions.d/rankrun.fish"
test ! -e "$folder/usr/bin/torchrun"  # installed only on request
"$folder/usr/bin/rankctl" --version | grep -q '^rankctl [0-9]'
"$folder/usr/bin/rankctl" stacks $$ >"$folder/stacks"
grep -q "^  thread $$ " "$folder/stacks"

if ! command -v pkg-config >/dev/null; then
  echo "skipped: a program by pkg-config, which is not installed"
  exit 0
fi
PKG_CONFIG_PATH=$(dirname "$(find "$folder/usr" -name rankrun.pc)")
export PKG_CONFIG_PATH
cat >"$folder/meet.cc" <<'EOF'
#include <rankrun/distributed.h>
int main() {
  rankrun::Init().Barrier();
  rankrun::Destroy();
}
EOF
# The output of pkg-config is several words.
# shellcheck disable=SC2046
c++ -std=c++20 "$folder/meet.cc" -o "$folder/meet" $(pkg-config --cflags --libs rankrun) \
  "-Wl,-rpath,$(pkg-config --variable=libdir rankrun)"
# shellcheck disable=SC2046
cc -std=c99 "$source/examples/c/pi.c" -o "$folder/pi" $(pkg-config --cflags --libs rankrun)
"$folder/usr/bin/rankrun" -n 2 "$folder/meet"
# shellcheck disable=SC2046
c++ -std=c++20 "$source/tests/project/forked_worker.cc" -o "$folder/forked_worker" \
  $(pkg-config --cflags --libs rankrun-rpc) "-Wl,-rpath,$(pkg-config --variable=libdir rankrun)"
"$folder/usr/bin/rankrun" -n 2 "$folder/forked_worker"
LD_LIBRARY_PATH=$(pkg-config --variable=libdir rankrun) "$folder/usr/bin/rankrun" -n 2 "$folder/pi"
