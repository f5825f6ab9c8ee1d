#!/bin/bash
# Builds the engine with its Vulkan recorder, its tests and the benchmark for 64-bit Arm and runs the tests under qemu: the
# instruction set NEON, the plans for a device and the recorder on a fake Vulkan table. Debian or Ubuntu on x86-64.
#   scripts/test-aarch64.sh [CTEST ARGS]     needs root only to install the compiler and qemu when they are missing
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
build=$root/build/aarch64
source "$root/scripts/install-packages.sh"
install_packages g++-aarch64-linux-gnu qemu-user-static googletest libhwy-dev
tools=${FOVEA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fovea}
cmake -S "$root" -B "$build" -G Ninja --toolchain "$root/cmake/Aarch64Toolchain.cmake" -DCMAKE_BUILD_TYPE=Release \
    -DFOVEA_TOOLS="$tools" -DFOVEA_VULKAN=ON -DFOVEA_BUILD_TESTS=ON -DFOVEA_BUILD_APPS=ON >&2
cmake --build "$build" --parallel "${FOVEA_JOBS:-$(nproc)}" >&2
ctest --test-dir "$build" -j"$(nproc)" --output-on-failure --no-tests=error "$@"
