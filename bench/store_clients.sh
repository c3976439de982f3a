#!/usr/bin/env bash
# Measures what it costs that the node of a client vouches for it: the time from a connect to the
# store of another node to its first answer, and the time for many clients at once, beside those of
# a store that is open to all users. Each node is a network namespace; a veth pair connects them.
# Usage: bench/store_clients.sh [--quick]
# Exits with 77 if namespaces are not permitted.
set -eu
cd "$(dirname "$0")/.."

if [ -z "${STORE_CLIENTS_INSIDE:-}" ]; then
  own=(unshare --mount --net --pid --fork --kill-child)
  [ "$(id -u)" -eq 0 ] || own+=(--map-root-user)
  if ! "${own[@]}" sh -c 'mount -t tmpfs none /run && ip netns add probe' 2>/dev/null; then
    echo "skipped: network namespaces (ip netns add) are not permitted here, or ip is missing"
    exit 77
  fi
  STORE_CLIENTS_INSIDE=1 exec "${own[@]}" "$PWD/bench/store_clients.sh" "$@"
fi

count=1000 rounds=5
[ "${1:-}" != --quick ] || count=50 rounds=1
rankrun=${RANKRUN:-build/release/bin/rankrun}
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
export OMP_NUM_THREADS=1 FOLDER=$folder COUNT=$count

# measure FLAGS...: runs a job whose second node measures.
measure() {
  rm -f "$folder/result"
  local i pids=()
  for i in 1 2; do
    ip netns exec h$i "$rankrun" -n 1 --nnodes 2 --node-rank $((i - 1)) --rdzv-backend c10d \
      --rdzv-endpoint 10.77.0.1 --secret-file "$folder/secret" --max-restarts 0 "$@" --no-python \
      sh -c 'if [ $RANK = 1 ]; then exec python3 bench/store/connections.py $COUNT $FOLDER/result
             fi
             until [ -e $FOLDER/result ]; do sleep 0.05; done' >"$folder/h$i.out" 2>&1 &
    pids+=($!)
  done
  for i in "${pids[@]}"; do wait "$i" || fail "the job has failed"; done
}

for round in $(seq "$rounds"); do
  measure
  read -r asked_one asked_all <"$folder/result"
  measure --store-open
  read -r open_one open_all <"$folder/result"
  echo "$asked_one $open_one $asked_all $open_all" >>"$folder/rounds"
done
python3 -c '
import statistics, sys
columns = zip(*map(str.split, sys.stdin))
one, open_one, all_, open_all = (statistics.median(map(float, c)) for c in columns)
count = sys.argv[1]
print(f"a connection, median of {count} [us]: {one:.0f}, open to all users {open_one:.0f}")
print(f"{count} at once [ms]: {all_:.0f}, open to all users {open_all:.0f}")
' "$count" <"$folder/rounds"
