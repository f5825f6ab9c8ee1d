// Draws attention as lines above the matrix: from the picked word to every word that it attends to, thicker for
// larger weights; below them, faint, the strong ones of all other words. A click on a word picks its row.
import type { App, Result } from "../app/app.ts";
import { byId, hide, setHtml } from "../page/dom.ts";
import { escape, fill, fixed } from "../page/format.ts";

const step = 44,
    height = 132,
    foot = 104,
    mostTokens = 40,
    faint = 0.25; // weights of other rows from here on

// From word i to word j, over the words; a word that looks at itself has a loop.
function arc(i: number, j: number): string {
    const [from, to] = [(i + 0.5) * step, (j + 0.5) * step],
        top = foot - Math.min(96, 18 + 16 * Math.abs(i - j));
    return i === j
        ? `M${from - 5} ${foot}c-14-30 24-30 10 0`
        : `M${from} ${foot}Q${(from + to) / 2} ${2 * top - foot} ${to} ${foot}`;
}

export function linesHtml(result: Result, row: number): string {
    const stage = ["dropped", "weights"].map((id) => result.stages.find((s) => s.id === id)).find(Boolean)!,
        { keyTokens: words } = result,
        n = words.length,
        weight = (i: number, j: number) => stage.data[i * n + j],
        line = (i: number, j: number, name: string) => {
            const w = weight(i, j),
                strong = name === "own" ? 1 : 0.3;
            return `<path class="${name}" d="${arc(i, j)}" stroke-width="${(0.5 + 5 * strong * w).toFixed(1)}" stroke-opacity="${Math.min(1, 0.15 + strong * w).toFixed(2)}"/>`;
        };
    let others = "",
        own = "";
    for (let i = 0; i < n; ++i)
        for (let j = 0; j < n; ++j)
            if (i === row) own += weight(i, j) > 0.01 ? line(i, j, "own") : "";
            else if (weight(i, j) >= faint) others += line(i, j, "other");
    const labels = words.map(
        (word, i) =>
            `<text data-row="${i}"${i === row ? ' class="here"' : ""} x="${(i + 0.5) * step}" y="${height - 8}">${escape(word)}</text>`,
    );
    const most = result.keyNames
        .map((word, j) => ({ word, w: weight(row, j) }))
        .sort((a, b) => b.w - a.w)
        .slice(0, 3)
        .map(({ word, w }) => `${word} ${fixed(w)}`);
    return `<svg viewBox="0 0 ${n * step} ${height}" role="img" aria-label="${escape(fill(texts.stage.looksAt, result.names[row], most.join(", ")))}">${others}${own}${labels.join("")}</svg>`;
}

export function connectLines(app: App, pick: (row: number) => void): void {
    let on = false;
    const button = byId("lines-on");
    button.addEventListener("click", () => {
        on = !on;
        button.setAttribute("aria-pressed", String(on));
        app.showSoon();
    });
    byId("lines").addEventListener("click", (event) => {
        const row = (event.target as Element).closest<SVGElement>("[data-row]")?.dataset.row;
        if (row) pick(Number(row));
    });
    app.onShow.add(() => {
        const { result } = app;
        if (!result || (app.stale && app.engine.info)) return;
        const shown =
            on && result.tokens.length === result.keyTokens.length && result.keyTokens.length <= mostTokens;
        hide("lines", !shown);
        if (shown) setHtml(byId("lines"), linesHtml(result, Math.min(app.state.i, result.tokens.length - 1)));
    });
}
