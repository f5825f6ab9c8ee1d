#!/bin/bash
# get-vulkan-tools.sh's part "imgui": PREFIX TMP. Dear ImGui of Debian 13 built from its source package as a static
# library: the core, GLFW and Vulkan back ends. The Vulkan back end is compiled without prototypes, so that the
# program hands it a loader (ImGui_ImplVulkan_LoadFunctions) and nothing links to libvulkan.
set -euo pipefail
prefix=$1 tmp=$2
source "$(dirname "$0")/trixie-apt.sh"

open_trixie_apt "$tmp/apt" with-source
(cd "$tmp" && apt-get -qq source --download-only imgui)
dpkg-source --no-check -x "$tmp"/imgui_*.dsc "$tmp/source"
cd "$tmp/source"

flags=(-O2 -fPIC -std=c++17 -I. -Ibackends -isystem "$prefix/include"
    -DIMGUI_IMPL_VULKAN_NO_PROTOTYPES -DVK_NO_PROTOTYPES)
sources=(imgui.cpp imgui_demo.cpp imgui_draw.cpp imgui_tables.cpp imgui_widgets.cpp
    backends/imgui_impl_glfw.cpp backends/imgui_impl_vulkan.cpp misc/cpp/imgui_stdlib.cpp)
printf '%s\n' "${sources[@]}" | xargs -P 2 -I{} sh -c 'g++ "$@" -c {} -o "$(basename {} .cpp).o"' compile "${flags[@]}"
ar rcs libimgui.a ./*.o

rm -rf "$prefix/include/imgui"
mkdir -p "$tmp/include/imgui" "$prefix/lib"
cp imgui.h imconfig.h imgui_internal.h imstb_*.h backends/imgui_impl_{glfw,vulkan}.h misc/cpp/imgui_stdlib.h LICENSE.txt \
    "$tmp/include/imgui/"
mv libimgui.a "$prefix/lib/libimgui.a"
mv "$tmp/include/imgui" "$prefix/include/imgui"
grep -m1 'define IMGUI_VERSION ' "$prefix/include/imgui/imgui.h"
