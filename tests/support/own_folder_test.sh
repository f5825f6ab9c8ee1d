#!/bin/bash
# The scripts that empty a folder which their caller names: one that holds something else stays as it is.
#   own_folder_test.sh SOURCES
set -euo pipefail
sources=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
source "$sources/scripts/tools/own-folder.sh"
fail() { echo "own_folder_test: $*" >&2 && exit 1; }

own_folder "$folder/new" || fail "a new folder is refused"
touch "$folder/new/made" && own_folder "$folder/new" || fail "a folder of its own is refused"
[[ ! -e $folder/new/made && -d $folder/new ]] || fail "a folder of its own is not emptied"
mkdir "$folder/empty" && own_folder "$folder/empty" || fail "an empty folder is refused"

mkdir "$folder/precious" && touch "$folder/precious/thesis" "$folder/precious/ready"
ln -s precious "$folder/link"
# debootstrap would fill the folder: here it does nothing.
mkdir "$folder/bin" && printf '#!/bin/sh\nexit 1\n' >"$folder/bin/debootstrap" && chmod +x "$folder/bin/debootstrap"
mkdir -p "$folder/usr/lib/x86_64-linux-gnu" # tools of no use, for gpu-day.sh
for refused in precious link precious/thesis; do
    ! own_folder "$folder/$refused" 2>"$folder/error" || fail "$refused is emptied"
    grep -q "$refused holds files that this script did not write; name a new or empty folder" "$folder/error" || fail "$(cat "$folder/error")"
    # Without root that script ends before, and removes nothing either.
    ! PATH=$folder/bin:$PATH bash "$sources/scripts/test-bare.sh" "$folder/$refused" bookworm 2>/dev/null || fail "$refused is taken for a Debian"
    ! FOVEA_CACHE=$folder bash "$sources/scripts/gpu-day.sh" pack "$folder/$refused" 2>/dev/null || fail "$refused is packed over"
    [[ -e $folder/precious/thesis ]] || fail "$refused: a file is gone"
done
