#!/bin/bash
# Builds the engine with its Vulkan recorder for Windows (MinGW-w64) and runs the unit, CPU and layer tests under Wine.
# Debian or Ubuntu on x86-64.
#   scripts/test-windows.sh [CTEST ARGS]     needs root only to install compiler and Wine when they are missing
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
build=$root/build/windows
source "$root/scripts/install-packages.sh"
install_packages g++-mingw-w64-x86-64-posix wine64 googletest libhwy-dev
# A separate folder for Wine, so that the user's is not touched, and no output except errors.
export WINEPREFIX=$build/wine WINEDEBUG=-all
cmake -S "$root" -B "$build" -G Ninja --toolchain "$root/cmake/MingwToolchain.cmake" -DCMAKE_BUILD_TYPE=Release \
    -DFOVEA_TOOLS="${FOVEA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fovea}" -DFOVEA_BUILD_TESTS=ON -DFOVEA_BUILD_APPS=OFF >&2
mkdir -p "$WINEPREFIX"
# Filling that folder takes longer than CMake waits for a test program to list its tests.
PATH=$PATH:/usr/lib/wine wine64 wineboot --init >/dev/null 2>&1 || true
cmake --build "$build" --parallel "${FOVEA_JOBS:-$(nproc)}" >&2
ctest --test-dir "$build" -j"$(nproc)" --output-on-failure --no-tests=error "$@"
