#!/bin/bash
# Installs the Debian 12 packages that building and testing Fovea needs. Needs root only when something is missing.
#   scripts/setup-debian12.sh           install what is missing
#   scripts/setup-debian12.sh --check   install nothing; exit 1 and name the packages when some are missing
# Everything newer than Debian 12 comes from scripts/get-vulkan-tools.sh, without root.
set -euo pipefail

packages=(
    # compilers and build tools; clang 14 carries libFuzzer, clang 19 is Emscripten's back end
    build-essential cmake ninja-build pkg-config ccache python3 git ca-certificates
    clang clang-format libclang-rt-14-dev clang-19 lld-19 llvm-19
    # Vulkan and the libraries linked
    libvulkan-dev vulkan-tools vulkan-validationlayers spirv-tools glslang-tools
    libglfw3-dev libgtest-dev libhwy-dev libpng-dev zlib1g-dev
    # the second Vulkan driver and the browser tests, programs with a window on a virtual display, fonts
    chromium xvfb xauth x11-utils fonts-dejavu-core fonts-inter node-acorn
)
# From bookworm-backports: Debian 12's own software Vulkan driver is too old (Vulkan 1.3, Mesa 22).
mesa_package=mesa-vulkan-drivers
mesa_minimum=25.0

# dpkg-query leaves out unknown packages (exit 1, which is expected here).
installed_packages() { dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true; }

missing_packages() {
    installed_packages "${packages[@]}" | awk '
        BEGIN { for (i = 1; i < ARGC; ++i) { wanted[++n] = ARGV[i]; delete ARGV[i] } }
        $1 == "installed" { have[$2] = 1 }
        END { for (i = 1; i <= n; ++i) if (!(wanted[i] in have)) print wanted[i] }' "${packages[@]}"
    command -v node >/dev/null || echo nodejs
    command -v npm >/dev/null || echo npm
}

mesa_is_new_enough() {
    local version
    version=$(dpkg-query -W -f '${db:Status-Status} ${Version}' "$mesa_package" 2>/dev/null) || return 1
    [[ $version == "installed "* ]] && dpkg --compare-versions "${version#installed }" ge "$mesa_minimum"
}

# The mirror this machine already uses for Debian 12.
debian_mirror() {
    local uri
    uri=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
        awk '$1 == "bookworm" && $2 ~ /debian\/?$/ { print $2; exit }')
    uri=${uri:-http://deb.debian.org/debian}
    echo "${uri%/}"
}

has_suite() { apt-get indextargets --format '$(RELEASE)' | grep -qx "$1"; }

mapfile -t missing < <(missing_packages)
mesa_is_new_enough || missing+=("$mesa_package (>= $mesa_minimum, from bookworm-backports)")
[[ ${#missing[@]} -gt 0 ]] || exit 0

if [[ ${1:-} == --check || $EUID -ne 0 ]]; then
    echo "fovea setup: missing packages: ${missing[*]}" >&2
    echo "fovea setup: this needs root; run:  sudo bash $(realpath "$0")" >&2
    exit 1
fi

export DEBIAN_FRONTEND=noninteractive
dpkg --configure -a # an earlier run may have been interrupted
mirror=$(debian_mirror)
has_suite bookworm-backports || echo "deb $mirror bookworm-backports main" >/etc/apt/sources.list.d/fovea-backports.list
apt_get=(apt-get -y -q --no-install-recommends -o DPkg::Lock::Timeout=300 -o APT::Cmd::Disable-Script-Warning=true)
apt-get -q -o DPkg::Lock::Timeout=300 update
mapfile -t missing < <(missing_packages)
if [[ ${#missing[@]} -gt 0 ]]; then
    "${apt_get[@]}" install "${missing[@]}"
fi
mesa_is_new_enough || "${apt_get[@]}" install -t bookworm-backports "$mesa_package"
