#!/bin/bash
# Runs the Python tests that need neither a wheel nor the command line on the sources as they are:
#   tests/python/from_source.sh BUILD/python [PYTHON]
set -euo pipefail
root=$(dirname "$(dirname "$(dirname "$(realpath "$0")")")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/fovea"
cp "$root"/python/fovea/* "$1/_declarations.py" "$1/libfovea_runtime.so" "$folder/fovea"
export PYTHONPATH=$folder PYTHONDONTWRITEBYTECODE=1 FOVEA_COMMAND=/bin/false
"${2:-/usr/bin/python3}" "$root/tests/python/test_calls.py" -f Arrays Refusals
"${2:-/usr/bin/python3}" "$root/tests/python/test_looking.py" -f Weights Transformers
"${2:-/usr/bin/python3}" "$root/tests/python/test_model.py" -f Model Refusals
