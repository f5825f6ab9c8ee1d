#!/bin/bash
# Makes the archives of a release: the sources with every shader as SPIR-V, and headers, libraries, static and shared, programs, CMake
# and pkg-config files, licence and bill of materials for this machine's kind. The same sources, compiler and tools give the
# same bytes: nothing in an archive tells a folder, a user or a time but the commit's.
#   scripts/release.sh [--core] [--target NAME]... [--check] [--out FOLDER] [--build FOLDER]
#     --core           only the component core, by the preset of that name
#     --target NAME    the component core for another kind of machine, too: aarch64 (Linux) or windows (x86-64, MinGW-w64)
#     --check          makes all a second time, from a copy in another folder and without a compiler cache, and compares
#     --out FOLDER     where the archives go, out/release
#     --build FOLDER   packs this build as it is, instead of making one
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
cache=${FOVEA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fovea}
core='' check='' given='' out=$root/out/release targets=()
fail() { echo "fovea: error: $*" >&2 && exit 2; }
while [[ $# -gt 0 ]]; do
    case $1 in
    --core) core=core ;;
    --check) check=1 ;;
    --target)
        case ${2-} in
        aarch64 | windows) targets+=("$2") ;;
        *) fail "--target is '${2-}'; it must be aarch64 or windows" ;;
        esac
        shift
        ;;
    --out | --build)
        [[ $# -gt 1 ]] || fail "$1 wants a folder"
        [[ $1 == --out ]] && out=$(realpath -m "$2") || given=$(realpath "$2")
        shift
        ;;
    *) fail "$1: the options are --core, --target NAME, --check, --out FOLDER and --build FOLDER" ;;
    esac
    shift
done
[[ -z $given || -z $check${targets[*]:-} ]] || fail "--check and --target make their own builds; they cannot be combined with --build"
source "$root/scripts/install-packages.sh"
source "$root/scripts/tools/own-folder.sh"
for target in "${targets[@]}"; do
    case $target in
    aarch64) install_packages g++-aarch64-linux-gnu libhwy-dev ;;
    windows) install_packages g++-mingw-w64-x86-64-posix libhwy-dev ;;
    esac
done
version=$(sed -n 's/^project(fovea VERSION \([0-9.]*\) .*/\1/p' "$root/CMakeLists.txt")
[[ -n $version ]] || fail "no version in CMakeLists.txt"
if [[ -z ${SOURCE_DATE_EPOCH:-} ]]; then
    SOURCE_DATE_EPOCH=$(git -c safe.directory='*' -C "$root" log -1 --format=%ct 2>/dev/null) ||
        fail "not in a repository: set SOURCE_DATE_EPOCH, the time of the release in seconds since 1970"
fi
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022

# Copies the files of the repository; from an archive's sources, everything that is not build output.
copy_sources() { # FROM TO
    mkdir -p "$2"
    if [[ -e $1/.git ]]; then
        git -c safe.directory='*' -C "$1" ls-files -z | tar -C "$1" --null -T - -cf - | tar -C "$2" -xf -
    else
        tar -C "$1" --exclude=./build --exclude=./out --exclude=node_modules --exclude=__pycache__ --exclude=./shaders/spirv \
            --exclude='./web/src/*_abi.ts' --exclude='./web/src/lessons/model_stories.ts' --exclude='./web/src/page/model_tables.ts' -cf - . | tar -C "$2" -xf -
    fi
}

pack() { # FOLDER NAME: FOLDER/NAME becomes FOLDER/NAME.tar.gz
    tar -C "$1" --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        --mode=u+rw,go=rX --remove-files -cf - "$2" | gzip -n9 >"$1/$2.tar.gz"
}

# One for each kind of build, so that none finds another's settings. For this machine where no TARGET is given.
build_folder() { # SOURCES [TARGET]
    local kind=${2-$core}
    echo "$1/build/release${kind:+-$kind}"
}

make_build() { # SOURCES [TARGET]
    local preset=${core:-release} toolchain=()
    case ${2-} in
    aarch64) preset=core toolchain=(--toolchain "$1/cmake/Aarch64Toolchain.cmake") ;;
    windows) preset=core toolchain=(--toolchain "$1/cmake/MingwToolchain.cmake") ;;
    esac
    # The programs start on any distribution: packages whose libraries have other names from one to the next are
    # linked in, and shards over MPI, whose libraries must be the machine's own, are for builds there.
    local settings=() name
    if [[ $preset == release ]]; then
        settings=(-DFOVEA_MPI=OFF)
        for name in FOVEA_UTF8PROC=utf8proc PNG_LIBRARY=png16 ZLIB_LIBRARY=z; do
            settings+=("-D${name%=*}=$(cc -print-file-name="lib${name#*=}.a")")
        done
    fi
    local build; build=$(build_folder "$@")
    cmake -S "$1" --preset "$preset" -B "$build" "${toolchain[@]}" "${settings[@]}" -DFOVEA_TOOLS="$cache" \
        -DFOVEA_WARNINGS_AS_ERRORS="$([[ ${CI:-} == true ]] && echo ON || echo OFF)" >&2
    cmake --build "$build" --parallel "${FOVEA_JOBS:-$(nproc)}" >&2
    [[ $preset == release ]] || return 0
    local foreign
    foreign=$(readelf -d "$build/bin/fovea" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
        grep -vxE 'lib(c|m|stdc\+\+|gcc_s|dl|pthread)\.so\.[0-9]+|ld-linux-x86-64\.so\.2' || true)
    [[ -z $foreign ]] || fail "the program fovea needs ${foreign//$'\n'/, }, which not every machine has by that name"
}

pack_binary() { # BUILD FOLDER NAME COMPONENT
    cmake --install "$1" --prefix "$2/$3" --strip ${4:+--component "$4"} >/dev/null
    python3 "$root/scripts/bill_of_materials.py" --version "$version" --tools "$cache" "$2/$3" >"$2/fovea.spdx.json"
    mv "$2/fovea.spdx.json" "$(dirname "$(find "$2/$3" -name CHANGELOG.md)")"
    pack "$2" "$3"
}

pack_build() { # SOURCES BUILD FOLDER
    local sources=fovea-$version-source
    own_folder "$3"
    pack_binary "$2" "$3" "fovea-$version-linux-$(uname -m)${core:+-core}" "$core"
    copy_sources "$1" "$3/$sources"
    mkdir -p "$3/$sources/shaders/spirv"
    # By name: a build folder keeps modules that there are no more.
    sed -n 's/^FOVEA_SHADER(\([a-z0-9_]*\),.*/\1/p' "$1/shaders/variants.def" | while read -r name; do
        cp "$2/engine/plan/vulkan/shaders/$name.spv" "$3/$sources/shaders/spirv/"
    done
    pack "$3" "$sources"
    for target in "${targets[@]}"; do
        case $target in
        aarch64) pack_binary "$(build_folder "$1" "$target")" "$3" "fovea-$version-linux-aarch64-core" core ;;
        windows) pack_binary "$(build_folder "$1" "$target")" "$3" "fovea-$version-windows-x86_64-core" core ;;
        esac
    done
    (cd "$3" && sha256sum -- *.tar.gz >SHA256SUMS)
}

make_builds() { # SOURCES
    make_build "$1"
    for target in "${targets[@]}"; do make_build "$1" "$target"; done
}

[[ -n $given ]] || make_builds "$root"
pack_build "$root" "${given:-$(build_folder "$root")}" "$out"
if [[ -n $check ]]; then
    again=$(mktemp -d)
    trap 'rm -rf "$again"' EXIT
    copy_sources "$root" "$again/fovea"
    (export CCACHE_DISABLE=1 && make_builds "$again/fovea")
    pack_build "$again/fovea" "$(build_folder "$again/fovea")" "$again/out"
    diff "$out/SHA256SUMS" "$again/out/SHA256SUMS" || fail "the second build has other bytes than the first"
    echo "fovea: made twice, equal bytes" >&2
fi
cat "$out/SHA256SUMS"
