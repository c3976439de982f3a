#!/usr/bin/env bash
# emulated.sh WHEEL [ARCH]: runs the programs of a wheel for another machine (default: aarch64), and a
# program in C that uses its library, by qemu. Needs scripts/wheel.sh's packages for that machine.
set -eu
arch=${2:-aarch64}
qemu=$(command -v "qemu-$arch-static")
# So that the kernel starts programs for that machine by qemu, here and in what they start, and
# nowhere else.
if [ -z "${RANKRUN_TEST_EMULATED:-}" ]; then
  exec env RANKRUN_TEST_EMULATED=1 unshare --user --map-root-user --mount "$0" "$@"
fi
case $arch in
  aarch64) machine='\xb7\x00' ;;
  *) echo "emulated.sh: ARCH is $arch: want aarch64" >&2; exit 2 ;;
esac
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00'$machine
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
echo ":$arch:M::$magic:$mask:$qemu:F" >/proc/sys/fs/binfmt_misc/register
export QEMU_LD_PREFIX=/usr/$arch-linux-gnu

source=$(cd "$(dirname "$0")/../.." && pwd)
wheel=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --root-user-action ignore --no-deps --target . --platform "manylinux_2_28_$arch" \
  --only-binary :all: "$wheel"
bin/rankrun --version
bin/rankrun -n 2 --no-python /bin/true
"$arch-linux-gnu-gcc" -o pi "$source/examples/c/pi.c" -Irankrun/include -Lrankrun/lib -l:librankrun.so.0 \
  -Wl,-rpath,"$PWD/rankrun/lib"
# By tcp: qemu shows a process another /proc/self/stat than the other processes see.
RANKRUN_BACKEND=tcp bin/rankrun -n 2 --no-python ./pi
