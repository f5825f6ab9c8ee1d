#!/bin/bash
# Makes the Python package's wheel from the files of a build, and installs it into a virtual environment next to it,
# without a network:  scripts/python-wheel.sh BUILD/python   leaves BUILD/python/wheel/fovea-*.whl and BUILD/python/venv.
# Does nothing if both are newer than the package, the library and this script.
set -euo pipefail
root=$(dirname "$(dirname "$(realpath "$0")")")
folder=$(realpath "$1")
[[ -e $folder/libfovea_runtime.so && -e $folder/_declarations.py ]] || {
    echo "fovea: $folder has no libfovea_runtime.so: build the target fovea_python first" >&2
    exit 1
}
exec 9>"$folder/.lock"
flock 9

stamp=$folder/venv/.wheel
newer=yes
if [[ -e $stamp ]]; then
    inputs=("$folder/libfovea_runtime.so" "$folder/_declarations.py" "$root/python" "$0")
    [[ ! -e $root/build/fovea.html ]] || inputs+=("$root/build/fovea.html") # the page, for fovea.view
    newer=$(find "${inputs[@]}" -newer "$stamp" -type f -print -quit)
fi
[[ -n $newer ]] || exit 0

# Debian keeps numpy and the builder in its own Python; another one may come first in the path.
for python in python3 /usr/bin/python3 none; do
    "$python" -c 'import numpy, venv, scikit_build_core' 2>/dev/null && break
done
[[ $python != none ]] || {
    echo "fovea: no python3 here has numpy, venv and scikit_build_core (Debian: python3-numpy, python3-venv," \
        "python3-scikit-build-core; ./dev setup installs them)" >&2
    exit 1
}
rm -rf "$folder/wheel" "$folder/venv" "$folder/page.html" "$folder/page.xz"
[[ ! -e $root/build/fovea.html ]] ||
    "$python" "$root/python/tools/split_page.py" "$root/build/fovea.html" "$folder/page.html" "$folder/page.xz"
"$python" -m pip wheel --quiet --no-index --no-deps --no-build-isolation --wheel-dir "$folder/wheel" \
    --config-settings=cmake.define.FOVEA_BUILD="$(dirname "$folder")" --config-settings=build-dir="$folder/wheel-build" "$root/python"
# Packed once more by a better search: 3% smaller, the same files. --shrink-insane takes 20 s for another 0.1%.
if command -v advzip >/dev/null; then
    advzip --recompress --shrink-normal --keep-file-time --quiet "$folder"/wheel/fovea-*.whl
else
    echo "fovea: the wheel is 3% larger than it could be: advzip is not installed (Debian: advancecomp; ./dev setup installs it)" >&2
fi
"$python" -m venv --system-site-packages --without-pip "$folder/venv" # the system's pip serves it
"$python" -m pip --python "$folder/venv/bin/python" install --quiet --no-index --disable-pip-version-check "$folder"/wheel/fovea-*.whl
touch "$stamp"
