#!/bin/bash
# Puts tools that Debian 12 is too old for into a private folder, as an ordinary user, from Debian 13's packages.
# Nothing outside the folder is touched, and what is there already is not fetched again.
#   scripts/get-vulkan-tools.sh [--check] [--tests | --library | --only "PART ..."] [FOLDER]
#       FOLDER: ${FOVEA_CACHE:-~/.cache/fovea}
# --check installs nothing and exits 1 when a part is missing or older than this script's recipe. --tests adds what
# only the tests use; --library takes only the part that the library is built with (headers, glslang); --only names parts.
#
# FOLDER/include      Vulkan headers 1.4, volk.h and volk.c, vk_mem_alloc.h, imgui/: for the compiler (-isystem)
# FOLDER/lib          libimgui.a
# FOLDER/layers       the validation layer 1.4.309
# FOLDER/bin          glslang 15, spirv-val, spirv-dis ..., emcc; and
#   with-prefix PROGRAM   runs a program under Debian 13's C library and Vulkan loader (a real ELF path, no script)
#   with-mesa26 PROGRAM   the same on the software Vulkan driver that has cooperative matrices
# FOLDER/node         Node 20, only where the system's is older
# FOLDER/gpus         with --tests: what makes a driver believe in a GPU that is not there, see tools/get-gpus.sh
# FOLDER/usr          Debian 13's files as packaged; never link against the libraries in it (they need a newer libc)
# FOLDER/stamps       one file for each complete part: its recipe's number. FOLDER/versions.txt: what was unpacked
set -euo pipefail
here=$(dirname "$(realpath "$0")")
source "$here/tools/parts.sh"

check_only=no
parts=("${fovea_parts[@]}")
while [[ ${1:-} == --* ]]; do
    case $1 in
    --check) check_only=yes ;;
    --tests) parts+=("${fovea_test_parts[@]}") ;;
    --library) parts=(vulkan) ;;
    --only)
        read -ra parts <<<"$2"
        shift
        ;;
    *)
        echo "fovea setup: unknown option $1" >&2
        exit 2
        ;;
    esac
    shift
done
prefix=${1:-${FOVEA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fovea}}

missing=()
for part in "${parts[@]}"; do
    part_is_current "$prefix" "$part" || missing+=("$part")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0
if [[ $check_only == yes ]]; then
    echo "fovea setup: missing in $prefix: ${missing[*]}" >&2
    exit 1
fi

if [[ $(uname -m) != x86_64 ]] || ! command -v apt-get dpkg >/dev/null; then
    echo "fovea setup: the private tools are Debian packages for x86-64; use a Vulkan SDK or vcpkg here" >&2
    exit 1
fi
# The folder is replaced part by part, so it must be a folder that this script made.
if [[ -d $prefix && ! -d $prefix/stamps && -n $(ls -A "$prefix") ]]; then
    echo "fovea setup: $prefix holds something else; name an empty or new folder" >&2
    exit 1
fi
mkdir -p "$prefix/stamps"
prefix=$(realpath "$prefix")
exec 9>"$prefix/lock"
flock 9 # two checkouts may ask at the same time
for part in "${missing[@]}"; do
    part_is_current "$prefix" "$part" && continue # the other checkout has done it meanwhile
    echo "fovea setup: $part into $prefix"
    rm -rf "$prefix/tmp" "$prefix/stamps/$part"
    mkdir -p "$prefix/tmp"
    bash "$here/tools/get-$part.sh" "$prefix" "$prefix/tmp" >"$prefix/$part.log" 2>&1 || {
        echo "fovea setup: $part failed; the end of $prefix/$part.log:" >&2
        tail -n 20 "$prefix/$part.log" >&2
        exit 1
    }
    rm -rf "$prefix/tmp"
    part_number "$part" >"$prefix/stamps/$part"
done
