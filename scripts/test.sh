#!/usr/bin/env bash
# Sets up, builds and runs all tests. Usage: scripts/test.sh [PRESET [CTEST-ARGUMENT...]]
# PRESET: release (default), debug, asan, tsan. The results are also written to
# build/PRESET/tests.xml. A few that fail are run once more, alone; those that
# pass then are named as unsteady. Tests that need PyTorch 2.13 are skipped by
# name without it: scripts/venv.sh installs it.
set -eu
cd "$(dirname "$0")/.."
preset=${1:-release}
[ $# -gt 0 ] && shift
scripts/setup.sh --packages-only

# Clones of this repository share what is compiled, wherever they are.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=1

echo "== building in build/$preset"
[ -f "build/$preset/build.ninja" ] || cmake --preset "$preset" >/dev/null
ninja -C "build/$preset"

echo "== testing build/$preset"
jobs=$(nproc)
rm -f "build/$preset/tests.xml" "build/$preset/rerun.xml"
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error \
  --output-junit tests.xml --parallel "$jobs" "$@" ||
  { [ -f "build/$preset/tests.xml" ] && scripts/rerun_failed.py "build/$preset"; }
