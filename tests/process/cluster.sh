# Functions for scripts that build a cluster in namespaces; its files are in $folder.

# make_folder: makes $folder in a private /run. Call it in new namespaces for
# mounts and processes.
make_folder() {
  mount -t proc proc /proc
  mount -t tmpfs none /run
  folder=$(mktemp -d -p /run)
  export TMPDIR=$folder
  export XDG_CONFIG_HOME=$folder/config  # a home that all hosts share
}

fail() {
  echo "FAILED: $*"
  tail -n 20 "$folder"/*.log "$folder"/*.out "$folder/began" 2>/dev/null
  exit 1
}

# await SECONDS WHAT COMMAND...: repeats the command until it succeeds.
await() {
  local seconds=$1 what=$2 until=$((SECONDS + $1))
  shift 2
  until "$@"; do
    [ $SECONDS -lt $until ] || fail "not within $seconds s: $what"
    sleep 0.05
  done
}
