# shellcheck shell=bash disable=SC2016,SC2034
# Sourced: a separate apt that sees only Debian 13 and touches only the folder "$1". Defines apt_folder (downloads
# land in $apt_folder/cache/archives) and exports APT_CONFIG. An empty package status makes "install" resolve the
# whole dependency closure, the C library included.

source "$(dirname "${BASH_SOURCE[0]}")/debian-mirror.sh"

open_trixie_apt() { # FOLDER
    apt_folder=$1
    local mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg suite
    mirror=$(debian_mirror) || return 1
    mkdir -p "$apt_folder"/etc/{apt.conf.d,preferences.d,trusted.gpg.d,sources.list.d} \
        "$apt_folder"/{lists,cache/archives}/partial
    : >"$apt_folder/status"
    for suite in trixie trixie-backports; do
        echo "deb [signed-by=$keyring] $mirror $suite main"
    done >"$apt_folder/etc/sources.list"
    echo "deb-src [signed-by=$keyring] $mirror trixie main" >>"$apt_folder/etc/sources.list"
    {
        # Proxy and certificate settings of this machine still hold.
        apt-config dump | grep -E '^Acquire::(http|https|Retries)' || true
        printf 'Dir::Etc "%s";\nDir::State "%s";\nDir::State::lists "%s";\nDir::State::status "%s";\nDir::Cache "%s";\n' \
            "$apt_folder/etc" "$apt_folder" "$apt_folder/lists" "$apt_folder/status" "$apt_folder/cache"
        printf '%s\n' 'APT::Install-Recommends "false";' 'Debug::NoLocking "true";' 'APT::Sandbox::User "root";' \
            'Acquire::Languages "none";' 'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";' \
            'Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";'
    } >"$apt_folder/apt.conf"
    export APT_CONFIG=$apt_folder/apt.conf
    # The source index is only wanted by the part that unpacks a source package.
    [[ ${2:-} == with-source ]] || sed -i '/^deb-src/d' "$apt_folder/etc/sources.list"
    apt-get -qq update
}

unpack_debs() { # FOLDER [TAR-OPTION...]: everything downloaded so far; prints the versions
    local deb folder=$1
    shift
    for deb in "$apt_folder"/cache/archives/*.deb "$apt_folder"/*.deb; do
        [[ -e $deb ]] || continue
        dpkg-deb --fsys-tarfile "$deb" | tar -x --no-same-owner -C "$folder" "$@"
        dpkg-deb -W --showformat '${Package} ${Version}\n' "$deb"
    done
}
