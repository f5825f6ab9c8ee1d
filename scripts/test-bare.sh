#!/bin/bash
# Runs a command of ./dev on a copy of this checkout in a new Debian with nothing installed, made with debootstrap in
# FOLDER. Among the tests, the suite "consumer" installs the library and builds other projects against what was
# installed.
#   scripts/test-bare.sh FOLDER SUITE run|web    SUITE: bookworm (12) or trixie (13). ./dev run, or ./dev web up to its
#                                                page, timed, from empty caches
#   scripts/test-bare.sh FOLDER SUITE [ARGS]     ARGS go to ./dev test there; needs root (chroot)
#   scripts/test-bare.sh FOLDER SUITE --engine   shorter: what a host installs, without the programs: builds the
#                                                libraries, then the suites unit, kernels and consumer.
# The folder is kept and used again, except for `run` and `web`; one that holds something else is refused.
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
usage="usage: test-bare.sh FOLDER bookworm|trixie [run | web | --engine | ARGS of ./dev test]"
folder=${1:?$usage} suite=${2:?$usage}
shift 2
[[ $suite =~ ^(bookworm|trixie)$ ]] || { echo "fovea: the suite is '$suite'; it must be bookworm or trixie" >&2; exit 2; }
[[ $EUID -eq 0 ]] || { echo "fovea: this needs root; run:  sudo bash $(realpath "$0") $folder" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "fovea: install debootstrap first:  apt-get install debootstrap" >&2; exit 1; }

source "$root/scripts/tools/debian-mirror.sh"
source "$root/scripts/tools/own-folder.sh"
mirror=$(debian_mirror)
if [[ ${1:-} =~ ^(run|web)$ || ! -e $folder/ready || ! -e $folder/$own_folder_marker ]]; then
    own_folder "$folder"
    debootstrap --variant=minbase --include=ca-certificates "$suite" "$folder" "$mirror"
    touch "$folder/ready"
fi
cp /etc/resolv.conf "$folder/etc/resolv.conf"
# As an installed system has it: without it each process of MPI waits for a name server that does not know this machine.
cp /etc/hosts "$folder/etc/hosts"
# Copies the trusted certificates of this machine: downloads may come through a proxy with a private authority.
authorities=/usr/local/share/ca-certificates
find "$authorities" -name '*.crt' -exec cp -t "$folder$authorities" {} + 2>/dev/null || true

# A copy, so that this checkout's build folder stays as it is; the copy's own build folder is kept for the next time.
mkdir -p "$folder/fovea"
find "$folder/fovea" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
git -c safe.directory='*' -C "$root" ls-files -co --exclude-standard -z | (cd "$root" && xargs -0 ls -d 2>/dev/null) |
    tar -C "$root" -c -T - | tar -x --no-same-owner -C "$folder/fovea"

home=/root
# A system's file systems: processes, devices' topology (MPI counts cores by it) and terminals.
mounted() { mountpoint -q "$folder/$1"; }
mounted proc || mount -t proc proc "$folder/proc"
mounted sys || mount -t sysfs -o ro sysfs "$folder/sys"
mounted dev/pts || { mkdir -p "$folder/dev/pts" && mount -t devpts -o newinstance,ptmxmode=0666 devpts "$folder/dev/pts"; }
ln -sfn pts/ptmx "$folder/dev/ptmx"
trap 'for part in dev/pts sys proc; do ! mounted $part || umount "$folder/$part"; done' EXIT
inside() {
    chroot "$folder" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=$home LANG=C.UTF-8 CI="${CI:-}" \
        FOVEA_JOBS="${FOVEA_JOBS:-}" NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt "$@"
}
inside update-ca-certificates >/dev/null
if [[ ${1:-} =~ ^(run|web)$ ]]; then
    echo "$suite, nothing installed, empty caches: ./dev $1"
    inside /fovea/scripts/first-run.sh "$1"
    exit
fi
if [[ ${1:-} != --engine ]]; then
    time inside /fovea/dev test "$@"
    exit
fi
inside /fovea/scripts/setup-debian.sh
inside /fovea/scripts/get-vulkan-tools.sh "$home/.cache/fovea"
build=/fovea/build/engine
inside cmake -S /fovea -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DFOVEA_TOOLS="$home/.cache/fovea" \
    -DFOVEA_BUILD_APPS=OFF
# The installed libraries first, by name: `install` would ask for every test program.
inside cmake --build "$build" --target fovea fovea_shared engine/all readme_example header_examples consumer_old_struct consumer_runtime_c \
    fovea_test_unit fovea_test_kernels
inside ctest --test-dir "$build" --output-on-failure --no-tests=error -R '^(unit|kernels|consumer)\.'
