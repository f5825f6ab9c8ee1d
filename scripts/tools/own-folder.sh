# shellcheck shell=bash
# Sourced: own_folder makes a folder that a script may empty. No other script removes a folder that a caller names:
# house_rules.py rejects it.
own_folder_marker=.written-by-fovea

own_folder() { # FOLDER: made, or emptied where its marker says that a script of this project filled it
    if [[ -e $1 && ! -e $1/$own_folder_marker && ! (-d $1 && -z $(ls -A "$1")) ]]; then
        echo "fovea: $1 holds files that this script did not write; name a new or empty folder, or delete it yourself" >&2
        return 1
    fi
    rm -rf --one-file-system "$1" && mkdir -p "$1" && touch "$1/$own_folder_marker"
}
