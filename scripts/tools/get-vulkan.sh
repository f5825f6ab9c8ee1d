#!/bin/bash
# get-vulkan-tools.sh's part "vulkan": PREFIX TMP. Headers, shader compiler, validation layer, software driver.
set -euo pipefail
prefix=$1 tmp=$2
source "$(dirname "$0")/trixie-apt.sh"
lib=$prefix/usr/lib/x86_64-linux-gnu

open_trixie_apt "$tmp/apt"
apt-get -qq -y -d install libvulkan1 vulkan-validationlayers vulkan-tools glslang-tools spirv-tools libvulkan-dev \
    libvulkan-memory-allocator-dev libvulkan-volk-dev
apt-get -qq -y -d install -t trixie-backports mesa-vulkan-drivers
mkdir -p "$tmp/new/include" "$tmp/new/layers" "$tmp/new/bin"
unpack_debs "$tmp/new" >"$tmp/new/versions.txt"

# The compiler must see these headers and nothing else of Debian 13.
cp -al "$tmp"/new/usr/include/{vulkan,vk_video} "$tmp/new/include/"
for name in vk_mem_alloc.h volk.h volk.c; do
    find "$tmp/new/usr/include" -name "$name" -exec cp -l {} "$tmp/new/include/" \;
    [[ -e $tmp/new/include/$name ]] || { echo "$name not found in the packages" >&2; exit 1; }
done

# Manifests with the absolute path of the library: the loader looks nowhere else for a bare name under with-prefix.
absolute_manifest() { # MANIFEST LIBRARY
    sed "s#\"library_path\": *\"[^\"]*\"#\"library_path\": \"$2\"#" "$1"
}
absolute_manifest "$tmp"/new/usr/share/vulkan/icd.d/lvp_icd*.json "$lib/libvulkan_lvp.so" >"$tmp/new/lvp.json"
absolute_manifest "$tmp/new/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json" \
    "$lib/libVkLayer_khronos_validation.so" >"$tmp/new/layers/VkLayer_khronos_validation.json"

# usr-merged packages: the interpreter is below usr/.
run="exec $prefix/usr/lib64/ld-linux-x86-64.so.2 --library-path $lib"
wrapper() { # NAME: the script's body on standard input
    { echo '#!/bin/sh' && cat; } >"$tmp/new/bin/$1"
    chmod +x "$tmp/new/bin/$1"
}
for tool in glslang glslangValidator spirv-as spirv-cfg spirv-dis spirv-opt spirv-val vulkaninfo; do
    [[ -e $tmp/new/usr/bin/$tool ]] || { echo "$tool not found in the packages" >&2; exit 1; }
    echo "$run $prefix/usr/bin/$tool \"\$@\"" | wrapper "$tool"
done
wrapper with-prefix <<END
export VK_LAYER_PATH=$prefix/layers
$run "\$@"
END
wrapper with-mesa26 <<END
export VK_DRIVER_FILES=$prefix/lvp.json VK_LAYER_PATH=$prefix/layers
$run "\$@"
END

rm -rf "${prefix:?}/usr" "$prefix/layers"
mkdir -p "$prefix/bin" "$prefix/include"
cp -a --remove-destination "$tmp"/new/bin/. "$prefix/bin/"
rm -rf "$prefix"/include/{vulkan,vk_video} && cp -a --remove-destination "$tmp"/new/include/. "$prefix/include/"
mv "$tmp/new/usr" "$tmp/new/layers" "$tmp/new/lvp.json" "$tmp/new/versions.txt" "$prefix/"
"$prefix/bin/glslang" --version | head -n 1
"$prefix/bin/spirv-val" --version | head -n 1
