#!/bin/bash
# ./dev run, or ./dev web up to the address of its page, with its times, for a machine with nothing installed and empty
# caches: a fresh container, scripts/test-bare.sh.
#   scripts/first-run.sh [run | web]
# Exits 1 above 300 s of CPU time. Wall time is only printed, because it depends on what else the machine does.
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
command=${1:-run}
most=300
times=$(mktemp)
trap 'rm -f "$times"' EXIT
# The server does not end by itself.
web() {
    setsid "$root/dev" web > >(tee "$times.log" >&3) 2>&3 &
    until grep -q '^Fovea is at ' "$times.log" 2>/dev/null; do
        kill -0 $! || return 1
        sleep 0.5
    done
    kill -- -$!
    wait $! || true
    rm "$times.log"
}
run() { "$root/dev" run 2>&3; }
TIMEFORMAT='%0R %0U %0S'
{ time "$command"; } 3>&2 2>"$times"
read -r wall user system < <(tail -n 1 "$times")
echo "fovea: ./dev $command took $wall s, $((user + system)) s of CPU time; the bar is $most s of CPU time"
[[ $((user + system)) -le $most ]]
