// The workbench: rail, matrix, color scale and inspector.
import { arithmeticOf } from "../app/arithmetic.ts";
import { labels, sentence, type App, type Derived, type Result } from "../app/app.ts";
import { pageKit } from "../app/kit.ts";
import type { LearnedWhy } from "../app/why.ts";
import { byId, choose, fillOptions, hide, input, select, setHtml, setText } from "../page/dom.ts";
import { escape, fill, fixed, formula, number, place, shapeText } from "../page/format.ts";
import { said } from "../texts/said.ts";
import { ColorBar } from "./color_bar.ts";
import { rewriteHtml } from "./rewrite.ts";
import {
    arithmeticHtml,
    headName,
    inspectorHtml,
    levelsHtml,
    railHtml,
    readsOf,
    tableHtml,
} from "../app/views.ts";
import { MatrixView } from "../matrix/matrix.ts";
import { isHidden, type MatrixContent } from "../matrix/matrix_content.ts";
import type { Stage } from "../engine/protocol.ts";
import {
    editsOf,
    isEditable,
    levels,
    limits,
    mostEdits,
    presetState,
    stageTexts,
    tasks,
    withVisible,
    type State,
} from "../page/state.ts";

const largestTable = 64;
const ofVocabulary = new Set(["logits", "probabilities"]); // a column for each word
const railIsRow = matchMedia("(max-width: 1199px)");
const copyButtons = `<p class="copies"><span class="label">${texts.stage.copyAs}</span> ${texts.stage.copyNames
    .split(",")
    .map((name, i) => `<button type="button" class="quiet" data-copy="${i}">${name}</button>`)
    .join(" ")}</p>`;

// Returns what a screen reader announces when it changes: empty if there is nothing to announce.
function spokenFacts(state: State, stage: Stage): Record<string, string> {
    const mask = select("mask").querySelector<HTMLOptionElement>(`option[value="${state.mask}"]`)?.text ?? "";
    return {
        typed: `${state.text} ${state.bits}`,
        level: state.task
            ? fill(texts.spoken.task, tasks.find(({ task }) => task === state.task)!.name)
            : fill(texts.spoken.level, state.level, levels[state.level - 1].name),
        off: state.off
            ? fill(texts.spoken.headsOff, state.off.toString(2).split("1").length - 1)
            : texts.spoken.headsOn,
        stage: stageTexts[stage.id].label,
        head: fill(texts.stage.head, state.head),
        heads: fill(texts.spoken.heads, state.heads, state.kv),
        mask: `${fill(texts.spoken.mask, mask)}${state.mask === "window" ? `, ${fill(texts.spoken.back, state.win)}` : ""}`,
        route: state.route === "after" ? texts.spoken.maskAfter : texts.spoken.maskBefore,
        dropout:
            state.p > 0
                ? fill(texts.spoken.dropout, state.p.toFixed(2), state.dseed)
                : texts.spoken.noDropout,
        scale: fill(
            texts.spoken.scale,
            state.scale === "auto" ? texts.spoken.root : state.scale === "none" ? 1 : state.scale,
        ),
        temperature: fill(texts.spoken.temperature, state.temp.toFixed(2)),
        softcap: state.cap ? fill(texts.spoken.softcap, state.cap.toFixed(2)) : texts.spoken.noSoftcap,
        alibi: state.alibi ? texts.spoken.alibi : texts.spoken.noAlibi,
        weights: fill(texts.spoken.seed, state.seed, state.init),
        edits: state.edits ? fill(texts.spoken.edits, editsOf(state.edits).length) : texts.spoken.noEdits,
        length: state.len ? fill(texts.spoken.tokens, state.len) : texts.spoken.asTyped,
        log: state.log ? texts.spoken.log : texts.spoken.linear,
        table: state.table ? texts.spoken.table : texts.spoken.picture,
    };
}

export class Workbench {
    readonly matrix: MatrixView;
    private derivation = 0;
    private spoken: Record<string, string> | null = null;
    private invited = false;
    readonly toScroll = new Set<Element>(); // rows whose current part is to be in sight
    private readonly bar: ColorBar;
    private why: LearnedWhy | null = null;

    constructor(private readonly app: App) {
        this.matrix = new MatrixView(
            byId("matrix"),
            {
                pick: (row, column) => this.pick(row, column),
                hover: (row, column) => {
                    void this.inspect(row, column);
                    this.invite();
                },
                open: (row, column) => void this.edit(row, column),
                moved: (view) => app.change({ view }, { numbers: false, burst: "view" }),
            },
            texts.stage.matrix,
        );
        this.bar = new ColorBar(app, this.matrix);
        this.matrix.element.hidden = true; // until the first table makes room for it
        byId("rail").addEventListener("click", (event) => {
            const id = (event.target as Element).closest<HTMLElement>("[data-stage]")?.dataset.stage;
            if (id) app.change({ stage: id, lo: "", hi: "" }, { numbers: false });
        });
        byId("inspector").addEventListener("click", (event) => {
            const column = (event.target as Element).closest<HTMLElement>("[data-column]")?.dataset.column;
            if (column) this.pick(app.state.i, Number(column));
            if ((event.target as Element).closest("[data-edit]")) void this.edit(app.state.i, app.state.j);
            const copy = (event.target as Element).closest<HTMLElement>("[data-copy]");
            if (copy) void this.copy(copy);
            if ((event.target as Element).closest("[data-why]")) void app.during(this.openWhy());
        });
        byId("table-box").addEventListener("dblclick", (event) => {
            const cell = (event.target as Element).closest("td");
            if (cell)
                void this.edit((cell.parentElement as HTMLTableRowElement).rowIndex - 1, cell.cellIndex - 1);
        });
        byId("stage-about").addEventListener("click", (event) => {
            if ((event.target as Element).closest("[data-unedit]")) app.change({ edits: "" });
            if (!(event.target as Element).closest("[data-words]")) return;
            event.preventDefault();
            app.setLevel(2, 0, app.state.text);
        });
        byId("matrix").addEventListener("pointerleave", () => void this.inspect(app.state.i, app.state.j));
        select("head").addEventListener("change", () => app.change({ head: Number(select("head").value) }));
        byId("as-table").addEventListener("click", () =>
            app.change({ table: !app.state.table }, { numbers: false }),
        );
        byId("invite-go").addEventListener("click", () => {
            hide("invite", true);
            input("text").focus();
            input("text").select();
        });
        byId("sheet").addEventListener("click", () =>
            this.openSheet(byId("sheet").getAttribute("aria-expanded") !== "true"),
        );
        // The sheet stays in sight as long as the matrix is.
        new IntersectionObserver(
            ([entry]) => byId("inspect-box").classList.toggle("pinned", entry.isIntersecting),
            { rootMargin: "0px 0px -40% 0px" },
        ).observe(byId("matrix"));
        app.onShow.add(() => this.showWords());
        app.onShow.add(() => this.showNumbers());
        app.onShow.add(() => this.showMatrix());
        app.onShow.add(() => this.showPick());
        app.onShown.add(() => this.scrollBars());
    }

    // The stage that the state names, or the nearest that this layer has.
    stage(): Stage | null {
        const stages = this.app.result?.stages ?? [],
            wanted = this.app.state.stage;
        for (const id of [wanted, ...(stageTexts[wanted]?.nearest ?? []), "weights"]) {
            const found = stages.find((s) => s.id === id);
            if (found) return found;
        }
        return null;
    }

    // A number of the reader's own into a cell of X or of the weights.
    private async edit(row: number, column: number): Promise<void> {
        const { app } = this,
            stage = this.stage();
        if (!stage || app.failed || !isEditable(stage.id, app.state.task, app.own)) return;
        const { openCell } = await app.during(import("./edit.ts")),
            [least, most] = limits.edits!;
        openCell(app, this, { least, most, cells: mostEdits, fill }, row, column);
    }

    stepStage(by: number): void {
        const stages = this.app.result?.stages ?? [];
        const at = stages.findIndex((s) => s.id === this.stage()?.id);
        const next = stages[Math.max(0, Math.min(stages.length - 1, at + by))];
        if (next) this.app.change({ stage: next.id, lo: "", hi: "" }, { numbers: false });
    }

    content(stage: Stage, result: Result): MatrixContent {
        const { state } = this.app;
        const columns = stage.shape.at(-1) ?? 1,
            data = this.headOf(stage);
        const rows = data.length / columns,
            pairs = stageTexts[stage.id].pairs;
        const masked =
            pairs && stageTexts[stage.id].sums ? result.stages.find((s) => s.id === "masked") : undefined;
        const tokenRows = rows === result.tokens.length && !stage.id.startsWith("w_");
        const keyRows = stage.id === "keys" || stage.id === "values";
        return {
            data,
            rows,
            columns,
            rowLabels: keyRows ? result.keyNames : tokenRows ? result.names : labels(rows, ""),
            columnLabels: pairs
                ? result.keyNames
                : ofVocabulary.has(stage.id) && result.learned
                  ? result.learned.vocabulary
                  : labels(columns, ""),
            name: stageTexts[stage.id].label,
            map: state.colormap,
            signed: stageTexts[stage.id].signed,
            sums: stageTexts[stage.id].sums ?? false,
            masked: masked && this.headOf(masked),
            stripe: this.stripeOf(stage, result),
            edited: new Set(
                editsOf(result.state.edits)
                    .filter(([id]) => id === stage.id)
                    .map(([, row, column]) => Number(row) * columns + Number(column)),
            ),
            log: state.log,
            low: state.lo === "" ? null : Number(state.lo),
            high: state.hi === "" ? null : Number(state.hi),
        };
    }

    // The run of weights that shows what the head does, unless a walk marks other cells.
    private stripeOf({ id }: Stage, { learned }: Result): MatrixContent["stripe"] {
        if (!learned?.stripeText || !learned.stripe.length || this.app.state.step) return undefined;
        return id === "weights" ? { run: learned.stripe, text: said(learned.stripeText) } : undefined;
    }

    // Picks a query, and the key that it looks at most.
    pickMost(row: number, burst = ""): void {
        const weights = this.app.result?.stages.find(({ id }) => id === "weights");
        if (!weights) return;
        const columns = weights.shape.at(-1)!,
            values = weights.data.subarray(row * columns, (row + 1) * columns);
        const column = values.indexOf(Math.max(...values));
        if (burst) this.app.change({ i: row, j: column }, { numbers: false, burst });
        else this.pick(row, column);
    }

    // The part of a stage that belongs to the head in view.
    private headOf(stage: Stage): Float32Array {
        const heads = stage.shape.length > 2 ? stage.shape[0] : 1,
            size = stage.data.length / heads;
        // Heads of a model that learned are counted over its layers.
        const { result } = this.app,
            all = (result?.heads ?? 1) / (result?.learned?.layers ?? 1),
            own = Math.min(this.app.state.head, (result?.heads ?? 1) - 1) % all,
            head = heads === 1 ? 0 : Math.floor(own / (all / heads));
        return stage.data.subarray(head * size, (head + 1) * size);
    }

    // Words and values of one result, never of two: while newer values are on their way, nothing changes.
    private toShow(): { result: Result; stage: Stage } | null {
        const { result, stale, engine } = this.app,
            stage = this.stage();
        return result && stage && !(stale && engine.info) ? { result, stage } : null;
    }

    private showWords(): void {
        const shown = this.toShow();
        if (!shown) return;
        const { result, stage } = shown;
        this.showLevel(result);
        const rail = byId("rail");
        if (
            setHtml(rail, railHtml(result.stages, stage.id, result.learned ? 1 : result.heads)) &&
            railIsRow.matches
        )
            this.toScroll.add(rail);
        const text = stageTexts[stage.id];
        setHtml(
            byId("stage-name"),
            `${text.label} <span class="formula">${formula(this.formulaOf(stage, result))}</span>`,
        );
        const { refused } = this.app,
            cut = result.notes
                .filter(({ key }) => key === "text")
                .map(({ text }) => ` ${sentence(text)}`)
                .join("");
        if (document.documentElement.classList.toggle("is-refused", refused !== "")) this.say(refused);
        setHtml(
            byId("stage-about"),
            this.readsHtml(result) ||
                escape(refused) ||
                `${result.learned ? "" : `${text.about}; ${shapeText(stage.shape)}.`}${cut}${cut && !result.learned ? texts.stage.cut : ""}${result.state.edits && !result.own && !result.learned ? ` <b>${fill(texts.stage.edited, editsOf(result.state.edits).length)}</b> <button type="button" class="quiet" data-unedit>${texts.stage.undo}</button>` : ""}`,
        );
        this.showHeads(result);
    }

    // Says what a model of few tokens reads, once the reader has typed something else.
    private readsHtml({ learned, notes, state: { level, task } }: Result): string {
        const { text } = this.app.state,
            reads = learned && text !== presetState(level, task).text && readsOf(learned);
        if (!reads) return "";
        const left = this.app.refused
            ? text
            : notes.find(({ key }) => key === "text")?.text.match(/^left out.*?: (.*)/)?.[1];
        return `${fill(texts.stage.reads, escape(reads), escape(left ? fill(texts.stage.leftOut, left) : ""))} <a href="#v=1&amp;level=2" data-words>${texts.stage.useWords}</a>`;
    }

    private showNumbers(): void {
        const shown = this.toShow();
        if (!shown) return;
        const { state } = this.app,
            content = this.content(shown.stage, shown.result);
        this.matrix.set(content);
        this.matrix.look(state.view);
        this.matrix.pick(Math.min(state.i, content.rows - 1), Math.min(state.j, content.columns - 1));
    }

    private showMatrix(): void {
        const shown = this.toShow(),
            content = this.matrix.content;
        if (!shown || !content) return;
        const { stage } = shown,
            isSmall = content.rows <= largestTable && content.columns <= largestTable,
            asTable = this.app.state.table && isSmall;
        byId("as-table").setAttribute("aria-pressed", String(asTable));
        byId<HTMLButtonElement>("as-table").disabled = !isSmall;
        hide("table-box", !asTable);
        byId("table-box").classList.remove("first-table");
        this.matrix.element.hidden = asTable;
        if (asTable)
            setHtml(
                byId("table-box"),
                tableHtml(
                    { ...stage, shape: [content.rows, content.columns], data: content.data },
                    content.rowLabels,
                    content.columnLabels,
                    stageTexts[stage.id].pairs ? this.matrix.picked : null,
                    (cell) => isHidden(content, cell),
                ),
            );
        this.matrix.show();
    }

    private showPick(): void {
        const shown = this.toShow(),
            content = this.matrix.content;
        if (!shown || !content) return;
        this.bar.show(content);
        this.showSteps(shown.stage, ...this.matrix.picked);
        this.announceChange(shown.stage);
    }

    private formulaOf(stage: Stage, result: Result): string {
        const given = result.own && ["queries", "keys", "values"].includes(stage.id);
        return given ? texts.stage.fromFile : said(stage.formula);
    }

    private showLevel({ state: { level, task }, own }: Result): void {
        const bar = document.querySelector(".levels")!;
        if (setHtml(bar, levelsHtml(own ? 0 : task || level))) this.toScroll.add(bar);
        hide("sentence", own !== null);
    }

    // On narrow screens the rail and the levels are rows that scroll. This reads the layout, so it comes last.
    private scrollBars(): void {
        for (const bar of this.toScroll) {
            const current = bar.querySelector<HTMLElement>("[aria-current], [aria-pressed=true]");
            if (current)
                bar.scrollLeft +=
                    current.getBoundingClientRect().left -
                    bar.getBoundingClientRect().left -
                    bar.clientWidth / 3;
        }
        this.toScroll.clear();
    }

    private showHeads({ heads: count, learned }: Result): void {
        hide("head-box", count < 2);
        const list = select("head"),
            names = Array.from({ length: count }, (_, i) => (learned ? headName(i, learned) : String(i)));
        fillOptions(list, names, (i) => String(i));
        choose(list, String(Math.min(this.app.state.head, count - 1)));
    }

    // On phones the steps are a sheet over the page's lower end; closed it shows the cell and its value.
    private openSheet(on: boolean): void {
        byId("sheet").setAttribute("aria-expanded", String(on));
        byId("sheet").textContent = on ? texts.page.close : texts.page.showSteps;
        byId("inspect-box").classList.toggle("open", on);
        if (!on) byId("inspect-box").scrollTop = 0;
        if (!on || this.matrix.element.hidden) return;
        // The cell that the steps are of stays in sight above them.
        const { bottom } = this.matrix.cellBox(this.app.state.i, this.app.state.j),
            hidden = bottom + 12 - (innerHeight - byId("inspect-box").offsetHeight);
        if (hidden > 0) scrollBy(0, hidden);
    }

    // Once, after the first look into a cell.
    private invite(): void {
        if (this.invited) return;
        this.invited = true;
        const { own, state } = this.app;
        hide("invite", own !== null || state.text !== presetState(state.level, state.task).text);
    }

    pick(row: number, column: number): void {
        this.invite();
        this.app.change({ i: row, j: column }, { numbers: false, burst: "pick" });
        this.matrix.pick(row, column);
        this.matrix.draw(); // shows the pick before its arithmetic arrives
        this.say(this.cellText());
    }

    say(text: string): void {
        if (text) setText(byId("announce"), text);
    }

    // "query journey, key starts, weight 0.233, second highest of 6"
    cellText(): string {
        const result = this.app.result,
            stage = this.stage();
        if (!result || !stage) return "";
        const content = this.content(stage, result),
            row = Math.min(this.app.state.i, content.rows - 1),
            column = Math.min(this.app.state.j, content.columns - 1);
        const value = content.data[row * content.columns + column];
        if (!stageTexts[stage.id].pairs)
            return fill(texts.stage.cellOf, content.rowLabels[row], column, fixed(value));
        let rank = 0,
            seen = 0;
        for (let j = 0; j < content.columns; ++j) {
            const cell = row * content.columns + j;
            if (content.data[cell] > value) ++rank;
            if (content.data[cell] > -Infinity && !isHidden(content, cell)) ++seen;
        }
        const where =
            value === -Infinity || isHidden(content, row * content.columns + column)
                ? texts.steps.hidden
                : place(rank, seen);
        return fill(
            texts.stage.pairOf,
            content.rowLabels[row],
            content.columnLabels[column],
            content.name.toLowerCase(),
            fixed(value, 3),
            where,
        );
    }

    // Announces what a key or control changed, and its effect on the picked cell. Typing a sentence and painting a
    // mask are not interrupted: the fields and the mask editor have their own announcements.
    private announceChange(stage: Stage): void {
        const now = spokenFacts(this.app.state, stage),
            before = this.spoken;
        this.spoken = now;
        if (!before || now.typed !== before.typed) return;
        const names = now.level === before.level ? Object.keys(now) : ["level", "stage"],
            changed = names.filter((name) => now[name] !== before[name]);
        if (changed.length) this.say(`${changed.map((name) => now[name]).join(", ")}. ${this.cellText()}`);
    }

    // The arithmetic of the picked cell, if it has come; hovering asks for others.
    private showSteps(stage: Stage, row: number, column: number): void {
        const { derived, result } = this.app;
        if (!stageTexts[stage.id].pairs) return this.inspectPlain(row, column);
        if (derived?.result === result && derived.row === row && derived.column === column)
            this.writeSteps(derived);
        else void this.inspect(row, column);
    }

    private async inspect(row: number, column: number): Promise<void> {
        const stage = this.stage();
        if (!this.app.result || !stage) return;
        if (!stageTexts[stage.id].pairs) return this.inspectPlain(row, column);
        const ask = ++this.derivation;
        const derived = await this.app.derive(row, column);
        if (derived && ask === this.derivation) this.writeSteps(derived);
    }

    private writeSteps({ result, row, column, steps }: Derived): void {
        const { state } = result;
        const content = this.content(this.stage()!, result);
        rewriteHtml(
            byId("inspector"),
            inspectorHtml(steps, {
                tokensRow: result.names,
                tokensColumn: result.keyNames,
                row,
                column,
                state,
                label: content.name,
                value: content.data[row * content.columns + column],
            }) +
                (result.learned ? pageKit.whyButton : "") +
                copyButtons,
        );
    }

    private async openWhy(): Promise<void> {
        const { LearnedWhy } = await pageKit.why();
        this.why ??= new LearnedWhy(this.app, pageKit, (row) => this.pickMost(row), said);
        await this.why.open();
    }

    private async copy(button: HTMLElement): Promise<void> {
        const { app } = this,
            { i: row, j: column } = app.state,
            name = button.textContent;
        try {
            const result = app.result!,
                format = Number(button.dataset.copy);
            const { pythonOf, latexOf, csvOf } = await app.during(import("./copies.ts"));
            const whole: Record<string, typeof pythonOf> = { Python: pythonOf, LaTeX: latexOf, CSV: csvOf };
            const text =
                (result.learned ? null : whole[name ?? ""]?.(withVisible(result), row, column)) ??
                (await app.engine.ask("deriveText", { head: result.headIndex, row, column, format }));
            await navigator.clipboard.writeText(text);
            button.textContent = texts.stage.copied;
        } catch {
            button.textContent = texts.stage.notAllowed;
        }
        setTimeout(() => {
            button.textContent = name;
        }, 1500);
    }

    // Stages without pairs: the number, and the sum that it comes from.
    private inspectPlain(row: number, column: number): void {
        const result = this.app.result,
            stage = this.stage();
        if (!result || !stage) return;
        const content = this.content(stage, result),
            text = stageTexts[stage.id];
        row = Math.min(row, content.rows - 1);
        column = Math.min(column, content.columns - 1);
        const made = arithmeticOf(result, stage.id, row, column),
            elsewhere = stage.id === "context" && !made && !result.own;
        const why = made
                ? ""
                : elsewhere
                  ? fill(texts.stage.otherHead, Math.floor(column / (content.columns / result.heads)))
                  : stage.id.startsWith("w_")
                    ? result.learned
                        ? texts.stage.learned
                        : texts.stage.drawn
                    : "",
            change = isEditable(stage.id, result.state.task, result.own)
                ? `<p><button type="button" class="quiet live" data-edit>${texts.stage.change}</button></p>`
                : "";
        setHtml(
            byId("inspector"),
            `<div><p class="label">${fill(texts.stage.numberOf, text.label, escape(content.rowLabels[row]), column)}</p><p class="big">${number(content.data[row * content.columns + column])}</p><p class="note">${formula(this.formulaOf(stage, result))}: ${text.about}.${why}</p>${change}${made ? arithmeticHtml(made) : ""}</div>`,
        );
    }
}
