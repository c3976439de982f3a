#!/usr/bin/env bash
# Builds the fuzz targets and runs half of them at once for SECONDS (default 60), by
# turns: one half on even days of the year, the other on odd ones. TARGET...: runs
# these instead. Each starts from its corpus in tests/fuzz/corpus, which is not
# modified. Fails if an input makes a check fail; this input is then a file in
# build/fuzz. Repeat it with build/fuzz/bin/TARGET_fuzz FILE.
# Usage: scripts/fuzz.sh [SECONDS [TARGET...]]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
build=build/fuzz

# Clones of this repository in different folders share the compiler cache.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=1

[ -f $build/build.ninja ] || cmake --preset fuzz >/dev/null
targets=(wire control messages status_page peer_info peer_address dlpack torch_dump)
[ $((10#$(date +%j) % 2)) -eq 0 ] || targets=(engine error_file config slurm objects c_api)
[ $# -le 1 ] || targets=("${@:2}")
ninja -C $build "${targets[@]/%/_fuzz}"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# fuzz NAME: runs NAME_fuzz and prints a summary.
fuzz() {
  local name=$1 log=$build/$1_fuzz.log failed=0
  mkdir "$folder/$name"
  echo "== fuzzing $name for $seconds s"
  $build/bin/${name}_fuzz -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -malloc_limit_mb=32 -max_len=4096 -artifact_prefix="$build/$name-" \
    "$folder/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1 || failed=1
  if [ $failed -eq 1 ]; then
    grep -vE '^#[0-9]' "$log" | tail -n 60
    echo "fuzz.sh: ${name}_fuzz failed; its whole output is in $log" >&2
    return 1
  fi
  grep -E '^#[0-9]+.*DONE' "$log"  # coverage, features, corpus, runs per second
}

runs=()
for target in "${targets[@]}"; do
  fuzz "$target" &
  runs+=($!)
done
failed=0
for run in "${runs[@]}"; do wait "$run" || failed=1; done
exit $failed
