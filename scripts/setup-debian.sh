#!/bin/bash
# Installs the distribution's packages that building and testing Fovea needs, on Debian 12, Debian 13 and Ubuntu 24.04.
# Needs root only when something is missing.
#   scripts/setup-debian.sh [--KIND] [--check | --list]
#       --build (default)  everything that is compiled    --tests     what only the tests need
#       --run              the command line               --python    the builder of Python wheels
#       --visualizer       the visualizer                 --browsers  Firefox and WebKit
#       --web              the web page                   --library   the library (preset core)
#       --docs             the documentation site
#   --check installs nothing; exits 1 and names the packages when some are missing. --list only names them.
# Everything newer than Debian 12 comes from scripts/get-vulkan-tools.sh, without root.
set -euo pipefail

codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-unknown}")
# The packages that every program needs, and the libraries and the font of the command line.
run=(build-essential cmake ninja-build pkg-config ccache ca-certificates file libvulkan1
    libhwy-dev libpng-dev libstb-dev libutf8proc-dev zlib1g-dev fonts-dejavu-core fonts-inter)
window=(libglfw3-dev libfribidi-dev)
# clang 19 is Emscripten's back end, acorn its parser.
web=(python3 clang-19 lld-19 llvm-19 node-acorn)
# clang carries libFuzzer.
build=(git doxygen clang clang-format libvulkan-dev vulkan-tools vulkan-validationlayers spirv-tools glslang-tools libgtest-dev
    python3 xvfb xauth x11-utils xdotool)
# Package and least version of what Debian 12 has too old, or not at all, so that there it comes from backports: a software
# Vulkan driver with Vulkan 1.4; --tests: the builder of Python wheels with the library that it reads versions by.
newer=("mesa-vulkan-drivers 25.0")
wheels=("python3-packaging 23.2" "python3-scikit-build-core 0.8")
newer_suite=
# Doxygen reads the headers, Sphinx makes the site.
docs=(git doxygen python3 python3-sphinx python3-myst-parser python3-breathe furo python3-sphinx-copybutton)
# Chromium brings the second Vulkan driver and runs the browser tests; without windows it takes a third less CPU time.
case $codename in
bookworm)
    build+=(libclang-rt-14-dev chromium-headless-shell)
    newer_suite=bookworm-backports
    ;;
trixie) build+=(libclang-rt-19-dev chromium-headless-shell) ;;
noble)
    run+=(debian-archive-keyring)
    build+=(libclang-rt-18-dev) # the Chromium is a snap, whose driver cannot be used
    wheels=() # built elsewhere: its builder was not tried
    ;;
*)
    echo "fovea setup: no list of packages for '$codename'" >&2
    exit 1
    ;;
esac

kind=--build
[[ ! ${1:-} =~ ^--(build|run|visualizer|web|tests|python|browsers|docs|library)$ ]] || { kind=$1 && shift; }
needs_node=no
case $kind in
--build)
    packages=("${run[@]}" "${window[@]}" "${web[@]}" "${build[@]}")
    needs_node=yes
    ;;
--run) packages=("${run[@]}") ;;
--visualizer) packages=("${run[@]}" "${window[@]}") ;;
--web)
    packages=("${run[@]}" "${web[@]}")
    newer=()
    needs_node=yes
    ;;
--tests)
    packages=(python3-pip python3-venv python3-numpy mypy advancecomp libopenmpi-dev openmpi-bin libmpich-dev mpich "${docs[@]}")
    newer=("${wheels[@]}")
    ;;
--python)
    packages=(python3-pip python3-venv python3-numpy advancecomp)
    newer=("${wheels[@]}")
    ;;
--browsers)
    packages=(firefox-esr webkit2gtk-driver)
    [[ $codename != noble ]] || packages=(webkit2gtk-driver) # the Firefox is a snap
    newer=()
    ;;
--docs)
    packages=("${docs[@]}")
    newer=()
    ;;
--library)
    packages=(build-essential cmake ninja-build libhwy-dev)
    # Elsewhere headers and glslang are too old: get-vulkan-tools.sh --library.
    if [[ $codename == trixie ]]; then packages+=(libvulkan-dev glslang-tools); else packages+=(ca-certificates); fi
    # By which Ubuntu's apt believes Debian's packages.
    [[ $codename != noble ]] || packages+=(debian-archive-keyring)
    newer=()
    ;;
esac

# dpkg-query leaves out unknown packages (exit 1, which is expected here).
installed_packages() { dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true; }

missing_packages() {
    installed_packages "${packages[@]}" | awk '
        BEGIN { for (i = 1; i < ARGC; ++i) { wanted[++n] = ARGV[i]; delete ARGV[i] } }
        $1 == "installed" { have[$2] = 1 }
        END { for (i = 1; i <= n; ++i) if (!(wanted[i] in have)) print wanted[i] }' "${packages[@]}"
    [[ $needs_node == no ]] || command -v node >/dev/null || echo nodejs
    [[ $needs_node == no ]] || command -v npm >/dev/null || echo npm
}

# Names of `newer` that are missing or too old.
missing_newer() {
    local package minimum version
    [[ ${#newer[@]} -gt 0 ]] || return 0
    while read -r package minimum; do
        version=$(dpkg-query -W -f '${db:Status-Status} ${Version}' "$package" 2>/dev/null) || version=
        [[ $version == "installed "* ]] && dpkg --compare-versions "${version#installed }" ge "$minimum" || echo "$package"
    done < <(printf '%s\n' "${newer[@]}")
}

source "$(dirname "$(realpath "$0")")/tools/debian-mirror.sh"

has_suite() { apt-get indextargets --format '$(RELEASE)' | grep -qx "$1"; }

mapfile -t missing < <(missing_packages)
mapfile -t old < <(missing_newer)
[[ ${#missing[@]} -gt 0 || ${#old[@]} -gt 0 ]] || exit 0

if [[ ${1:-} == --list ]]; then
    echo "${missing[*]} ${old[*]}"
    exit
fi
if [[ ${1:-} == --check || $EUID -ne 0 ]]; then
    echo "fovea setup: missing packages: ${missing[*]} ${old[*]}${newer_suite:+ (the last ${#old[@]} from $newer_suite)}" >&2
    echo "fovea setup: this needs root; run:  sudo bash $(realpath "$0") $kind" >&2
    exit 1
fi

export DEBIAN_FRONTEND=noninteractive
dpkg --configure -a # an earlier run may have been interrupted
if [[ -n $newer_suite && ${#newer[@]} -gt 0 ]] && ! has_suite "$newer_suite"; then
    mirror=$(debian_mirror "$codename")
    echo "deb $mirror $newer_suite main" >/etc/apt/sources.list.d/fovea-backports.list
fi
apt_get=(apt-get -y -q --no-install-recommends -o DPkg::Lock::Timeout=300)
apt-get -q -o DPkg::Lock::Timeout=300 update
mapfile -t missing < <(missing_packages)
if [[ ${#missing[@]} -gt 0 ]]; then
    "${apt_get[@]}" install "${missing[@]}"
fi
[[ ${#old[@]} -eq 0 ]] || "${apt_get[@]}" install ${newer_suite:+-t "$newer_suite"} "${old[@]}"
mapfile -t old < <(missing_newer)
[[ ${#old[@]} -eq 0 ]] || {
    echo "fovea setup: these packages of this system are too old: ${old[*]}; wanted: ${newer[*]}" >&2
    exit 1
}
