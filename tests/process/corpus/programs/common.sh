# For the shell programs of the corpus: sourced, never run.
attempt=${TORCHELASTIC_RESTART_COUNT:-0}

# Tells run.py and the other ranks that this rank has started.
ready() {
  echo $$ >"$CORPUS/.$attempt.$RANK"
  mv "$CORPUS/.$attempt.$RANK" "$CORPUS/ready.$attempt.$RANK"
}

wait_for_all() {
  other=0
  while [ $other -lt "$WORLD_SIZE" ]; do
    if [ -e "$CORPUS/ready.$attempt.$other" ]; then other=$((other + 1)); else sleep 0.02; fi
  done
}
