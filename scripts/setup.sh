#!/usr/bin/env bash
# Installs the Debian packages that rankrun is built from, and builds TARGET
# (default: programs, all programs and libraries) with the preset release in
# build/release. With --packages-only, installs these and further packages, and
# builds nothing. Repeats nothing that is done already.
# Usage: scripts/setup.sh [TARGET | --packages-only [PACKAGE...]]     as root, or with sudo.
set -eu
cd "$(dirname "$0")/.."

packages=(
  g++ cmake ninja-build ccache
  libcli11-dev nlohmann-json3-dev libuv1-dev libspdlog-dev libfmt-dev libgloo-dev libhwloc-dev
  libsodium-dev libmunge-dev libdlpack-dev libdw-dev libelf-dev
  python3-dev libgtest-dev libgmock-dev libbenchmark-dev libeigen3-dev gdb
)

[ "${1:-}" = --packages-only ] && packages+=("${@:2}")
missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing+=("$package")
done

if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "setup.sh: to install ${missing[*]} it must be run as root, or sudo be there" >&2
      exit 1
    }
    as_root=(sudo)
  fi
  echo "== installing ${missing[*]}"
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}"
fi

[ "${1:-}" = --packages-only ] && exit 0

echo "== building in build/release"
[ -f build/release/build.ninja ] || cmake --preset release >/dev/null
ninja -C build/release "${1:-programs}"
