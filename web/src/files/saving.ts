// The formats of an export: values, an array, a drawing, a notebook. Loaded when a reader first saves one. The page
// passes in its own function for drawing cells, because a shared module would be a file that the first view waits
// for.
import type { Rgb, Scale } from "../page/colors.ts";
import type { MatrixView } from "../matrix/matrix.ts";
import type { MatrixContent } from "../matrix/matrix_content.ts";
export { notebookOf } from "./notebook.ts";

export interface Drawing {
    escape: (text: string) => string;
    fixed: (value: number) => string;
    colorAt: (scale: Scale, value: number) => Rgb;
    css: (color: Rgb) => string;
    inkOn: (color: Rgb) => string;
    isHidden: (content: MatrixContent, index: number) => boolean;
}

const quote = (text: string) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

export function csvOf(content: MatrixContent): string {
    const lines = [["", ...content.columnLabels].map(quote).join(",")];
    for (let i = 0; i < content.rows; ++i)
        lines.push(
            [
                quote(content.rowLabels[i]),
                ...content.data.subarray(i * content.columns, (i + 1) * content.columns),
            ].join(","),
        );
    return `${lines.join("\n")}\n`;
}

// Version 1, float32, C order; the header ends on a multiple of 64 bytes.
export function npyOf(data: Float32Array, shape: number[]): Uint8Array<ArrayBuffer> {
    const dictionary = `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.join(", ")}${shape.length === 1 ? "," : ""}), }`;
    const header = `${dictionary.padEnd(64 * Math.ceil((dictionary.length + 11) / 64) - 11)}\n`;
    const file = new Uint8Array(10 + header.length + data.byteLength);
    file.set([0x93, ...new TextEncoder().encode("NUMPY"), 1, 0, header.length & 255, header.length >> 8]);
    file.set(new TextEncoder().encode(header), 10);
    file.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), 10 + header.length);
    return file;
}

// With more cells the matrix is a picture inside the drawing.
const largestSvgSide = 256;

function cellsOf(
    content: MatrixContent,
    scale: Scale,
    cell: number,
    left: number,
    top: number,
    { escape, fixed, colorAt, css, inkOn, isHidden }: Drawing,
): string[] {
    const parts: string[] = [];
    // XML has no control characters.
    const named = (text: string) =>
        escape(text.replace(/[\0-\x08\v\f\x0e-\x1f\ufffe\uffff\ud800-\udfff]/gu, "\ufffd"));
    for (let i = 0; i < content.rows; ++i) {
        const y = top + i * cell;
        parts.push(
            `<text x="${left - 10}" y="${y + cell / 2}" text-anchor="end">${named(content.rowLabels[i])}</text>`,
        );
        for (let j = 0; j < content.columns; ++j) {
            const value = content.data[i * content.columns + j],
                x = left + j * cell;
            const rgb =
                Number.isFinite(value) && !isHidden(content, i * content.columns + j)
                    ? colorAt(scale, value)
                    : null;
            parts.push(
                `<rect x="${x}" y="${y}" width="${cell - 2}" height="${cell - 2}" rx="3" fill="${rgb ? css(rgb) : "none"}"${rgb ? "" : ' stroke="#999"'}/>`,
            );
            if (cell > 40)
                parts.push(
                    `<text x="${x + cell / 2 - 1}" y="${y + cell / 2}" text-anchor="middle" fill="${rgb ? inkOn(rgb) : "#666"}">${fixed(value)}</text>`,
                );
        }
    }
    content.columnLabels.forEach((label, j) => {
        if (cell > 40)
            parts.push(
                `<text x="${left + j * cell + cell / 2}" y="${top - 14}" text-anchor="middle">${named(label)}</text>`,
            );
    });
    if (cell <= 40)
        parts.push(
            `<text x="10" y="20">${content.rows} × ${content.columns} cells are too many for their numbers and the names of the keys</text>`,
        );
    return parts;
}

export function svgOf(content: MatrixContent, view: MatrixView, drawing: Drawing): string {
    const large = Math.max(content.rows, content.columns) > largestSvgSide;
    const cell = large
        ? Math.max(1, Math.floor(1024 / Math.max(content.rows, content.columns)))
        : content.columns > 32
          ? 12
          : 64;
    const left = large ? 10 : 120,
        top = large ? 10 : 40;
    const width = left + content.columns * cell + 10,
        height = top + content.rows * cell + 10;
    const parts = large
        ? [
              `<image x="${left}" y="${top}" width="${content.columns * cell}" height="${content.rows * cell}" image-rendering="pixelated" href="${view.cellPicture()!.toDataURL()}"/>`,
          ]
        : cellsOf(content, view.scale, cell, left, top, drawing);
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="13" dominant-baseline="central"><title>${drawing.escape(content.name)}</title>${parts.join("")}</svg>\n`;
}
