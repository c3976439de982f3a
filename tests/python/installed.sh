#!/usr/bin/env bash
# installed.sh WHEEL [PYTHON]: installs a wheel as users do, and runs what it has: the programs, the
# package and its CMake package, in a virtual environment, in a folder of --target, and by a link.
# Needs neither a compiler nor CMake for all but the last part, which is skipped without them.
set -eu
wheel=$(realpath "$1") python=${2:-python3}
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset PYTHON_EXEC VIRTUAL_ENV RANKRUN_AS_TORCHRUN

fail() { echo "installed.sh: $*" >&2; exit 1; }
# says TEXT COMMAND...: the command succeeds and prints the text.
says() {
  local text=$1 output
  shift
  output=$("$@" 2>&1) || fail "$* ended with $?: $output"
  case $output in *"$text"*) ;; *) fail "$*: want \"$text\", got: $output" ;; esac
}

cat >rank.py <<'EOF'
import os, sys
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "by", sys.executable)
EOF
echo 'import sys; print("forked", "_rankrun_preload" in sys.modules)' >forked.py
"$python" -m venv env
env/bin/pip install --quiet --no-deps "$wheel"
says 'rankrun 0.' env/bin/rankrun --version
says 'rankctl 0.' env/bin/rankctl --version
says "rank 1 of 2 by $folder/env/bin/python" env/bin/rankrun -n 2 rank.py
says "rank 1 of 2 by $folder/env/bin/python" env/bin/python -m rankrun -n 2 rank.py
says 'wrong elements: 0 OK' env/bin/rankrun -n 2 --no-python env/bin/rankrun-bench all_reduce --max-bytes 1K
says 'rankrun' env/bin/rankrun-launch --version
env/bin/rankrun -n 2 --bind numa --no-python true || fail "--bind: no plug-in for the topology"
says 'thread' env/bin/rankctl stacks $$
says 'both curves are equal' env/bin/rankrun -n 4 -m rankrun.demo
says 'forked True' env/bin/rankrun --preload json -m forked
says 'env/bin/torchrun starts' env/bin/rankrun --install-torchrun
says 'rank 1 of 2' env/bin/torchrun --nproc-per-node 2 rank.py
says "rank 1 of 2 by $folder/env/bin/python" env/bin/python env/bin/torchrun --nproc-per-node 2 rank.py
says 'is removed' env/bin/rankrun --uninstall-torchrun
says 'rankrun._native' env/bin/python -c 'from rankrun import _native; print(_native.__name__)'
test -f env/share/man/man1/rankrun.1 || fail "no man page"
library=$(env/bin/python -c 'import rankrun; print(rankrun.get_library())')
says '[0.5, 5.0]: right' env/bin/rankrun -n 2 "$source/examples/python/mean.py" "$library"
case $wheel in  # without CUDA, the plug-in is there, and says so
  *manylinux*) test -f "$(dirname "$library")/librankrun_nccl.so" || fail "no plug-in for NCCL" ;;
esac
for license in libuv libsodium elfutils libstdc++-12-dev; do
  case $wheel in *manylinux*) find env -path "*/licenses/*/$license" | grep -q . || fail "no licence of $license" ;; esac
done
includes=$(env/bin/python -c 'import rankrun; print(rankrun.get_include_dir())')
test -f "$includes/rankrun/distributed.h" || fail "no headers in $includes"

# By a link, as pipx makes them, and from a folder of --target.
ln -s "$folder/env/bin/rankrun" linked
says 'rankrun 0.' ./linked --version
env/bin/pip install --quiet --no-deps --target target "$wheel"
says 'rank 1 of 2' env PYTHONPATH=target "$python" -m rankrun -n 2 rank.py
if [ "$("$python" -c 'import sys; print(sys.prefix == sys.base_prefix)')" = True ] && "$python" -m pip --version >/dev/null 2>&1; then
  export PYTHONUSERBASE=$folder/user
  PIP_BREAK_SYSTEM_PACKAGES=1 "$python" -m pip install --quiet --no-deps --user "$wheel"
  says 'rank 1 of 2' user/bin/rankrun -n 2 rank.py
  says "$folder/user" "$python" -c 'import rankrun; print(rankrun.get_library())'
  unset PYTHONUSERBASE
fi
says "$folder/target" env PYTHONPATH=target "$python" -c 'import rankrun; print(rankrun.get_library())'

command -v cmake >/dev/null && command -v c++ >/dev/null || {
  echo "skipped: programs in C++, for want of CMake or a compiler"
  exit 0
}
package=$(env/bin/python -c 'import rankrun; print(rankrun.get_cmake_dir())')
cmake -S "$source/examples/collectives" -B collectives -DCMAKE_BUILD_TYPE=Release -Drankrun_DIR="$package" >log ||
  { cat log; fail "no CMake package in $package"; }
cmake --build collectives >log || { cat log; fail "the example does not build"; }
env/bin/rankrun -n 2 --no-python collectives/reports
