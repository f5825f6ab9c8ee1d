// The shown matrix as a picture, a drawing or numbers, and the state as a session file.
import type { App } from "./app.ts";
import { colorAt, css, inkOn } from "./colors.ts";
import { byId, saveFile } from "./dom.ts";
import { escape, number } from "./format.ts";
import type { MatrixContent } from "./matrix.ts";
import { toHash } from "./state.ts";
import type { Workbench } from "./stage.ts";

const quote = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

export function csvOf(content: MatrixContent): string {
    const lines = [["", ...content.columnLabels].map(quote).join(",")];
    for (let i = 0; i < content.rows; ++i)
        lines.push([quote(content.rowLabels[i]), ...content.data.subarray(i * content.columns, (i + 1) * content.columns)].join(","));
    return `${lines.join("\n")}\n`;
}

const largestSvgSide = 256;

export function svgOf(content: MatrixContent, scale: Parameters<typeof colorAt>[0]): string {
    const cell = content.columns > 32 ? 12 : 64, left = 120, top = 40;
    const parts: string[] = [];
    for (let i = 0; i < content.rows; ++i) {
        const y = top + i * cell;
        parts.push(`<text x="${left - 10}" y="${y + cell / 2}" text-anchor="end">${escape(content.rowLabels[i])}</text>`);
        for (let j = 0; j < content.columns; ++j) {
            const value = content.data[i * content.columns + j], x = left + j * cell;
            const rgb = Number.isFinite(value) ? colorAt(scale, value) : null;
            parts.push(`<rect x="${x}" y="${y}" width="${cell - 2}" height="${cell - 2}" rx="3" fill="${rgb ? css(rgb) : "none"}"${rgb ? "" : ' stroke="#999"'}/>`);
            if (cell > 40) parts.push(`<text x="${x + cell / 2 - 1}" y="${y + cell / 2}" text-anchor="middle" fill="${rgb ? inkOn(rgb) : "#666"}">${number(value)}</text>`);
        }
    }
    content.columnLabels.forEach((label, j) => {
        if (cell > 40) parts.push(`<text x="${left + j * cell + cell / 2}" y="${top - 14}" text-anchor="middle">${escape(label)}</text>`);
    });
    const width = left + content.columns * cell + 10, height = top + content.rows * cell + 10;
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="13" dominant-baseline="central"><title>${escape(content.name)}</title>${parts.join("")}</svg>\n`;
}

export function connectExport(app: App, workbench: Workbench): void {
    const menu = byId<HTMLDetailsElement>("export");
    menu.addEventListener("click", (event) => {
        const kind = (event.target as Element).closest<HTMLElement>("[data-export]")?.dataset.export;
        if (!kind) return;
        menu.open = false;
        const stage = workbench.stage();
        if (!stage || !app.result) return;
        const content = workbench.content(stage, app.result), name = `fovea-level${app.state.level}-${stage.id}`;
        if (kind === "csv") saveFile(`${name}.csv`, "text/csv", csvOf(content));
        if (kind === "svg") {
            if (Math.max(content.rows, content.columns) > largestSvgSide) app.onTrouble(`A drawing has at most ${largestSvgSide} × ${largestSvgSide} cells; use a picture.`, false);
            else saveFile(`${name}.svg`, "image/svg+xml", svgOf(content, workbench.matrix.scale));
        }
        if (kind === "png") workbench.matrix.element.toBlob((blob) => { if (blob) saveFile(`${name}.png`, "image/png", blob); });
        if (kind === "session") saveFile("fovea-session.fovea", "application/json", `${JSON.stringify({ format: "fovea-session", version: 1, state: toHash(app.state).slice(1) }, null, 2)}\n`);
    });
    addEventListener("click", (event) => { if (!menu.contains(event.target as Node)) menu.open = false; });
    menu.addEventListener("keydown", (event) => { if (event.key === "Escape") { menu.open = false; menu.querySelector("summary")!.focus(); } });
}
