# For scripts that make a cluster in namespaces of their own; their files are in $folder.

fail() {
  echo "FAILED: $*"
  tail -n 20 "$folder"/*.log "$folder"/*.out "$folder/began" 2>/dev/null
  exit 1
}

# await SECONDS WHAT COMMAND...: until the command succeeds.
await() {
  local until=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    [ $SECONDS -lt $until ] || fail "not within its time: $what"
    sleep 0.05
  done
}
