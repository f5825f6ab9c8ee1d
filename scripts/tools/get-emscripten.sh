#!/bin/bash
# get-vulkan-tools.sh's part "emscripten": PREFIX TMP. Debian 13's Emscripten 3.1.69 (relaxed SIMD needs it) on this
# system's clang 19 and node. Its own system libraries come prebuilt, so that a build needs no network and no warm-up.
set -euo pipefail
prefix=$1 tmp=$2
source "$(dirname "$0")/trixie-apt.sh"
llvm=/usr/lib/llvm-19/bin
for tool in "$llvm/clang" "$llvm/wasm-ld" "$llvm/llvm-ar"; do
    [[ -x $tool ]] || { echo "$tool is missing: install clang-19, lld-19 and llvm-19 (scripts/setup-debian.sh)" >&2; exit 1; }
done
[[ -d /usr/share/nodejs/acorn ]] || { echo "node-acorn is missing (scripts/setup-debian.sh)" >&2; exit 1; }

open_trixie_apt "$tmp/apt"
cd "$tmp/apt" && apt-get -qq download emscripten binaryen libc6 libstdc++6 libgcc-s1
mkdir -p "$tmp/new/binaryen/bin" "$tmp/bin"
# Left out: libraries for dynamic linking and Emscripten's own tests, half of its 1.7 GB.
unpack_debs "$tmp/new" --exclude='*/wasm32-emscripten/*pic' --exclude='./usr/share/emscripten/test' \
    --exclude='./usr/share/doc' >"$tmp/new/versions.txt"

# wasm-opt and its family run under the Debian 13 C library that comes with them.
home=$prefix/emscripten
run="exec $home/usr/lib64/ld-linux-x86-64.so.2 --library-path $home/usr/lib/x86_64-linux-gnu"
for tool in "$tmp"/new/usr/bin/wasm*; do
    name=$(basename "$tool")
    printf '#!/bin/sh\n%s %s/usr/bin/%s "$@"\n' "$run" "$home" "$name" >"$tmp/new/binaryen/bin/$name"
done
chmod +x "$tmp"/new/binaryen/bin/*

share=$tmp/new/usr/share/emscripten
mkdir -p "$share/node_modules"
rm -rf "$share/node_modules/acorn" && ln -s /usr/share/nodejs/acorn "$share/node_modules/acorn"
# FROZEN_CACHE: use the packaged libraries; without it the first build compiles them again for two minutes.
cat >"$share/.emscripten" <<END
LLVM_ROOT = '$llvm'
BINARYEN_ROOT = '$home/binaryen'
NODE_JS = '$(command -v node)'
FROZEN_CACHE = True
END
[[ -d $share/cache/sysroot/lib/wasm32-emscripten ]] || { echo "no prebuilt libraries in the package" >&2; exit 1; }
for tool in emcc em++ emar emranlib emcmake emsize; do
    [[ -e $share/$tool ]] || { echo "$tool not found in the package" >&2; exit 1; }
    printf '#!/bin/sh\nexec %s/usr/share/emscripten/%s "$@"\n' "$home" "$tool" >"$tmp/bin/$tool"
done
chmod +x "$tmp"/bin/*

rm -rf "$prefix/emscripten"
mv "$tmp/new" "$home"
cp -a --remove-destination "$tmp"/bin/. "$prefix/bin/"
