// Thumbnails of all heads, and one head against another.
import type { App, Result } from "../app/app.ts";
import { colorTable, isDark, picture } from "../page/colors.ts";
import { byId, hide, select, setText } from "../page/dom.ts";
import { fill, number } from "../page/format.ts";
import { stageTexts } from "../page/state.ts";
import { MatrixView } from "../matrix/matrix.ts";
import type { MatrixContent } from "../matrix/matrix_content.ts";
import type { Workbench } from "./stage.ts";
import { headName } from "../app/views.ts";

// How far apart two distributions are: 0 the same, ln 2 nothing in common.
function jensenShannon(p: Float32Array, q: Float32Array): number {
    let sum = 0;
    for (let i = 0; i < p.length; ++i) {
        const middle = (p[i] + q[i]) / 2;
        if (p[i] > 0) sum += (p[i] * Math.log(p[i] / middle)) / 2;
        if (q[i] > 0) sum += (q[i] * Math.log(q[i] / middle)) / 2;
    }
    return Math.max(0, sum);
}

export class Heads {
    private readonly a: MatrixView;
    private readonly b: MatrixView;
    private drawn: Result | null = null; // result of the shown thumbnails
    private theme = false;

    constructor(
        private readonly app: App,
        private readonly workbench: Workbench,
    ) {
        const handlers = { pick: (row: number, column: number) => workbench.pick(row, column) };
        this.a = new MatrixView(byId("compare-a"), handlers, texts.heads.first);
        this.b = new MatrixView(byId("compare-b"), handlers, texts.heads.second);
        byId("thumbs").addEventListener("click", (event) => {
            const head = (event.target as Element).closest<HTMLElement>("[data-head]")?.dataset.head;
            if (head !== undefined) this.choose(Number(head), event.shiftKey);
        });
        byId("thumbs").addEventListener("keydown", (event) => {
            const head = (event.target as Element).closest<HTMLElement>("[data-head]")?.dataset.head;
            if (head !== undefined && event.key.toLowerCase() === "c") this.choose(Number(head), true);
        });
        for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="split"]'))
            radio.addEventListener("change", () => app.change({ how: radio.value }, { numbers: false }));
        select("compare-with").addEventListener("change", () =>
            app.change({ cmp: Number(select("compare-with").value) }, { numbers: false }),
        );
        byId("compare-off").addEventListener("click", () => app.change({ cmp: -1 }, { numbers: false }));
        app.onShow.add(() => {
            if (app.result && !app.stale) this.show(app.result);
        });
    }

    private choose(head: number, compare: boolean): void {
        if (!compare) this.app.change({ head });
        else if (head !== this.app.state.head)
            this.app.change({ cmp: this.app.state.cmp === head ? -1 : head }, { numbers: false });
    }

    private show(result: Result): void {
        const count = result.heads,
            { state } = this.app;
        hide("heads-panel", count < 2 || !result.thumbnails);
        if (byId("heads-panel").hidden) return;
        const list = byId("thumbs");
        if (list.childElementCount !== count)
            list.innerHTML = Array.from(
                { length: count },
                (_, i) =>
                    `<button type="button" class="thumb" data-head="${i}"><canvas width="48" height="48" aria-hidden="true"></canvas><span></span><small></small></button>`,
            ).join("");
        const current = Math.min(state.head, count - 1),
            other = select("compare-with"),
            wanted = [-1, ...Array.from({ length: count }, (_, i) => i).filter((i) => i !== current)];
        const heads = `${wanted.join()} ${result.state.task}`;
        if (other.dataset.heads !== heads)
            other.replaceChildren(
                ...wanted.map(
                    (i) => new Option(i < 0 ? texts.heads.none : headName(i, result.learned), String(i)),
                ),
            );
        other.dataset.heads = heads;
        other.value = String(wanted.includes(state.cmp) ? state.cmp : -1);
        [...list.children].forEach((button, i) => {
            button.setAttribute("aria-pressed", String(i === Math.min(state.head, count - 1)));
            button.classList.toggle("b", i === state.cmp);
            setText(button.querySelector("span")!, headName(i, result.learned));
            const stats = result.stats[i];
            setText(
                button.querySelector("small")!,
                stats ? fill(texts.heads.entropy, stats.entropy.toFixed(2)) : "",
            );
            (button as HTMLElement).title = stats
                ? fill(
                      texts.heads.facts,
                      stats.distance.toFixed(2),
                      (100 * stats.first).toFixed(0),
                      (100 * stats.previous).toFixed(0),
                  )
                : "";
            if (this.drawn !== result) this.thumbnail(button.querySelector("canvas")!, result, i);
        });
        this.drawn = this.theme === isDark() ? result : null;
        this.theme = isDark();
        void this.showComparison(result);
    }

    private thumbnail(canvas: HTMLCanvasElement, result: Result, head: number): void {
        const size = result.thumbnailSize,
            count = size * size;
        const part = result.thumbnails!.subarray(head * count, (head + 1) * count);
        if (part.length < count) return;
        const scale = {
            table: colorTable("ink"),
            low: 0,
            high: part.reduce((a, b) => Math.max(a, b), 1e-9),
            log: false,
        };
        canvas.width = canvas.height = size;
        canvas.getContext("2d")!.drawImage(picture(size, size, scale, part), 0, 0);
    }

    private async showComparison(result: Result): Promise<void> {
        const { state } = this.app,
            other = state.cmp;
        const stage = this.workbench.stage();
        const on =
            other >= 0 &&
            other < result.heads &&
            other !== state.head &&
            !!stage &&
            stageTexts[stage.id].pairs;
        hide("compare", !on);
        if (!on) return;
        for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="split"]'))
            radio.checked = radio.value === state.how;
        const stages = await this.app.engine.ask("headStages", { head: other }).catch(() => null);
        const there = stages?.find((s) => s.id === stage.id);
        if (!there || result !== this.app.result) return;
        const a = this.workbench.content(stage, result),
            b: MatrixContent = { ...a, data: there.data };
        const difference = a.data.map((value, i) => value - there.data[i]);
        let largest = 0,
            where = 0,
            sum = 0,
            count = 0;
        for (const [i, value] of difference.entries()) {
            const magnitude = Math.abs(value);
            if (!Number.isFinite(magnitude)) continue;
            sum += magnitude;
            ++count;
            if (magnitude > largest) [largest, where] = [magnitude, i];
        }
        const row = Math.min(state.i, a.rows - 1),
            rowOf = (data: Float32Array) => data.subarray(row * a.columns, (row + 1) * a.columns);
        const names = [state.head, other].map((head) => headName(head, result.learned));
        setText(byId("compare-title"), fill(texts.heads.and, ...names));
        setText(
            byId("compare-note"),
            fill(
                texts.heads.largest,
                number(largest),
                a.rowLabels[Math.floor(where / a.columns)],
                a.columnLabels[where % a.columns],
                number(sum / Math.max(1, count)),
            ) +
                (stage.id === "weights" && row >= 0
                    ? fill(
                          texts.heads.divergence,
                          a.rowLabels[row],
                          number(jensenShannon(rowOf(a.data), rowOf(there.data))),
                      )
                    : "") +
                (state.how === "triangle" ? fill(texts.heads.triangles, ...names) : "") +
                (state.how === "difference" ? fill(texts.heads.difference, ...names) : ""),
        );
        hide("compare-b", state.how !== "side");
        this.a.set(
            state.how === "difference"
                ? { ...a, data: difference, signed: true, sums: false, low: null, high: null, log: false }
                : state.how === "triangle"
                  ? { ...a, upper: there.data, sums: false }
                  : a,
        );
        if (state.how === "side") this.b.set(b);
        for (const view of [this.a, this.b]) {
            view.pick(Math.min(state.i, a.rows - 1), Math.min(state.j, a.columns - 1));
            view.show();
        }
    }
}
