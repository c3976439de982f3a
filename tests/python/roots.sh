#!/usr/bin/env bash
# roots.sh WHEEL [SUITE...]: installs a wheel in roots of Debian releases (default: bullseye, with glibc
# 2.31, and trixie) that have Python and no compiler, and runs the demo there. Needs to be root. Makes
# each root once, in build/roots.
set -eu
wheel=$(realpath "$1")
shift
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- bullseye trixie
mirror=http://deb.debian.org/debian
limit=60  # seconds, for the demo

make_root() {
  local suite=$1 root=build/roots/$1
  [ -e "$root/complete" ] && return
  scripts/setup.sh --packages-only debootstrap
  rm -rf "$root"
  mkdir -p build/roots
  debootstrap --variant=minbase --include=python3-venv "$suite" "$root" $mirror >"$root.log" ||
    { tail -n 5 "$root.log" >&2; return 1; }
  touch "$root/complete"
}

# Runs in a root of its own, with its own processes and mounts, which end with it.
in_root() {
  local root=$1
  shift
  unshare --mount --pid --fork sh -c '
    root=$1
    shift
    mount -t proc proc "$root/proc" && mount -t tmpfs tmpfs "$root/dev/shm" &&
      exec chroot "$root" "$@"' sh "$root" env -i PATH=/usr/bin:/bin HOME=/root LANG=C.UTF-8 "$@"
}

for suite in "$@"; do
  make_root "$suite"
  root=build/roots/$suite
  rm -rf "$root/env" "$root/wheels"
  mkdir "$root/wheels"
  cp "$wheel" "$root/wheels/"
  in_root "$root" python3 -m venv /env
  in_root "$root" /env/bin/pip install --quiet --no-index --find-links /wheels rankrun
  begin=$SECONDS
  in_root "$root" /env/bin/rankrun -n 4 -m rankrun.demo
  seconds=$((SECONDS - begin))
  [ $seconds -le $limit ] || { echo "roots.sh: $suite: the demo took $seconds s: want $limit" >&2; exit 1; }
  echo "$suite: $(in_root "$root" /env/bin/python --version), $seconds s"
done
