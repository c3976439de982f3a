#!/usr/bin/env bash
# Runs jobs on three hosts, h1 to h3. Each host is a network namespace with the
# addresses 10.77.0.N and fd77::N; a bridge connects them. Interfaces, mounts and
# processes are in namespaces of this test, so that they end with it.
# Usage: netns.sh RANKRUN CASE. Exits with 77 if namespaces are not permitted.
set -u
rankrun=$1 case=$2

if [ -z "${NETNS_INSIDE:-}" ]; then
  own=(unshare --mount --net --pid --fork --kill-child)
  [ "$(id -u)" -eq 0 ] || own+=(--map-root-user)
  if ! "${own[@]}" sh -c 'mount -t tmpfs none /run && ip netns add probe' 2>/dev/null; then
    echo "skipped: network namespaces (ip netns add) are not permitted here, or ip is missing"
    exit 77
  fi
  export NETNS_INSIDE=1
  exec "${own[@]}" "$0" "$@"
fi

. "$(dirname "$0")/cluster.sh"

# reaches ADDRESS: whether h1 reaches the address. A host that is reached refuses
# the connection, because nothing listens on the port.
reaches() {
  ip netns exec h1 timeout 1 bash -c "exec 3<>/dev/tcp/$1/1" 2>&1 | grep -q refused
}

make_hosts() {
  make_folder
  ip link add bridge type bridge
  ip link set bridge up
  local i
  for i in 1 2 3; do
    ip netns add h$i
    ip link add link$i type veth peer name eth0 netns h$i
    ip link set link$i master bridge up
    ip -n h$i link set lo up
    ip -n h$i address add 10.77.0.$i/24 dev eth0
    ip -n h$i address add fd77::$i/64 dev eth0 nodad
    ip -n h$i link set eth0 up
    # As on Debian, the own name of a host resolves to a loopback address.
    printf '127.0.0.1 localhost\n10.77.0.1 h1\n10.77.0.2 h2\n10.77.0.3 h3\n' |
      sed "s/.* h$i\$/127.0.1.1 h$i/" >"$folder/hosts$i"
  done
  for i in 2 3; do await 20 "the bridge forwards packets" reaches 10.77.0.$i; done
  : >"$folder/began"
  # The worker checks that it reaches the store and has the right interface names,
  # records its place and runs until $FOLDER/end exists.
  cat >"$folder/worker" <<'EOF'
#!/bin/bash
attempt=$TORCHELASTIC_RESTART_COUNT
(exec 3<>"/dev/tcp/$MASTER_ADDR/$MASTER_PORT") || exit 9
[ "$GLOO_SOCKET_IFNAME $NCCL_SOCKET_IFNAME" = "eth0 eth0" ] || exit 8
echo "$(hostname) $$ $attempt $RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT" >>"$FOLDER/began"
until [ -e "$FOLDER/end" ]; do sleep 0.05; done
EOF
  chmod +x "$folder/worker"
  export FOLDER=$folder OMP_NUM_THREADS=1
}

declare -A pids
ranks=1     # on each host
program=()  # instead of the worker

# start HOST FLAGS...: starts rankrun on the host.
start() {
  local host=$1
  shift
  ip netns exec "$host" unshare --uts --mount bash -c \
    'hostname $0 && mount --bind "$FOLDER/hosts${0#h}" /etc/hosts && exec "$@"' "$host" \
    "$rankrun" --rdzv-id netns -n $ranks --no-python "$@" "${program[@]:-$folder/worker}" \
    >"$folder/$host.out" 2>&1 &
  pids[$host]=$!
}

start_all() {
  local i
  for i in 1 2 3; do start h$i "$@"; done
}

# exits HOST CODE: rankrun on the host must end with this exit code.
exits() {
  wait "${pids[$1]}"
  local code=$?
  [ $code -eq "$2" ] || fail "$1 ended with $code, not with $2"
}

says() { grep -qs -- "$2" "$folder/$1.out"; }
has_begun() { [ "$(wc -l <"$folder/began")" -ge "$1" ]; }
worker_of() { awk -v host="$1" '$1 == host {pid = $2} END {print pid}' "$folder/began"; }
is_gone() { ! kill -0 "$1" 2>/dev/null; }
end_workers() { : >"$folder/end"; }

# check_master [ADDRESS]: all workers must have this MASTER_ADDR; default: the
# address of the host of rank 0.
check_master() {
  local expected
  expected=10.77.0.$(awk '$4 == 0 {print substr($1, 2)}' "$folder/began")
  [ -z "${1:-}" ] || expected=$1
  awk -v a="$expected" '$6 != a {bad = 1} END {exit bad}' "$folder/began" ||
    fail "MASTER_ADDR is not $expected"
}

forms_by_address() {
  start_all --nnodes 3 --rdzv-backend c10d --rdzv-endpoint 10.77.0.1
  await 30 "all workers begin" has_begun 3
  check_master
  end_workers
  for host in h1 h2 h3; do exits $host 0; done
}

# Hosts that share the user's home need no flag for the secret.
one_home_has_one_secret() {
  start_all --nnodes 3 --rdzv-backend c10d --rdzv-endpoint 10.77.0.1
  await 30 "all workers begin" has_begun 3
  [ "$(stat -c %a "$folder/config/rankrun/secret")" = 600 ] || fail "no secret was made"
  says h1 "without a job secret" && fail "h1 warns although there is a secret"
  end_workers
  for host in h1 h2 h3; do exits $host 0; done
}

two_homes_have_two_secrets() {
  local flags=(--nnodes 2 --rdzv-backend c10d --rdzv-endpoint 10.77.0.1)
  start h1 "${flags[@]}" --rdzv-conf join_timeout=10
  XDG_CONFIG_HOME=$folder/other start h2 "${flags[@]}"
  exits h2 201
  says h2 "wrong job secret" || fail "h2 does not print the reason"
  if [ -e /.dockerenv ] || [ -e /run/.containerenv ] || [ -n "${container:-}" ]; then
    # rankrun takes the hosts for containers, which do not copy files.
    says h2 "is from $folder/other/rankrun/secret; each container has a home of its own" ||
      fail "h2 does not name what containers share"
    exits h1 201
    return
  fi
  says h2 "the secret of node h2 is from $folder/other/rankrun/secret; .*: scp 10.77.0.1:" ||
    fail "h2 does not print the command that repairs it"
  cp "$folder/config/rankrun/secret" "$folder/other/rankrun/secret"
  XDG_CONFIG_HOME=$folder/other start h2 "${flags[@]}"
  await 30 "all workers begin" has_begun 2
  end_workers
  for host in h1 h2; do exits $host 0; done
}

# Ranks of one host share memory and reach the other host by TCP; rankrun-bench
# checks all results.
ranks_of_two_hosts_use_both_transports() {
  ranks=2 program=("$(dirname "$rankrun")/rankrun-bench" all --max-bytes 1M --factor 64
    --iters 1 --batches 1)
  for i in 1 2; do
    RANKRUN_HOST_ID=h$i RANKRUN_LOG=info \
      start h$i --nnodes 2 --rdzv-backend c10d --rdzv-endpoint 10.77.0.1
  done
  for host in h1 h2; do exits $host 0; done
  for host in h1 h2; do
    says $host "rank . of 4: backend hierarchical, as " || fail "$host has another backend"
  done
}

forms_by_master_address() {
  for i in 3 2 1; do start h$i --nnodes 3 --node-rank $((i - 1)) --master-addr 10.77.0.1; done
  await 30 "all workers begin" has_begun 3
  check_master 10.77.0.1
  awk '$1 != "h" $4 + 1 {bad = 1} END {exit bad}' "$folder/began" || fail "wrong ranks"
  end_workers
  for host in h1 h2 h3; do exits $host 0; done
}

forms_by_name() {
  start_all --nnodes 3 --rdzv-backend c10d --rdzv-endpoint h1
  await 30 "all workers begin" has_begun 3
  [ "$(awk '$4 == 0 {print $1}' "$folder/began")" != h1 ] || check_master h1
  end_workers
  for host in h1 h2 h3; do exits $host 0; done
}

# As in some clusters, IPv4 works only within a host.
forms_by_ipv6_alone() {
  local i
  for i in 1 2 3; do
    ip -n h$i address flush dev eth0 to 10.77.0.0/24
    printf '127.0.0.1 localhost\nfd77::1 h1\n' >"$folder/hosts$i"
  done
  start_all --nnodes 3 --rdzv-backend c10d --rdzv-endpoint "$1"
  await 30 "all workers begin" has_begun 3
  end_workers
  for host in h1 h2 h3; do exits $host 0; done
}
forms_by_ipv6_address() { forms_by_ipv6_alone '[fd77::1]:29400'; }
forms_by_ipv6_name() { forms_by_ipv6_alone h1; }

form_with_timeout() {
  start_all --nnodes 2:3 --last-call 60 --rdzv-backend c10d --rdzv-endpoint 10.77.0.1 \
    --node-timeout "$1"
  await 30 "all workers begin" has_begun 3
}

lost_host_is_left_behind() {
  form_with_timeout 2
  local worker
  worker=$(worker_of h3)
  ip link set link3 down
  await 30 "the others continue" has_begun 5
  is_gone "$worker" || fail "the worker of h3 overlaps with the next attempt"
  [ "$(awk '$3 == 1 {print $1, $5}' "$folder/began" | sort | tr '\n' ' ')" = "h1 2 h2 2 " ] ||
    fail "the next attempt does not consist of h1 and h2"
  await 20 "h3 prints the reason" says h3 "lost the coordinator"
  exits h3 206
  end_workers
  for host in h1 h2; do exits $host 0; done
}

# kill_host HOST: kills guardian and agent there.
kill_host() {
  local agent
  agent=$(pgrep -P "${pids[$1]}" -x rankrun-agent) || fail "$1 has no agent"
  kill -KILL "${pids[$1]}" "$agent"
}

killed_host_is_lost_long_before_the_timeout() {
  start_all --nnodes 2:3 --last-call 60 --rdzv-backend c10d --rdzv-endpoint '[fd77::1]:29400' \
    --node-timeout 120 --max-restarts 0
  await 30 "all workers begin" has_begun 3
  local worker
  worker=$(worker_of h3)
  kill_host h3
  await 30 "the others continue" has_begun 5
  is_gone "$worker" || fail "the worker of h3 overlaps with the next attempt"
  for host in h1 h2; do
    says $host "node h3 is lost: its rankrun was killed (port [0-9]* refuses connections)" ||
      fail "$host does not print the cause"
  done
  end_workers
  for host in h1 h2; do exits $host 0; done
}

# h1 cannot connect to the liveness port of h3, so that a refusal would prove nothing.
killed_host_behind_a_firewall_is_silent() {
  ip -n h3 rule add pref 2 lookup local
  ip -n h3 rule del pref 0
  ip -n h3 rule add pref 1 from 10.77.0.1 ipproto tcp sport 32768-65534 dport 32768-65534 \
    prohibit || fail "h3 has no firewall"
  local i flags=(--nnodes 2:3 --last-call 60 --rdzv-backend c10d --rdzv-endpoint 10.77.0.1
    --node-timeout 2 --max-restarts 0)
  start h1 "${flags[@]}" --node-rank 1
  start h2 "${flags[@]}" --node-rank 0  # has the store, because h3 reaches h2 alone
  start h3 "${flags[@]}" --node-rank 2
  await 30 "all workers begin" has_begun 3
  kill_host h3
  await 30 "the others continue" has_begun 5
  says h1 "node h3 has been silent for 2.0 s" || fail "h1 does not print the cause"
  end_workers
  for host in h1 h2; do exits $host 0; done
}

blip_is_nothing() {
  form_with_timeout 4
  ip link set link3 down
  sleep 0.5  # shorter than the node timeout
  ip link set link3 up
  sleep 5  # longer than the node timeout
  end_workers
  for host in h1 h2 h3; do exits $host 0; done
  [ "$(wc -l <"$folder/began")" -eq 3 ] || fail "workers were started again"
}

lost_coordinator_ends_the_others() {
  form_with_timeout 2
  ip link set link1 down
  for host in h2 h3; do
    exits $host 206
    says $host "lost the coordinator" || fail "$host does not print the reason"
    is_gone "$(worker_of $host)" || fail "the worker of $host is left"
  done
}

# Each host finds only itself at the loopback address.
loopback_is_no_meeting_place() {
  start_all --nnodes 3 --rdzv-backend c10d --rdzv-endpoint localhost:29400 \
    --rdzv-conf join_timeout=2
  for host in h1 h2 h3; do
    exits $host 201
    says $host "1 of 3 nodes are here" || fail "$host does not print the nodes that are there"
    says $host "loopback" || fail "$host does not print why the others are missing"
  done
  has_begun 1 && fail "a worker has begun"
}

# asks_store HOST ADDRESS PORT: whether a store answers a client on the host. Sends
# the beginning of the protocol and a ping; fails with 1 if the store hangs up.
asks_store() {
  ip netns exec "$1" timeout 5 bash -c '
    exec 3<>"/dev/tcp/$0/$1" || exit 1
    printf "\0\316\367\205\074\015abcd" >&3
    read -r -N 4 answer <&3 && [ "$answer" = abcd ]' "$2" "$3" 2>/dev/null
}
port_of_store() { awk 'NR == 1 {print $7}' "$folder/began"; }

# add_second_network: connects the hosts by more interfaces, with 10.78.0.0/24.
add_second_network() {
  local i
  for i in 1 2 3; do
    ip link add second$i type veth peer name eth1 netns h$i
    ip link set second$i master bridge up
    ip -n h$i address add 10.78.0.$i/24 dev eth1
    ip -n h$i link set eth1 up
  done
  for i in 2 3; do await 20 "the second network forwards packets" reaches 10.78.0.$i; done
}

# run_beside_stranger FLAGS...: starts workers on h1 and h2, with the store on h1 at
# $port. The members must reach the store at every address, and h3 at none.
run_beside_stranger() {
  add_second_network
  asks_store h1 127.0.0.1 1 && fail "a store answers before there is one"
  start h1 --nnodes 2 --node-rank 0 "$@"
  start h2 --nnodes 2 --node-rank 1 "$@"
  await 30 "all workers begin" has_begun 2
  check_master 10.77.0.1
  port=$(port_of_store)
  local network
  for network in 77 78; do  # members did not dial 10.78 for the rendezvous
    asks_store h1 10.$network.0.1 "$port" || fail "the store refuses its own host at 10.$network"
    asks_store h2 10.$network.0.1 "$port" || fail "the store refuses a member at 10.$network"
  done
  asks_store h1 127.0.0.1 "$port" || fail "the store refuses its own host at 127.0.0.1"
  asks_store h2 fd77::1 "$port" || fail "the store refuses a member at fd77::1"
  asks_store h1 fd77::1 "$port" || fail "the store refuses its own host at fd77::1"
  local address
  for address in 10.77.0.1 10.78.0.1 fd77::1; do
    asks_store h3 $address "$port"
    [ $? -eq 1 ] || fail "the store does not hang up on a stranger at $address"
  done
}

store_is_closed_to_strangers() {
  run_beside_stranger --rdzv-backend c10d --rdzv-endpoint 10.77.0.1
  end_workers
  for host in h1 h2; do exits $host 0; done
}

shared_port_is_closed_to_strangers() {
  run_beside_stranger --max-restarts 1 --master-addr 10.77.0.1
  # Control connections are accepted from everywhere.
  start h3 --nnodes 2 --node-rank 1 --master-addr 10.77.0.1
  await 20 "the third node prints the refusal" says h3 "refuses this node"
  exits h3 201
  kill -KILL "$(worker_of h2)"
  await 20 "the next attempt begins" has_begun 4
  asks_store h2 10.78.0.1 "$port" || fail "the store of the next attempt refuses a member"
  asks_store h3 10.77.0.1 "$port" && fail "the store of the next attempt accepts a stranger"
  end_workers
  for host in h1 h2; do exits $host 0; done
}

# h3 writes to the port of the workers' store before the job starts.
nobody_plants_keys_before_the_start() {
  local rankctl
  rankctl=$(dirname "$rankrun")/rankctl
  start h1 --nnodes 2 --node-rank 0 --master-addr 10.77.0.1
  await 20 "the port is open" reaches_port h3
  ip netns exec h3 timeout 20 "$rankctl" store set --store 10.77.0.1:29500 planted yes &
  local planter=$!
  await 20 "the bytes of h3 are there" has_sent h3
  start h2 --nnodes 2 --node-rank 1 --master-addr 10.77.0.1
  await 30 "all workers begin" has_begun 2
  wait $planter && fail "a stranger wrote to the store"
  [ "$(ip netns exec h1 "$rankctl" store list --store 10.77.0.1:29500 'planted*')" = "" ] ||
    fail "a key that a stranger planted is there"
  end_workers
  for host in h1 h2; do exits $host 0; done
}
reaches_port() { ip netns exec "$1" bash -c 'exec 3<>/dev/tcp/10.77.0.1/29500' 2>/dev/null; }
has_sent() { ip netns exec "$1" ss -Htin dst 10.77.0.1:29500 | grep -q bytes_acked; }

# start_store_of_one FLAGS...: starts a job of one node on h1 whose store listens
# at 10.77.0.1.
start_store_of_one() {
  export GLOO_SOCKET_IFNAME=eth0 NCCL_SOCKET_IFNAME=eth0  # rankrun leaves them on one node
  start h1 --master-addr 10.77.0.1 --master-port 29555 "$@"
  await 30 "the worker begins" has_begun 1
  asks_store h1 127.0.0.1 29555 || fail "the store refuses its own host at 127.0.0.1"
  asks_store h1 10.77.0.1 29555 || fail "the store refuses its own host at 10.77.0.1"
}

one_nodes_store_is_closed_to_other_hosts() {
  start_store_of_one
  asks_store h2 10.77.0.1 29555
  [ $? -eq 1 ] || fail "the store does not hang up on another host"
  end_workers
  exits h1 0
}

one_nodes_store_may_be_open() {
  start_store_of_one --store-open
  asks_store h2 10.77.0.1 29555 || fail "the open store refuses another host"
  end_workers
  exits h1 0
}

# As torchft's replica groups do, workers of other hosts use the store of this job.
torchruns_store_has_the_name_of_its_host() {
  ln -s "$rankrun" "$folder/torchrun"
  printf '127.0.0.1 localhost\n10.77.0.1 h1.cluster h1\n' >"$folder/hosts1"
  export GLOO_SOCKET_IFNAME=eth0 NCCL_SOCKET_IFNAME=eth0
  rankrun=$folder/torchrun start h1 --rdzv-backend c10d
  await 30 "the worker begins" has_begun 1
  check_master h1.cluster
  says h1 "can connect to the port of the workers' store" || fail "h1 prints no warning"
  asks_store h2 10.77.0.1 "$(port_of_store)" || fail "the store refuses another host"
  end_workers
  exits h1 0
}

# The host of the endpoint cannot resolve its own name at first, as in clusters that
# create names while hosts start.
endpoints_name_comes_late() {
  printf '127.0.0.1 localhost\n' >"$folder/hosts1"
  start_all --nnodes 3 --rdzv-backend c10d --rdzv-endpoint h1
  await 20 "h1 resolves its name again" says h1 "h1.*trying again for up to 600"
  says h2 "trying again" && fail "h2 resolves the name again although it is not h1"
  # Written in place, because the file is mounted.
  printf '127.0.0.1 localhost\n127.0.1.1 h1\n10.77.0.2 h2\n10.77.0.3 h3\n' >"$folder/hosts1"
  await 30 "all workers begin" has_begun 3
  end_workers
  for host in h1 h2 h3; do exits $host 0; done
}

endpoints_name_never_comes() {
  printf '127.0.0.1 localhost\n' >"$folder/hosts1"
  start h1 --nnodes 2 --rdzv-backend c10d --rdzv-endpoint h1 --rdzv-conf join_timeout=2
  exits h1 201
  says h1 "found no coordinator within 2.0 s: h1:29400: look up h1" ||
    fail "h1 does not print the reason"
}

# Hosts may know the first host by different names.
endpoints_are_ways_to_one_host() {
  printf '127.0.0.1 localhost\n' >"$folder/hosts2"
  local i flags=(--nnodes 3 --rdzv-backend c10d --rdzv-endpoint h1,10.77.0.1)
  for i in 1 2 3; do start h$i "${flags[@]}" --node-rank $((i - 1)); done
  await 30 "all workers begin" has_begun 3
  [ "$(awk '{print $1, $6}' "$folder/began" | sort | tr '\n' ' ')" = \
    "h1 h1 h2 10.77.0.1 h3 h1 " ] || fail "MASTER_ADDR does not reach h1"
  says h1 "is this host" && fail "h1 warns although the endpoint is this host"
  end_workers
  for host in h1 h2 h3; do exits $host 0; done
}

only_the_first_endpoint_has_the_coordinator() {
  local flags=(--nnodes 2 --rdzv-backend c10d --rdzv-conf join_timeout=3
    --rdzv-endpoint 10.77.0.1,10.77.0.2,10.77.0.3:29401)
  for i in 2 3; do start h$i "${flags[@]}"; done
  for i in 2 3; do
    exits h$i 201
    says h$i "10.77.0.$i is this host, but the coordinator runs only at the first endpoint, 10.77.0.1" ||
      fail "h$i does not print that it has no coordinator"
    says h$i "10.77.0.1:29400: .*10.77.0.2:29400: .*10.77.0.3:29401: " ||
      fail "h$i does not print all endpoints"
  done
  for i in 1 2; do start h$i "${flags[@]}"; done
  await 30 "all workers begin" has_begun 2
  end_workers
  for i in 1 2; do exits h$i 0; done
}

coordinator_listens() {
  ip netns exec h1 bash -c 'exec 3<>/dev/tcp/10.77.0.1/29400' 2>/dev/null
}

# h3 passes port 29400 on to h1, as a published port of a container does. It is no way
# to the store, nor from h1 to itself.
endpoint_may_be_a_gateway() {
  cat >"$folder/gateway" <<'EOF'
import select, socket
listener = socket.create_server(("10.77.0.3", 29400))
other_end = {}
while True:
    for ready in select.select([listener, *other_end], [], [])[0]:
        if ready is listener:
            near, peer = listener.accept()
            if peer[0] == "10.77.0.1":
                near.close()
                continue
            far = socket.create_connection(("10.77.0.1", 29400))
            other_end |= {near: far, far: near}
            continue
        data = ready.recv(65536)
        if data:
            other_end[ready].sendall(data)
        else:
            other_end.pop(other_end.pop(ready)).close()
            ready.close()
EOF
  ip netns exec h3 python3 "$folder/gateway" 2>"$folder/gateway.out" &
  local flags=(--nnodes 2 --rdzv-backend c10d --rdzv-endpoint 10.77.0.3)
  start h1 "${flags[@]}" --rdzv-conf is_host=1
  await 20 "the coordinator listens" coordinator_listens
  start h2 "${flags[@]}" --rdzv-conf is_host=0
  await 30 "all workers begin" has_begun 2
  check_master
  says h1 "NAT" && fail "h1 takes the gateway for the address of h2"
  for i in 1 2; do
    asks_store h$i "$(awk 'NR == 1 {print $6}' "$folder/began")" "$(port_of_store)" ||
      fail "h$i cannot use the store"
  done
  end_workers
  for i in 1 2; do exits h$i 0; done
}

make_hosts
$case
echo "passed: $case"
