#!/usr/bin/env bash
# Measures a call of 64 bytes between two processes: rankrun's RpcSync beside bare round trips
# over TCP, asleep in recv and polling it, in alternation; then PyTorch's rpc_sync (TENSORPIPE).
# Microseconds. Then large and many calls of rankrun. PyTorch is left out without build/venv
# (scripts/venv.sh).
# Usage: bench/rpc.sh [ROUNDS [CALLS]]
set -eu
cd "$(dirname "$0")/.."
bin=build/release/bin
rounds=${1:-7} calls=${2:-20000}
export OMP_NUM_THREADS=1
echo "bare TCP asleep, polling, rankrun, its ratio to each:"
$bin/rankrun -n 2 --no-python $bin/rpc_rankrun "$rounds" "$calls" | sed 's/^\[0\] /  /'
if [ -x build/venv/bin/python ]; then
  echo "PyTorch:"
  $bin/rankrun -n 2 build/venv/bin/python bench/rpc/rpc_torch.py "$rounds" $((calls / 10)) \
    2> /dev/null | sed 's/^\[0\] /  /'
fi
echo "limits:"
$bin/rankrun -n 2 --no-python $bin/rpc_limits 2> /dev/null | sed 's/^\[0\] /  /'
