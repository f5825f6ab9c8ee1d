#!/bin/bash
# All that is worth knowing of a GPU, in one command and under eight minutes: what the device is, whether every kernel
# is right on it, how fast each is, what tiles suit it, and how PyTorch and ggml-vulkan do on the same work.
#
#   scripts/gpu-day.sh pack [FOLDER]             here: built programs and what they need into FOLDER (out/gpu-day, a few
#                                                ten MiB). Copy it to the machine with the GPU: it needs neither compiler
#                                                nor network there, only the GPU's driver
#   FOLDER/gpu-day.sh run [--out FOLDER]         there: results.json and tables.md into FOLDER (gpu-day-results)
#   scripts/gpu-day.sh run --behind WRAPPER      here, on whatever driver WRAPPER PROGRAM ARGS runs a program:
#                                                --behind build/default/drivers/lavapipe26; lengths to 1024 then,
#                                                as such a driver is of software
# `run` takes --quick (a fifth of the time, for trying the script itself). PyTorch is taken where python3 has it with a
# device, ggml-vulkan where $GGML_VK_BENCH names a program that prints its own table.
# Exit: 0 when all is right, 1 when a test failed or a step did not end; the measurements are written either way.
set -uo pipefail
here=$(dirname "$(realpath "$0")")

fail() { echo "gpu-day: error: $*" >&2; exit 2; }

pack() {
    local root=$here/.. cache to lib name
    cache=${FOVEA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fovea}
    to=${1:-$root/out/gpu-day} lib=$cache/usr/lib/x86_64-linux-gnu
    source "$here/tools/own-folder.sh"
    [[ -d $lib ]] || fail "$cache has no private tools (scripts/get-vulkan-tools.sh)"
    own_folder "$to" && mkdir -p "$to/bin" "$to/lib" "$to/layers" || exit 2
    for name in fovea fovea_bench_vulkan fovea_tune fovea_test_semantics fovea_test_vulkan; do
        [[ -x $root/build/default/bin/$name ]] || fail "build/default/bin/$name is not built"
        strip -o "$to/bin/$name" "$root/build/default/bin/$name"
    done
    # The C library and the loader travel too, so that the programs run on any distribution; and what NVIDIA's driver
    # links that a machine without a display may lack.
    cp -L "$cache/usr/lib64/ld-linux-x86-64.so.2" "$to/lib/"
    for name in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libstdc++.so.6 libgcc_s.so.1 libvulkan.so.1 \
        libVkLayer_khronos_validation.so libX11.so.6 libXext.so.6 libxcb.so.1 libXau.so.6 libXdmcp.so.6 libSPIRV-Tools.so; do
        [[ ! -e $lib/$name ]] || cp -L "$lib/$name" "$to/lib/"
    done
    sed 's#"library_path": *"[^"]*"#"library_path": "../lib/libVkLayer_khronos_validation.so"#' \
        "$cache/layers/VkLayer_khronos_validation.json" >"$to/layers/VkLayer_khronos_validation.json"
    cp "$here/gpu-day.sh" "$here/bench_sdpa.py" "$to/"
    printf 'khronos_validation.validate_sync = true\nkhronos_validation.syncval_shader_accesses_heuristic = true\n' \
        >"$to/layers/vk_layer_settings.txt"
    echo "packed: $to, $(du -sm "$to" | cut -f1) MiB"
}

# Runs one of the programs on the device.
program() { # NAME ARGS...
    local name=$1 lib=$here/lib
    shift
    [[ -z $behind ]] || exec "$behind" "$here/../build/default/bin/$name" "$@"
    export VK_LAYER_PATH=$here/layers VK_LAYER_SETTINGS_PATH=$here/layers/vk_layer_settings.txt FOVEA_TEST_DRIVER=gpu
    exec "$lib/ld-linux-x86-64.so.2" \
        --library-path "$lib:/usr/lib/x86_64-linux-gnu:/usr/lib64:/usr/lib:/lib64:/usr/local/lib:${LD_LIBRARY_PATH:-}" \
        "$here/bin/$name" "$@"
}

# Each step has a time limit: a step that does not end is stopped with everything that it started, and the next one
# begins.
step() { # NAME SECONDS COMMAND...
    local name=$1 limit=$2 began=$SECONDS status
    shift 2
    [[ $quick == no ]] || limit=$((limit / 5 + 20))
    echo "== $name (at most $limit s)"
    # A function of this script runs in a separate process, which `timeout` can stop.
    [[ $1 != program ]] || set -- "$here/gpu-day.sh" "$@"
    timeout --kill-after=5 "$limit" "$@" >"$out/$name.log" 2>&1
    status=$?
    tail -n 3 "$out/$name.log"
    steps+=("{\"step\": \"$name\", \"seconds\": $((SECONDS - began)), \"exit\": $status}")
    [[ $status -eq 0 ]] || failed+=("$name")
}

optional_json() { # KEY FILE: the file's JSON under a key, or null
    printf ',\n"%s": ' "$1"
    if [[ -s $2 ]]; then cat "$2"; else echo null; fi
}

# The rows that fovea_bench_vulkan printed, as a table of docs/lab/performance.md.
table_of() { # LOG
    echo "| suite, case, Lq x Lkv, kernel | median | rate | share of ceiling |"
    echo "|---|---|---|---|"
    grep -E ' ms +[0-9.]+ (GFLOP|GB)/s' "$1" | sed -E \
        's#^(.*[^ ]) +([0-9.]+ ms) +([0-9.]+ G[A-Z]+/s) +([0-9.]+%) of.*#| \1 | \2 | \3 | \4 |#; s/ {2,}/ /g'
}

run() {
    local seconds=0.1
    while [[ $# -gt 0 ]]; do
        case $1 in
        --out) out=$2 && shift 2 ;;
        --behind) behind=$(realpath "$2") && shift 2 ;;
        --quick) quick=yes seconds=0.02 && shift ;;
        *) fail "unknown option $1" ;;
        esac
    done
    [[ -n $behind || -d $here/lib ]] || fail "no programs next to this script; see 'pack', or give a --behind"
    mkdir -p "$out" && out=$(realpath "$out") || exit 2
    export GPU_DAY_BEHIND=$behind
    # A wrapper means a software driver: the longest calls would take it minutes each.
    local longest=16384
    [[ $quick == no && -z $behind ]] || longest=1024

    step devices 20 program fovea devices
    step sweep-flash 40 program fovea_test_semantics --sweep "$RANDOM" --on vulkan:flash --seconds 25 --count 3000
    step sweep-coopmat 40 program fovea_test_semantics --sweep "$RANDOM" --on vulkan:flash_coopmat \
        --precision f16-inputs --seconds 25 --count 3000
    step sweep-staged 30 program fovea_test_semantics --sweep "$RANDOM" --on vulkan:staged --seconds 15 --count 3000
    step suite 90 program fovea_test_vulkan
    step bench 80 program fovea_bench_vulkan --seconds "$seconds" --longest "$longest" --json "$out/bench.json"
    step bench-products 60 program fovea_bench_vulkan --seconds "$seconds" --longest "$longest" \
        --precision f16-inputs --suite prefill,decode --json "$out/bench-products.json"
    step tune 60 program fovea_tune --seconds 2 --out "$out/device.tuning" --json "$out/tune.json"
    if [[ -z $behind ]] && python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
        # The program that the script times must be one file to run.
        printf '#!/bin/bash\nexec %q program fovea_bench_vulkan "$@"\n' "$here/gpu-day.sh" >"$out/bench" && chmod +x "$out/bench"
        step sdpa 60 python3 "$here/bench_sdpa.py" --fovea "$out/bench" --bench --precision f16-inputs \
            --suite prefill,decode --longest 4096 --seconds "$seconds"
    fi
    [[ -z ${GGML_VK_BENCH:-} ]] || step ggml 40 "$GGML_VK_BENCH"

    {
        printf '{"date": "%s", "machine": "%s", "steps": [' "$(date -u +%F)" "$(uname -sr)"
        local IFS=,
        printf '%s]' "${steps[*]}"
        optional_json bench "$out/bench.json"
        optional_json bench_products "$out/bench-products.json"
        optional_json tune "$out/tune.json"
        echo '}'
    } >"$out/results.json"
    {
        for name in bench bench-products; do
            printf '### %s\n\n' "$(head -n 1 "$out/$name.log")"
            table_of "$out/$name.log"
            echo
        done
        [[ ! -e $out/sdpa.log ]] || { printf '### PyTorch\n\n' && cat "$out/sdpa.log"; }
        [[ ! -e $out/ggml.log ]] || { printf '### ggml-vulkan\n\n' && cat "$out/ggml.log"; }
    } >"$out/tables.md"
    echo "results: $out/results.json, $out/tables.md; $SECONDS s"
    [[ ${#failed[@]} -eq 0 ]] || { echo "gpu-day: failed: ${failed[*]}" >&2 && exit 1; }
}

behind=${GPU_DAY_BEHIND:-} quick=no out=gpu-day-results steps=() failed=()
case ${1:-} in
pack) pack "${2:-}" ;;
run) shift && run "$@" ;;
program) shift && program "$@" ;; # a step of `run`
*) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2 && exit 2 ;;
esac
