// Builds the content below the button of the deep zoom, once its script is loaded.
export const zoomBody =
    `<div class="zoom-tools"><div class="segmented" role="radiogroup" aria-label="What a pixel shows" id="reducer"><label><input type="radio" name="reducer" value="mass" checked><span>mass</span></label><label><input type="radio" name="reducer" value="max"><span>largest</span></label></div>` +
    `<span class="buttons"><button type="button" id="zoom-in" class="quiet" aria-label="Zoom in">+</button><button type="button" id="zoom-out" class="quiet" aria-label="Zoom out">−</button><button type="button" id="zoom-fit" class="quiet">Fit</button></span>` +
    `<span class="note" id="zoom-status" role="status"></span><span class="zoom-tag" id="zoom-tag"></span><span class="note zoom-legend"><span id="zoom-low"></span><canvas id="zoom-bar" width="128" height="10" aria-hidden="true"></canvas><span id="zoom-high"></span></span></div>` +
    `<div class="zoom-beside"><div class="zoom-view"><canvas id="zoom-canvas" tabindex="0" role="img" aria-label="Map of the attention weights" aria-describedby="zoom-note"></canvas>` +
    `<p class="zoom-pick" id="zoom-pick" role="status"></p></div><div class="zoom-steps" id="zoom-steps"></div></div>` +
    `<p class="buttons" id="zoom-sights" hidden></p>` +
    `<p class="note" id="zoom-note">Drag to move, pinch or turn the wheel with Ctrl to zoom (after a click the wheel alone does it), click to pick a weight; at the closest zoom each cell shows its digits. On the keyboard: arrows, + and −, Enter for the weight in the middle. Colors are logarithmic. “Mass” adds up the weights in a pixel, as a mean over its rows, so that each row of pixels sums to 1; “largest” shows the largest of them.</p>`;
