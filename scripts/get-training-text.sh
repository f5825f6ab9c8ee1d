#!/bin/bash
# Writes the text that the weights of lens/model/learned/text.safetensors were trained on: the King James Bible (1611, in the
# public domain) as Debian packs it, one verse a line, without numbers and headings. Nothing else in the project needs it.
#   scripts/get-training-text.sh FILE
set -euo pipefail
[[ $# -eq 1 ]] || { echo "usage: scripts/get-training-text.sh FILE" >&2; exit 1; }
if ! command -v bible >/dev/null; then
    echo "get-training-text: this needs the packages bible-kjv and bible-kjv-text; run:  sudo apt-get install bible-kjv" >&2
    exit 1
fi
bible -l9999 gen1:1-rev22:21 2>/dev/null | sed -n -E 's/^ +[0-9]+ //p' >"$1.unfinished"
# Another edition of the package would train another model, under the same name.
expected=b5c4940bcfeee072c0935b5200d0f9d88a00a0199cb0961d16133458fcdfae5d
if [[ $(sha256sum <"$1.unfinished") != "$expected  -" ]]; then
    rm "$1.unfinished"
    echo "get-training-text: the text of bible-kjv-text has another hash than that of version 4.38; install that version" >&2
    exit 1
fi
mv "$1.unfinished" "$1"
