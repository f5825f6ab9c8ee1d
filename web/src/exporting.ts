// The shown matrix as a picture, a drawing, numbers or an array, and the state as a session file.
import type { App } from "./app.ts";
import { colorAt, css, inkOn, type Scale } from "./colors.ts";
import { byId, saveFile } from "./dom.ts";
import { escape, fixed, withCommas } from "./format.ts";
import type { MatrixView } from "./matrix.ts";
import { isHidden, type MatrixContent } from "./matrix_content.ts";
import { toHash } from "./state.ts";
import type { Workbench } from "./stage.ts";

const quote = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

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

function cellsOf(content: MatrixContent, scale: Scale, cell: number, left: number, top: number): string[] {
    const parts: string[] = [];
    for (let i = 0; i < content.rows; ++i) {
        const y = top + i * cell;
        parts.push(
            `<text x="${left - 10}" y="${y + cell / 2}" text-anchor="end">${escape(content.rowLabels[i])}</text>`,
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
                `<text x="${left + j * cell + cell / 2}" y="${top - 14}" text-anchor="middle">${escape(label)}</text>`,
            );
    });
    return parts;
}

export function svgOf(content: MatrixContent, view: MatrixView): string {
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
        : cellsOf(content, view.scale, cell, left, top);
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="13" dominant-baseline="central"><title>${escape(content.name)}</title>${parts.join("")}</svg>\n`;
}

const largestEmbedded = 64 * 1024 * 1024;

// The page's whole state with the reader's tensors, as a .fovea file.
export async function sessionText(app: App): Promise<string> {
    const { own, state } = app,
        size = own ? own.q.byteLength + own.k.byteLength + (own.v?.byteLength ?? 0) : 0;
    if (size > largestEmbedded)
        throw new Error(
            `a session holds tensors of up to ${withCommas(largestEmbedded)} bytes; these have ${withCommas(size)}`,
        );
    return app.engine.ask("writeSession", { address: toHash(state) });
}

export function connectExport(app: App, workbench: Workbench): void {
    const menu = byId<HTMLDetailsElement>("export");
    const save = async (kind: string) => {
        const stage = workbench.stage();
        if (!stage || !app.result) return;
        const content = workbench.content(stage, app.result),
            name = `fovea-level${app.state.level}-${stage.id}`;
        if (kind === "csv") saveFile(`${name}.csv`, "text/csv", csvOf(content));
        if (kind === "npy")
            saveFile(
                `${name}.npy`,
                "application/octet-stream",
                npyOf(content.data, [content.rows, content.columns]),
            );
        if (kind === "svg") saveFile(`${name}.svg`, "image/svg+xml", svgOf(content, workbench.matrix));
        if (kind === "png")
            workbench.matrix.element.toBlob((blob) => {
                if (blob) saveFile(`${name}.png`, "image/png", blob);
            });
        if (kind === "session") saveFile("session.fovea", "application/json", await sessionText(app));
    };
    menu.addEventListener("click", (event) => {
        const kind = (event.target as Element).closest<HTMLElement>("[data-export]")?.dataset.export;
        if (!kind) return;
        menu.open = false;
        save(kind).catch((error: Error) => app.onTrouble(error.message, false));
    });
    addEventListener("click", (event) => {
        if (!menu.contains(event.target as Node)) menu.open = false;
    });
    menu.addEventListener("keydown", (event) => {
        if (event.key === "Escape") {
            menu.open = false;
            menu.querySelector("summary")!.focus();
        }
    });
}
