// Tiles of a map as pictures.
import type { PageKit } from "../app/kit.ts";
import type { Scale } from "../page/colors.ts";
import type { MapPiece, TileId, TilePixels } from "../engine/protocol.ts";
import type { MapPlace } from "./zoom_axes.ts";

export const side = 256; // pixels of a tile's edge

export interface Held {
    pixels: TilePixels;
    image: HTMLCanvasElement;
    paintedFor: string;
}

export const keyOf = (id: TileId) => `${id.level}/${id.y}/${id.x}${id.sampled ? "s" : ""}`;

// Mass grows with the number of cells in a pixel; the colors follow a logarithm.
export function scaleOf(
    { colorTable, logFloor }: PageKit,
    reducer: keyof TilePixels,
    level: number,
    keys: number,
): Scale {
    // If a map has few keys, each has a larger weight.
    const few = 4 / keys,
        high =
            reducer === "mass"
                ? Math.min(1, Math.max(few, 0.05) * 2 ** level + 0.05)
                : Math.min(1, Math.max(few, 0.5));
    return { table: colorTable("ink"), low: logFloor(0, high), high, log: true };
}

// `wanted` names what the picture depends on: one that is there already is not painted again.
export function imageOf(
    held: Held,
    wanted: string,
    reducer: keyof TilePixels,
    scale: Scale,
): HTMLCanvasElement {
    if (held.paintedFor === wanted) return held.image;
    const pixels = new ImageData(side, side),
        colors = new Uint32Array(pixels.data.buffer);
    const values = held.pixels[reducer],
        table = new Uint32Array(257);
    for (let i = 0; i < 256; ++i)
        table[i] =
            0xff000000 | (scale.table[3 * i + 2] << 16) | (scale.table[3 * i + 1] << 8) | scale.table[3 * i];
    const factor = 255 / Math.log(scale.high / scale.low),
        shift = Math.log(scale.low);
    for (let i = 0; i < values.length; ++i) {
        const x = values[i];
        colors[i] =
            x > scale.low
                ? table[Math.min(255, Math.round((Math.log(x) - shift) * factor))]
                : x <= scale.low
                  ? table[0]
                  : 0xff9a00d6; // no number: magenta
    }
    held.image.getContext("2d")!.putImageData(pixels, 0, 0);
    held.paintedFor = wanted;
    return held.image;
}

// The part of a tile that a map shows now; what is out of sight costs no picture.
export function drawPiece(
    context: CanvasRenderingContext2D,
    { toX, toY, width, height }: MapPlace,
    piece: MapPiece,
    image: () => HTMLCanvasElement,
): void {
    const [row, key, rows, keys, x, y, w, h] = piece.at,
        left = toX(key),
        top = toY(row),
        right = toX(key + keys),
        bottom = toY(row + rows);
    if (left > width || top > height || right < 0 || bottom < 0) return;
    context.drawImage(image(), x, y, w, h, left, top, right - left + 0.5, bottom - top + 0.5);
}

// The canvas blank, in pixels of the screen.
export function clearedAt(
    canvas: HTMLCanvasElement,
    width: number,
    height: number,
): CanvasRenderingContext2D {
    const ratio = Math.min(2, devicePixelRatio || 1),
        context = canvas.getContext("2d")!;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return context;
}
