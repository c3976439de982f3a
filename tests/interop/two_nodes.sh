#!/bin/sh
# two_nodes.sh RANKRUN VENV c10d|static ARGUMENT...: one job of two nodes with
# the virtual environment's Python. Exit code 77: skipped, because it has no
# PyTorch.
rankrun=$1 venv=$2 backend=$3
shift 3
if ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
  echo "no PyTorch in $venv (scripts/venv.sh [--newest] installs it)"
  [ -z "$RANKRUN_REQUIRE_TORCH" ] || exit 1
  exit 77
fi
export PYTHON_EXEC="$venv/bin/python"
# Below the ephemeral range.
port=$("$PYTHON_EXEC" -c '
import random, socket
while True:
    port = random.randrange(12000, 28000)
    try:
        socket.socket().bind(("", port))
    except OSError:
        continue
    print(port)
    break')
node() {
  rank=$1
  shift
  "$rankrun" --nnodes 2 --rdzv-backend "$backend" --rdzv-endpoint "localhost:$port" --node-rank "$rank" "$@"
}
node 1 "$@" &
node 0 "$@"
first=$?
wait $!
second=$?
[ $first = 0 ] && [ $second = 0 ] && exit 0
echo "node 0: exit code $first, node 1: exit code $second"
exit 1
