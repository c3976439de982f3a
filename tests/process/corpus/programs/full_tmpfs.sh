#!/bin/sh
# full_tmpfs.sh RANK PROGRAM: rank RANK runs PROGRAM FOLDER, with FOLDER a tmpfs of 64 KiB.
. "${0%/*}/common.sh"
ready
wait_for_all
[ "$RANK" = "$1" ] || exec sleep 60
mkdir -p "$CORPUS/tmpfs"
exec unshare --mount sh -c 'mount -t tmpfs -o size=64k tmpfs "$1" && exec "$2" "$1"' - "$CORPUS/tmpfs" "$2"
