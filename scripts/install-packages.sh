# Sourced, not run: installs Debian packages that are missing; without root it names the command and ends the script.
install_packages() { # PACKAGE...
    local package missing=()
    for package in "$@"; do
        [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
    done
    [[ ${#missing[@]} -gt 0 ]] || return 0
    echo "fovea: installing ${missing[*]}" >&2
    [[ $EUID -eq 0 ]] || { echo "fovea: this needs root; run:  sudo apt-get install ${missing[*]}" >&2; exit 1; }
    apt-get install -y --no-install-recommends "${missing[@]}" >&2
}
