#!/bin/sh
# Draws the pictures of docs/guides/visualizer.md and the README anew, without a display: scripts/visualizer-pictures.sh PROGRAM
# PROGRAM is fovea-visualizer, with a driver's script before it if wanted. Run it in the root of the repository.
set -e
[ $# -gt 0 ] || { sed -n '2,3s/^# //p' "$0"; exit 2; }
out=docs/images
text="the cat sat on the mat and the dog sat on the rug because it was warm"
"$@" --preset 3 --screenshot $out/visualizer.png
"$@" --preset 3 --show flow --pick "step, journey" --screenshot $out/visualizer-flow.png
"$@" --preset 3 --against 2 --compare side --screenshot $out/visualizer-compare.png
"$@" --preset 4 --show mask --theme light --screenshot $out/visualizer-mask-light.png
"$@" --preset 7 --text "$text" --show lines --show gpu --roof --theme light --screenshot $out/visualizer-lines-light.png
"$@" --preset long-16k --tiles cpu --exact --screenshot $out/visualizer-map.png
folder=$(mktemp -d)
model=$folder/model.safetensors
python3 tests/visualizer/made_model.py "$model"
"$@" "$model" --show layers --theme light --screenshot $out/visualizer-layers-light.png
rm -r "$folder"
