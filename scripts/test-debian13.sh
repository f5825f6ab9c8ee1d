#!/bin/bash
# Runs ./dev test on a copy of this checkout in a Debian 13 of its own, made with debootstrap in FOLDER.
#   scripts/test-debian13.sh FOLDER     needs root (chroot); the folder is kept and used again
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
folder=${1:?usage: test-debian13.sh FOLDER}
[[ $EUID -eq 0 ]] || { echo "fovea: this needs root; run:  sudo bash $(realpath "$0") $folder" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "fovea: install debootstrap first:  apt-get install debootstrap" >&2; exit 1; }

source "$root/scripts/tools/debian-mirror.sh"
mirror=$(debian_mirror)
if [[ ! -e $folder/ready ]]; then
    rm -rf --one-file-system "$folder"
    debootstrap --variant=minbase --include=ca-certificates trixie "$folder" "$mirror"
    touch "$folder/ready"
fi
cp /etc/resolv.conf "$folder/etc/resolv.conf"

# A copy, so that this checkout's build folder stays as it is; the copy's own build folder is kept for the next time.
mkdir -p "$folder/fovea"
find "$folder/fovea" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
git -c safe.directory='*' -C "$root" ls-files -co --exclude-standard -z | (cd "$root" && xargs -0 ls -d 2>/dev/null) |
    tar -C "$root" -c -T - | tar -x --no-same-owner -C "$folder/fovea"

mounted() { mountpoint -q "$folder/proc"; }
mounted || mount -t proc proc "$folder/proc"
trap 'mounted && umount "$folder/proc"' EXIT
chroot "$folder" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 CI="${CI:-}" \
    /fovea/dev test
