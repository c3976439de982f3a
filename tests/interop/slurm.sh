#!/usr/bin/env bash
# A real SLURM of three nodes on this host. srun starts jobs there without any
# flag about nodes or ranks. Everything runs in private namespaces, so nothing
# remains after the test.
# Usage: slurm.sh RANKRUN     77: SLURM is not installed, or not permitted here
set -u
rankrun=$1

if [ -z "${SLURM_TEST_INSIDE:-}" ]; then
  PATH=$PATH:/usr/sbin:/sbin
  for program in slurmctld slurmd srun munged unshare ip; do
    command -v $program >/dev/null || { echo "skipped: there is no $program"; exit 77; }
  done
  own=(unshare --mount --net --pid --uts --ipc --fork --kill-child)
  if [ "$(id -u)" -ne 0 ] || ! "${own[@]}" true 2>/dev/null; then
    echo "skipped: namespaces are not permitted here"
    exit 77
  fi
  export SLURM_TEST_INSIDE=1
  exec "${own[@]}" "$0" "$@"
fi

. "$(dirname "$0")/../process/cluster.sh"

nodes_are_idle() { [ "$(sinfo -h -o %T%D 2>/dev/null)" = idle3 ]; }

start_slurm() {
  make_folder
  chmod 755 "$folder"
  hostname host
  ip link set lo up
  ip address add 10.78.0.1/24 dev lo  # SLURM wants an address beyond loopback
  printf '127.0.0.1 localhost\n10.78.0.1 host n1 n2 n3\n' >"$folder/hosts"
  mount --bind "$folder/hosts" /etc/hosts
  head -c 1024 /dev/urandom >"$folder/key"
  chmod 400 "$folder/key"
  mkdir -m 755 /run/munge
  munged --force --key-file="$folder/key" --socket=/run/munge/munge.socket.2 --pid-file="$folder/munge.pid" \
    --log-file="$folder/munge.log" --seed-file="$folder/seed" 2>"$folder/munge.out" ||
    fail "munged does not start"
  export SLURM_CONF=$folder/slurm.conf
  cat >"$SLURM_CONF" <<EOF
ClusterName=test
SlurmctldHost=host
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=/run/munge/munge.socket.2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
KillWait=30
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/%n
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/%n.log
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/%n.pid
NodeName=n1 NodeHostname=host Port=17001 CPUs=2
NodeName=n2 NodeHostname=host Port=17002 CPUs=2
NodeName=n3 NodeHostname=host Port=17003 CPUs=2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
EOF
  mkdir "$folder"/{state,n1,n2,n3}
  slurmctld 2>"$folder/slurmctld.out" || fail "slurmctld does not start"
  for node in n1 n2 n3; do
    slurmd -N $node 2>"$folder/slurmd.out" || fail "slurmd does not start"
  done
  await 60 "the nodes are idle" nodes_are_idle
}

# runs CODE COMMAND...: runs the command, with its output in $folder/job.out.
runs() {
  local expected=$1 code
  shift
  cd /tmp || exit 1
  timeout 120 "$@" >"$folder/job.out" 2>&1
  code=$?
  [ $code -eq "$expected" ] || fail "$* ended with $code, not with $expected"
}
prints() { grep -q -- "$1" "$folder/job.out" || fail "the output lacks '$1'"; }

start_slurm
export OMP_NUM_THREADS=1

echo "== one job of two nodes"
runs 0 srun -N2 "$rankrun" -n 2 --no-python sh -c \
  'echo "rank $RANK of $WORLD_SIZE on $SLURMD_NODENAME, node rank $GROUP_RANK"'
for place in "0 of 4 on n1, node rank 0" "1 of 4 on n1, node rank 0" \
  "2 of 4 on n2, node rank 1" "3 of 4 on n2, node rank 1"; do
  prints "rank $place"
done

echo "== without a flag, munge hands the job's secret over"
runs 0 srun -N2 "$rankrun" -n 1 --no-python --explain true
prints "  secret        from munge"
runs 0 srun -N2 "$rankrun" -n 1 --no-python sh -c 'echo "rank $RANK of $WORLD_SIZE"'
prints "rank 1 of 2"
grep -q "without a job secret" "$folder/job.out" && fail "the job has no secret"
[ ! -e "$XDG_CONFIG_HOME" ] || fail "the user's own secret was made"
runs 201 srun -N2 sh -c \
  'if [ $SLURM_NODEID = 0 ]; then exec "$0" -n 1 --rdzv-conf join_timeout=8 --no-python true
   else exec "$0" -n 1 --insecure --no-python true; fi' "$rankrun"
prints "the job there gets its secret by munge, this node does not"

echo "== a worker of one node fails: all nodes restart, then all have the same exit code"
runs 0 srun -N3 "$rankrun" -n 1 --max-restarts 1 --no-python sh -c \
  'echo "attempt $TORCHELASTIC_RESTART_COUNT of rank $RANK"
   [ $TORCHELASTIC_RESTART_COUNT = 1 ] || [ $RANK != 2 ] || exit 7
   [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exec sleep 60'
for rank in 0 1 2; do prints "attempt 1 of rank $rank"; done
runs 7 srun -N2 "$rankrun" -n 1 --no-python sh -c '[ $RANK = 0 ] && exec sleep 60; exit 7'
prints "rank 1 on n2"

echo "== several tasks on a node are refused, and jobs of their own are not"
runs 2 srun -N1 -n2 "$rankrun" -n 1 --no-python true
runs 0 srun -N1 -n2 "$rankrun" --standalone -n 1 --no-python sh -c 'echo "world of $WORLD_SIZE"'
prints "world of 1"

echo "== in a batch script without srun: this node, and a warning about the others"
cat >"$folder/batch" <<EOF
#!/bin/sh
#SBATCH --nodes=2 --output=$folder/batch.out
$rankrun -n 1 --no-python sh -c 'echo "world of \$WORLD_SIZE"'
EOF
runs 0 sbatch --wait "$folder/batch"
grep -q "world of 1" "$folder/batch.out" || fail "the batch script's job did not run"
grep -q srun "$folder/batch.out" || fail "no warning about the second node"

echo "== scancel drains the job"
cat >"$folder/drained" <<EOF
#!/bin/sh
#SBATCH --nodes=2 --output=$folder/drained.out
srun $rankrun -n 1 --no-python sh -c 'trap "echo terminated >>$folder/terminated; exit 0" TERM; echo >>$folder/runs; while :; do sleep 0.1; done'
EOF
runs 0 sbatch --parsable "$folder/drained"
job=$(cat "$folder/job.out")
both_in() { [ -e "$folder/$1" ] && [ "$(wc -l <"$folder/$1")" -ge 2 ]; }
nobody_is_left() { [ -z "$(squeue -h -j "$job" 2>/dev/null)" ]; }
await 60 "both workers run" both_in runs
scancel "$job"
await 60 "both workers receive SIGTERM" both_in terminated
await 60 "the job is over" nobody_is_left
echo "passed"
