#!/bin/bash
# Packs the component core of a build twice: from its own folder, and from a copy of the sources in another folder.
# The archives must be equal, byte by byte. Then configures the source archive where there is no glslang: its shaders
# must be those that the build compiled.
#   release.sh SOURCES BUILD FOLDER CMAKE TOOLS       FOLDER keeps what is made; TOOLS: the private tools, for Vulkan headers
set -euo pipefail
sources=$1 build=$2 folder=$3 cmake=$4 tools=$5
rm -rf "$folder"/{first,second,build,tools,fovea-*-source}
mkdir -p "$folder/tools/stamps"
export SOURCE_DATE_EPOCH=1700000000
# A command whose output matters only when it fails; a step that ends silently says which one it was.
trap 'echo "release.sh: line $LINENO failed" >&2' ERR
quietly() { "$@" >"$folder/log" 2>&1 || { cat "$folder/log" && return 1; }; }
quietly "$sources/scripts/release.sh" --core --build "$build" --out "$folder/first"
tar -C "$folder" -xzf "$folder"/first/fovea-*-source.tar.gz
unpacked=$(echo "$folder"/fovea-*-source)
(umask 077 && quietly "$unpacked/scripts/release.sh" --core --build "$build" --out "$folder/second")
diff "$folder/first/SHA256SUMS" "$folder/second/SHA256SUMS"
for wanted in include/fovea/fovea_vulkan.h /libfovea.a /libfovea.so /fovea-config.cmake /fovea.pc doc/fovea/LICENSE doc/fovea/fovea.spdx.json; do
    # Not `grep -q`, which closes the pipe early.
    tar -tzf "$(ls "$folder"/first/fovea-*-linux-*.tar.gz)" | grep -F "$wanted" >/dev/null || { echo "no $wanted"; exit 1; }
done

ln -s "$tools/include" "$folder/tools/include"
touch "$folder/tools/stamps/vulkan"
quietly "$cmake" -S "$unpacked" -B "$folder/build" -G Ninja -DCMAKE_MAKE_PROGRAM="$(command -v ninja)" -DCMAKE_C_COMPILER="$(command -v cc)" \
    -DCMAKE_CXX_COMPILER="$(command -v c++)" -DCMAKE_IGNORE_PATH="/usr/bin;/bin;/usr/local/bin" -DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF -DFOVEA_TOOLS="$folder/tools" \
    -DFOVEA_VULKAN=ON -DFOVEA_CORE_ONLY=ON -DFOVEA_BUILD_TESTS=OFF -DFOVEA_BUILD_APPS=OFF -DFOVEA_INSTALL=OFF
grep -F "no glslang found, so shaders are those of the release" "$folder/log" || { cat "$folder/log" && exit 1; }
quietly "$cmake" --build "$folder/build" --target fovea_shaders
# A build folder that is older than a change of the modules holds more files than these.
for words in "$folder"/build/engine/plan/vulkan/shaders/*.inc; do
    cmp "$build/engine/plan/vulkan/shaders/$(basename "$words")" "$words"
done
echo "equal bytes, and no shader compiler needed"
