# shellcheck shell=bash disable=SC2016
# Sourced: debian_mirror prints the mirror that this machine already uses for Debian, or FOVEA_DEBIAN_MIRROR. With a suite's
# name it prefers the mirror of that suite.
debian_mirror() { # [SUITE]
    local targets uri=${FOVEA_DEBIAN_MIRROR:-}
    if [[ -z $uri ]]; then
        targets=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null)
        uri=$(awk -v suite="${1:-}" '$1 == suite && $2 ~ /debian\/?$/ { print $2; exit }' <<<"$targets")
        [[ -n $uri ]] || uri=$(awk '$NF ~ /debian\/?$/ { print $NF; exit }' <<<"$targets")
    fi
    if [[ -z $uri ]]; then
        echo "fovea setup: no Debian mirror in this machine's apt sources; set FOVEA_DEBIAN_MIRROR to one" >&2
        return 1
    fi
    echo "${uri%/}"
}
