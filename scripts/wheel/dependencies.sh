#!/usr/bin/env bash
# Builds the libraries that a wheel contains: libuv, libsodium and hwloc as static ones of
# position-independent code; libdw and libelf as shared ones, because of their licence, with the
# zlib and liblzma that they need inside. The sources are those of Debian's packages.
# Usage: dependencies.sh ARCH FOLDER
# FOLDER: has the stubs (stubs.sh) and gets deps/. Builds nothing twice.
set -eu
arch=$1 folder=$(cd "$2" && pwd)
deps=$folder/deps
work=$folder/deps-work
[ -f "$deps/done" ] && exit 0
rm -rf "$deps" "$work"
mkdir -p "$deps/lib" "$deps/include" "$deps/licenses" "$work/lists/partial"
case $arch in
  "$(uname -m)") cross='' ;;
  *) cross=$arch-linux-gnu- ;;
esac
export CC="${cross}gcc" AR="${cross}ar" RANLIB="${cross}ranlib"
export CFLAGS="-O2 -fPIC -I$deps/include"
# Against the stubs, so that a configure script finds no newer function.
export LDFLAGS="-B$folder/glibc -L$folder/glibc -L$deps/lib"
export LIBS="$folder/libnewer_glibc.a -lpthread"

# unpack PACKAGE: leaves the folder work/PACKAGE.
unpack() {
  dpkg-source --no-check -x "$work/${1}"_*.dsc "$work/$1" >/dev/null
}

# run NAME COMMAND...: keeps the output, and prints it if the command fails.
run() {
  local log=$work/$1.log
  shift
  "$@" >>"$log" 2>&1 || { tail -n 30 "$log" >&2; echo "dependencies.sh: failed: $*" >&2; exit 1; }
}

# configured PACKAGE ARGUMENT...
configured() {
  local name=$1
  shift
  cd "$work/$name"
  run "$name" ./configure --host="$arch-linux-gnu" --prefix="$deps" --libdir="$deps/lib" "$@"
}

fetch() {
  cd "$work"
  . /etc/os-release
  echo "deb-src http://deb.debian.org/debian $VERSION_CODENAME main" >sources.list
  local apt=(apt-get -q -o "Dir::Etc::SourceList=$PWD/sources.list"
    -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$PWD/lists" -o APT::Sandbox::User=root)
  run fetch "${apt[@]}" update
  run fetch "${apt[@]}" source --download-only libuv1 libsodium hwloc zlib xz-utils elfutils
}

build_uv() {
  unpack libuv1
  run libuv1 cmake -S "$work/libuv1" -B "$work/libuv1/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_COMPILER="$CC" -DBUILD_TESTING=OFF
  run libuv1 ninja -C "$work/libuv1/build" uv_a
  cp "$work/libuv1/build/libuv_a.a" "$deps/lib/libuv.a"
  cp "$work/libuv1/LICENSE" "$deps/licenses/libuv"
}

build_sodium() {
  unpack libsodium
  cd "$work/libsodium"
  run libsodium ./autogen.sh -s
  configured libsodium --disable-shared --with-pic
  run libsodium make -j"$(nproc)"
  run libsodium make install
  cp LICENSE "$deps/licenses/libsodium"
}

build_hwloc() {
  unpack hwloc
  configured hwloc --disable-shared --enable-static --with-pic --disable-libxml2 --disable-cairo \
    --disable-io --disable-plugin-dlopen --disable-readme
  run hwloc make -j"$(nproc)" -C include install
  run hwloc make -j"$(nproc)" -C hwloc install
  cp COPYING "$deps/licenses/hwloc"
}

build_compression() {
  unpack zlib
  cd "$work/zlib"
  CHOST=$arch-linux-gnu run zlib ./configure --static --prefix="$deps"
  run zlib make -j"$(nproc)" libz.a
  cp libz.a "$deps/lib/" && cp zlib.h zconf.h "$deps/include/"
  cp LICENSE "$deps/licenses/zlib"
  unpack xz-utils
  configured xz-utils --disable-shared --with-pic --disable-nls --disable-xz --disable-xzdec \
    --disable-lzmadec --disable-lzmainfo --disable-scripts --disable-doc
  run xz-utils make -j"$(nproc)" install
  cp COPYING "$deps/licenses/xz"
}

# rankrun-stacks reads stacks and names of functions: no debuginfod, no tools.
build_elfutils() {
  unpack elfutils
  configured elfutils --disable-debuginfod --disable-libdebuginfod --disable-nls --without-bzlib \
    --without-zstd --disable-demangler
  local part
  for part in config lib libelf libcpu backends libebl libdwelf libdwfl libdw; do
    run elfutils make -j"$(nproc)" -C $part
  done
  for part in elf dw; do
    cp -L "lib$part/lib$part.so.1" "$deps/lib/" 2>/dev/null || cp "lib$part/lib$part.so" "$deps/lib/lib$part.so.1"
    patchelf --set-rpath "\$ORIGIN" "$deps/lib/lib$part.so.1"
    "${cross}strip" --strip-unneeded "$deps/lib/lib$part.so.1"
  done
  cat COPYING COPYING-LGPLV3 COPYING-GPLV2 >"$deps/licenses/elfutils"
}

# The licences of the headers, and of the compiler's libraries, that become part of the programs.
copy_licenses() {
  local package
  for package in libspdlog-dev libfmt-dev nlohmann-json3-dev libcli11-dev libstdc++-12-dev; do
    cp -L "/usr/share/doc/$package/copyright" "$deps/licenses/$package"
  done
}

fetch
copy_licenses
build_uv
build_sodium
build_hwloc
build_compression
build_elfutils
rm -rf "$work"
touch "$deps/done"
