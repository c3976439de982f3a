#!/usr/bin/env bash
# Runs the tests of the NCCL plug-in on one real GPU, with the real CUDA and NCCL. All ranks
# share the GPU and connect over loopback. Usage: scripts/gpu_test.sh [GTEST_FILTER]
# Skips tests that need several GPUs, or failures and records that only the fakes have.
# Needs build/release and, in LIBRARIES, folders with libcudart.so.13 and libnccl.so.2
# (default: those of Python's nvidia packages, or of the system).
# JOBS (default 8) tests run at a time, each for TEST_SECONDS (default 60) at most.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$PWD/build/release
default_libraries() {
  python3 - <<'PY' 2>/dev/null || true
import nvidia, pathlib
roots = [pathlib.Path(root) for root in nvidia.__path__]
names = ("libcudart.so.13", "libnccl.so.2")
print(":".join(str(found.parent) for root in roots for name in names for found in root.rglob(name)))
PY
}
export LD_LIBRARY_PATH=${LIBRARIES:-$(default_libraries)}:${LD_LIBRARY_PATH:-}
export NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 CUDA_MODULE_LOADING=EAGER
export PRELOADED=$build/lib/libone_gpu.so TESTS=$build/bin/nccl_tests
export TEST_SECONDS=${TEST_SECONDS:-60} RESULTS
RESULTS=$(mktemp -d)
trap 'rm -rf "$RESULTS"' EXIT
touch "$RESULTS/lines"

# Runs one test. Its line in the results begins with ok, skipped or failed.
run_test() {
  local name=$1 output=$RESULTS/output.$$ verdict=failed
  if LD_PRELOAD=$PRELOADED timeout -k 5 "$TEST_SECONDS" "$TESTS" --gtest_filter="$name" \
      >"$output" 2>&1; then
    verdict=ok
  elif grep -q '^one_gpu: this test needs' "$output"; then
    verdict=skipped
  else
    { echo "== $name"; head -40 "$output"; } >>"$RESULTS/failures"
  fi
  echo "$verdict $name" >>"$RESULTS/lines"
  rm -f "$output"
}
export -f run_test

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
# One GPU cannot show: maps between several GPUs; a machine without a GPU or with eight;
# a first call behind a stream that waits for the test; time-outs shorter than the start of
# CUDA; NaN, which NCCL's minimum and maximum ignore.
not_here='RpcDevicesTest.*:GpuStartTest.*Device*:GpuStartTest.WithoutAGpuInitSaysSo'
not_here+=':GpuStreamsTest.TheStatusPage*:GpuStreamsTest.TheFlightRecorder*'
not_here+=':GpuMessagesTest.WithoutItsOtherEndTimesOutFromTheFirstWait'
not_here+=':*EveryOperatorOfNcclGivesTheResultOfTheCpu/*float*'
LD_PRELOAD=$PRELOADED "$TESTS" --gtest_list_tests --gtest_filter="${1:-*-$not_here}" |
  awk '/^[^ ]/ {suite = $1; next} {print suite $1}' |
  xargs -P "${JOBS:-8}" -I{} bash -c 'run_test "{}"'
[ ! -f "$RESULTS/failures" ] || cat "$RESULTS/failures"
grep '^skipped\|^failed' "$RESULTS/lines" | sort || true
count() { grep -c "^$1" "$RESULTS/lines" || true; }
echo "$(count ok) passed, $(count failed) failed, $(count skipped) skipped"
[ "$(count ok)" -gt 0 ] && [ "$(count failed)" -eq 0 ]
