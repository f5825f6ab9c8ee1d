// Compares pictures at a fourth of their size with a tolerance. Last bits of another driver and other measured times pass; a
// part that moved, disappeared or changed its color does not.
export const shrink = 4;
// Tolerances of 255: for the mean difference of all pixels, and for the number of different pixels.
const meanTolerance = 3,
    pixelTolerance = 40,
    pixelShare = 0.01;

// Null, or how `found` (of comparing()) differs.
export function difference({ size, mean, share }) {
    if (size) return size;
    if (mean <= meanTolerance && share <= pixelShare) return null;
    return `mean difference ${mean.toFixed(2)}, ${(100 * share).toFixed(2)}% of the values far off`;
}

// Returns a function of a picture (png) and the kept one, or null. Its result has the picture at a fourth of its size, each
// pixel the mean of sixteen, and the difference from the kept picture. The kept picture is a webp of that size or a png of the
// full size. It all runs in the page `tool`.
export const comparing =
    (tool) =>
    (shot, kept, type = "webp") =>
        tool.evaluate(
            async ([shot, kept, type, shrink, far]) => {
                const load = async (base64, type) =>
                    createImageBitmap(await (await fetch(`data:image/${type};base64,${base64}`)).blob());
                const reduced = (full) => {
                    const width = Math.floor(full.width / shrink),
                        height = Math.floor(full.height / shrink);
                    const source = new OffscreenCanvas(width * shrink, height * shrink).getContext("2d");
                    source.drawImage(full, 0, 0);
                    const from = source.getImageData(0, 0, width * shrink, height * shrink).data,
                        pixels = new ImageData(width, height);
                    for (let y = 0; y < height; ++y)
                        for (let x = 0; x < width; ++x)
                            for (let c = 0; c < 3; ++c) {
                                let sum = 0;
                                for (let v = 0; v < shrink; ++v)
                                    for (let u = 0; u < shrink; ++u)
                                        sum +=
                                            from[
                                                4 * ((y * shrink + v) * width * shrink + x * shrink + u) + c
                                            ];
                                pixels.data[4 * (y * width + x) + c] = sum / shrink ** 2;
                            }
                    for (let i = 3; i < pixels.data.length; i += 4) pixels.data[i] = 255;
                    return pixels;
                };
                const pixels = reduced(await load(shot, "png")),
                    { width, height } = pixels;
                const canvas = Object.assign(document.createElement("canvas"), { width, height });
                canvas.getContext("2d").putImageData(pixels, 0, 0);
                const result = { picture: canvas.toDataURL("image/webp", 0.7).split(",")[1], width, height };
                if (!kept) return result;
                const image = await load(kept, type);
                let theirs;
                if (type === "png") theirs = reduced(image);
                else {
                    const other = new OffscreenCanvas(image.width, image.height).getContext("2d");
                    other.drawImage(image, 0, 0);
                    theirs = other.getImageData(0, 0, image.width, image.height);
                }
                if (theirs.width !== width || theirs.height !== height)
                    return {
                        ...result,
                        size: `${width} x ${height} pixels, kept ${theirs.width} x ${theirs.height}`,
                    };
                let sum = 0,
                    off = 0;
                for (let i = 0; i < theirs.data.length; ++i) {
                    const difference = Math.abs(pixels.data[i] - theirs.data[i]);
                    sum += difference;
                    if (difference > far) ++off;
                }
                return { ...result, mean: sum / theirs.data.length, share: off / theirs.data.length };
            },
            [shot.toString("base64"), kept?.toString("base64") ?? "", type, shrink, pixelTolerance],
        );

// The widths of some letters in the page's fonts: pictures with letters hold for the fonts that they were made with.
export const fontsOf = (page) =>
    page.evaluate(() => {
        const context = document.createElement("canvas").getContext("2d");
        return ["--sans", "--mono"]
            .map((name) => {
                context.font = `500 40px ${getComputedStyle(document.documentElement).getPropertyValue(name)}`;
                return context.measureText("Weights of Mj 0123456789").width.toFixed(1);
            })
            .join(" ");
    });
