#!/usr/bin/env bash
# Writes what a link against glibc 2.28 and an old libstdc++ needs: stubs of their libraries, which
# have the symbols but no code. Usage: stubs.sh ARCH FOLDER
# ARCH: x86_64 or aarch64. Needs g++ for it, and ziglang and pyelftools for `python3`.
set -eu
arch=$1 folder=$2
tools=$(cd "$(dirname "$0")" && pwd)
case $arch in
  "$(uname -m)") cross='' ;;
  *) cross=$arch-linux-gnu- ;;
esac
glibc=$folder/glibc cxx=$folder/cxx
rm -rf "$folder"
mkdir -p "$glibc" "$cxx" "$folder/work"

# Zig has the symbols of all versions of glibc, and makes these files for its own links.
echo 'int main(void) { return 0; }' >"$folder/work/empty.c"
python3 -m ziglang cc -target "$arch-linux-gnu.2.28" -fPIE -pie -v "$folder/work/empty.c" \
  -o "$folder/work/empty" 2>&1 | grep -o '[^ "]*/\(Scrt1\.o\|lib[a-z_-]*\.so\.[0-9]\|libc_nonshared\.a\)' |
  sort -u >"$folder/work/files"
while read -r file; do cp "$file" "$glibc/"; done <"$folder/work/files"
for file in libc.so.6 libpthread.so.0 libm.so.6 libdl.so.2 librt.so.1 libld.so.2 libc_nonshared.a Scrt1.o; do
  [ -f "$glibc/$file" ] || { echo "stubs.sh: zig has made no $file" >&2; exit 1; }
done
for name in pthread:0 m:6 dl:2 rt:1; do ln -s "lib${name%:*}.so.${name#*:}" "$glibc/lib${name%:*}.so"; done
# libld is the loader.
echo "GROUP ( libc.so.6 libc_nonshared.a AS_NEEDED ( libld.so.2 ) )" >"$glibc/libc.so"

# The limits of manylinux_2_28, which are those of PyTorch. Newer symbols come from the static library.
stub() {
  local library=$1 soname=$2
  shift 2
  python3 "$tools/stub.py" "$("${cross}g++" -print-file-name="$library")" "$folder/work/$soname" "$@"
  "${cross}gcc" -shared -nostdlib -o "$cxx/$soname" "$folder/work/$soname/stub.s" \
    -Wl,-soname,"$soname" -Wl,--version-script="$folder/work/$soname/stub.map"
}
stub libstdc++.so.6 libstdc++.so.6 GLIBCXX_3.4.24 CXXABI_1.3.11
stub libgcc_s.so.1 libgcc_s.so.1 GCC_7.0.0
echo "INPUT ( libstdc++.so.6 $("${cross}g++" -print-file-name=libstdc++.a) )" >"$cxx/libstdc++.so"
echo "GROUP ( libgcc_s.so.1 -lgcc )" >"$cxx/libgcc_s.so"

"${cross}gcc" -O2 -fPIC -Wall -Wextra -Werror -D_GNU_SOURCE -c "$tools/newer_glibc.c" -o "$folder/work/newer_glibc.o"
"${cross}ar" rcs "$folder/libnewer_glibc.a" "$folder/work/newer_glibc.o"
rm -rf "$folder/work"
