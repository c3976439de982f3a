#!/usr/bin/env bash
# Compares AllReduce of float32 by a flat and by the hierarchical backend, in a job of
# two nodes with two ranks each. Each node is a network namespace with its own half of
# the cores; a veth pair connects them. Interfaces, mounts and processes are in
# namespaces of this script, so that they end with it.
# Usage: bench/hierarchy.sh [--quick] [--any-load]
# Variables: FLAT (tcp) and HIERARCHICAL (hierarchical), the names of the backends.
# Exits with 77 if namespaces are not permitted.
set -eu
cd "$(dirname "$0")/.."

if [ -z "${HIERARCHY_INSIDE:-}" ]; then
  own=(unshare --mount --net --pid --fork --kill-child)
  [ "$(id -u)" -eq 0 ] || own+=(--map-root-user)
  if ! "${own[@]}" sh -c 'mount -t tmpfs none /run && ip netns add probe' 2>/dev/null; then
    echo "skipped: network namespaces (ip netns add) are not permitted here, or ip is missing"
    exit 77
  fi
  export HIERARCHY_INSIDE=1
  # unshare blocks SIGTERM and SIGINT. Its death ends the namespaces.
  setpriv --pdeathsig KILL "${own[@]}" bench/hierarchy.sh "$@" &
  inside=$!
  for signal in INT TERM HUP; do
    trap "kill -KILL $inside; exit $((128 + $(kill -l $signal)))" $signal
  done
  wait $inside
  exit
fi

. tests/process/cluster.sh
make_folder
(umask 077 && head -c 32 /dev/urandom | base64 >"$folder/secret")
for i in 1 2; do ip netns add h$i; done
ip link add name eth0 netns h1 type veth peer name eth0 netns h2
for i in 1 2; do
  ip -n h$i link set lo up
  ip -n h$i address add 10.77.0.$i/24 dev eth0
  ip -n h$i link set eth0 up
done
export SECRET_FILE=$folder/secret
PYTHONPATH=bench${PYTHONPATH:+:$PYTHONPATH} exec python3 bench/allreduce/hierarchy.py "$@"
