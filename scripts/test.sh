#!/usr/bin/env bash
# Sets up, builds and runs all tests. Usage: scripts/test.sh [PRESET [CTEST-ARGUMENT...]]
# PRESET: release (default), debug, asan, tsan. The results are also written to
# build/PRESET/tests.xml. Failed tests with the label `timing` run once more, alone;
# those that then pass are printed. Without PyTorch 2.13 (scripts/venv.sh installs
# it), its tests are skipped. Environment: RANKRUN_BUILD_TARGETS, the test programs
# to build instead of everything; RANKRUN_TESTS_LISTED_IN, a file with the sources of
# tests to build, all by default; RANKRUN_SIM_SEED, the first seed of the simulator
# instead of one from the clock.
set -eu
cd "$(dirname "$0")/.."
preset=${1:-release}
[ $# -gt 0 ] && shift
case $preset in
  asan | tsan)
    { command -v clang++ && command -v ld.lld; } >/dev/null || {
      echo "test.sh: the preset $preset needs the packages clang, libclang-rt-14-dev and lld" >&2
      exit 1
    }
    ;;
esac
scripts/setup.sh --packages-only

# Clones of this repository in different folders share the compiler cache.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=1

echo "== building in build/$preset"
[ -f "build/$preset/build.ninja" ] && folder=("build/$preset") || folder=(--preset "$preset")
cmake "${folder[@]}" -DRANKRUN_TESTS_LISTED_IN="${RANKRUN_TESTS_LISTED_IN:-}" >/dev/null
ninja -C "build/$preset" ${RANKRUN_BUILD_TARGETS:-all}

export RANKRUN_SIM_SEED=${RANKRUN_SIM_SEED:-$(($(date +%s%N) / 1000))}
echo "== testing build/$preset, RANKRUN_SIM_SEED=$RANKRUN_SIM_SEED"
if ctest --test-dir "build/$preset" -N "$@" 2>&1 | grep '^RegularExpression'; then
  echo "test.sh: ctest cannot use a pattern, and would ignore it" >&2
  exit 1
fi
jobs=$((2 * $(nproc)))  # a test that needs a core counts twice (tests/CMakeLists.txt)
rm -f "build/$preset/tests.xml"
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error \
  --output-junit tests.xml --parallel "$jobs" "$@" ||
  { [ -f "build/$preset/tests.xml" ] && scripts/rerun_timing_tests.py "build/$preset"; }
