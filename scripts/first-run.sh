#!/bin/bash
# ./dev run with its times, for a machine with nothing installed and empty caches: a fresh container, scripts/test-bare.sh.
# Exits 1 above 300 s of CPU time. Wall time is only printed, because it depends on what else the machine does.
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
most=300
times=$(mktemp)
trap 'rm -f "$times"' EXIT
TIMEFORMAT='%0R %0U %0S'
{ time "$root/dev" run 2>&3; } 3>&2 2>"$times"
read -r wall user system <"$times"
echo "fovea: ./dev run took $wall s, $((user + system)) s of CPU time; the bar is $most s of CPU time"
[[ $((user + system)) -le $most ]]
