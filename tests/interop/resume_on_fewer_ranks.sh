#!/bin/sh
# resume_on_fewer_ranks.sh RANKRUN VENV FSDP2: a rank of four crashes once; all continue from their
# checkpoint, and then two ranks do. Each step has the loss of a run without a crash.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
here=$(dirname "$0")
# train RANKS NAME ARGUMENT...
train() {
  ranks=$1 name=$2
  shift 2
  mkdir -p "$folder/$name"
  "$here/run.sh" "$rankrun" "$venv" -n "$ranks" --max-restarts 1 --prefix none "$program" \
    --checkpoint "$folder/$name" "$@" >"$folder/$name.log" 2>&1
  code=$?
  cat "$folder/$name.log"
  [ $code -eq 0 ] || exit $code
}
rankrun=$1 venv=$2 program=$3
train 3 whole --steps 15
grep '^step' "$folder/whole.log" >"$folder/wanted"
train 4 parts --steps 10 --crash-rank 2 --crash-step 8
cp "$folder/parts.log" "$folder/first.log"
train 2 parts --steps 15
cat "$folder/first.log" "$folder/parts.log" >"$folder/both.log"
for part in "cause: rank 2" "resumed at step 5 on 4 ranks" "resumed at step 10 on 2 ranks"; do
  grep -q "$part" "$folder/both.log" || { echo "missing in the output: $part"; exit 1; }
done
grep '^step' "$folder/both.log" | sort -u -k2n >"$folder/seen"
diff "$folder/wanted" "$folder/seen" || { echo "the losses differ"; exit 1; }
