// Why a head gives a weight: its score as a sum over what earlier parts wrote to the query's and to the key's row. Loaded
// when it is first asked for, by the page's own models and by a reader's.
// It imports only types: code shared with the page would become its own file that the first view waits for.
import type { Why, Writer } from "../engine/protocol.ts";
import type { App, Result } from "./app.ts";
import type { PageKit } from "./kit.ts";
import style from "./why.css";

const mostWriters = 12; // with a row and a column; the others are one together

// The panel's view of the model.
export interface WhyOf {
    headText(layer: number, head: number): string; // the head's role, or ""
    open(layer: number, head: number, token: number): void; // shows a head, from a query's row
}
// A weight that was asked about.
export interface WhyCell {
    layer: number;
    head: number;
    tokens: string[]; // names of the text's
    at: [query: number, key: number];
}

const sides = ["query", "key"] as const;
const remainders: Record<string, string> = {
    softcap: texts.why.softcap,
    "ALiBi slope": texts.why.slope,
    "ALiBi slope and bias": texts.why.slopeAndBias,
    bias: texts.why.bias,
    mask: texts.why.mask,
};

export class WhyPanel {
    readonly section = document.createElement("section");
    private readonly matrix: InstanceType<PageKit["MatrixView"]>;
    private why: Why | null = null;
    private cell: WhyCell | null = null;
    private shown: number[][] = [[], []]; // writers of the matrix's rows and columns; a last -1: the others
    private all = false;

    constructor(
        private readonly kit: PageKit,
        after: HTMLElement,
        id: string,
        private readonly of: WhyOf,
    ) {
        const { section } = this,
            sheet = new CSSStyleSheet();
        sheet.replaceSync(style);
        document.adoptedStyleSheets.push(sheet);
        section.id = id;
        section.classList.add("why");
        section.hidden = true;
        after.after(section);
        section.innerHTML =
            `<h2 class="why-title" tabindex="-1"></h2><p class="prose why-about"></p><dl class="why-score"></dl>` +
            `<div class="why-parts"><div><p class="buttons"><button type="button" class="quiet why-all"></button><button type="button" class="quiet why-close">${texts.why.close}</button></p><div class="matrix"></div><p class="why-cell" role="status"></p></div>` +
            `<div class="why-pairs"></div></div>`;
        this.matrix = new kit.MatrixView(
            this.part("matrix"),
            { pick: (row, column) => this.pick(row, column) },
            texts.why.matrix,
        );
        this.part("why-all").addEventListener("click", () => {
            this.all = !this.all;
            this.draw();
        });
        this.part("why-close").addEventListener("click", () => (section.hidden = true));
        section.addEventListener("click", (event) => {
            const at = (event.target as Element).closest<HTMLElement>("[data-writer]")?.dataset;
            if (!at || !this.cell) return;
            const { layer, head } = this.why!.split.writers[Number(at.writer)];
            of.open(layer!, head!, this.cell.at[Number(at.side)]);
        });
    }

    private part(name: string): HTMLElement {
        return this.section.querySelector(`.${name}`)!;
    }
    get isOpen(): boolean {
        return !this.section.hidden;
    }
    open(): void {
        this.section.hidden = false;
        this.part("why-title").focus({ preventScroll: true });
        this.section.scrollIntoView({ block: "start" });
    }

    show(why: Why, cell: WhyCell): void {
        this.why = why;
        this.cell = cell;
        const { setHtml, escape, fill, number, valueOf, fixed } = this.kit,
            { writers, entries, score, sum, remainders: others } = why.split,
            names = cell.at.map((n) => cell.tokens[n]),
            [query, key] = names.map((token) => `<bdi>${escape(token)}</bdi>`),
            of = this.nameOf({ kind: "head", layer: cell.layer, head: cell.head }, 0),
            count = writers.length;
        setHtml(this.part("why-title"), fill(texts.why.title, query, key));
        this.section.ariaLabel = fill(texts.why.title, ...names);
        setHtml(this.part("why-about"), fill(texts.why.about, of, query, key));
        const terms: [string, number | string][] = [
            [fill(texts.why.pairs, count), sum],
            ...others.map(({ name, value }): [string, number | string] => [remainders[name] ?? name, value]),
            [texts.why.score, score],
        ];
        setHtml(
            this.part("why-score"),
            terms.map(([name, x]) => `<div><dt>${escape(name)}</dt><dd>${number(x)}</dd></div>`).join(""),
        );
        const whole = valueOf(score),
            share = (x: number) => (Number.isFinite(whole) && whole ? `${fixed((100 * x) / whole, 0)}%` : "");
        setHtml(
            this.part("why-pairs"),
            `<table class="plain"><caption class="label">${fill(texts.why.largest, entries.length, (count * count).toLocaleString(texts.page.language))}</caption><thead><tr><th scope="col">${fill(texts.why.at, query)}</th><th scope="col">${fill(texts.why.at, key)}</th><th scope="col">${texts.why.share}</th><th scope="col">${texts.why.score}</th></tr></thead><tbody>${entries
                .map(
                    ({ query_writer: a, key_writer: b, value }) =>
                        `<tr><td>${this.writerHtml(a, 0)}</td><td>${this.writerHtml(b, 1)}</td><td>${share(valueOf(value))}</td><td>${number(value)}</td></tr>`,
                )
                .join("")}</tbody></table>`,
        );
        this.draw();
    }

    private nameOf({ kind, layer, head }: Writer, side: number): string {
        const { fill } = this.kit,
            job = kind === "head" ? this.of.headText(layer!, head!) : "";
        switch (kind) {
            case "token":
                return texts.why.token;
            case "position":
                return texts.why.position;
            case "embedding_bias":
                return texts.why.embeddingBias;
            case "head":
                return `${fill(texts.why.head, `${layer}.${head}`)}${job && ` (${job})`}`;
            case "feed_forward":
                return fill(texts.why.feedForward, layer!);
            case "bias":
                return fill(texts.why.biases, layer!);
        }
        return side ? texts.why.ofKey : texts.why.ofQuery;
    }
    private writerHtml(n: number, side: number): string {
        const writer = this.why!.split.writers[n],
            name = this.kit.escape(this.nameOf(writer, side));
        return writer.kind === "head"
            ? `<button type="button" class="quiet" data-writer="${n}" data-side="${side}">${name}</button>`
            : name;
    }

    // The writers with the largest entries first, and all others together.
    private draw(): void {
        const { kit, why } = this,
            { setText, fill } = kit,
            { writers } = why!.split,
            count = writers.length,
            at = (a: number, b: number) => why!.matrix[a * count + b],
            range = writers.map((_, n) => n),
            few = !this.all && count > mostWriters + 1;
        this.shown = sides.map((_, side) => {
            const size = range.map((a) =>
                range.reduce((sum, b) => sum + Math.abs(side ? at(b, a) : at(a, b)), 0),
            );
            const order = range.toSorted((a, b) => size[b] - size[a]);
            return few ? [...order.slice(0, mostWriters), -1] : order;
        });
        const [rows, columns] = this.shown,
            members = (n: number, side: number) =>
                n < 0 ? range.filter((one) => !this.shown[side].includes(one)) : [n],
            data = new Float32Array(rows.length * columns.length);
        rows.forEach((a, i) =>
            columns.forEach((b, j) => {
                let sum = 0;
                for (const row of members(a, 0)) for (const column of members(b, 1)) sum += at(row, column);
                data[i * columns.length + j] = sum;
            }),
        );
        const names = this.shown.map((list, side) =>
            list.map((n) => (n < 0 ? texts.why.others : this.nameOf(writers[n], side).replace(/ \(.*/, ""))),
        );
        this.matrix.set({
            data,
            rows: rows.length,
            columns: columns.length,
            rowLabels: names[0],
            columnLabels: names[1],
            name: texts.why.matrix,
            map: "auto",
            signed: true,
            sums: false,
            log: false,
            low: null,
            high: null,
        });
        this.part("why-all").hidden = count <= mostWriters + 1;
        setText(
            this.part("why-all"),
            fill(this.all ? texts.why.fewer : texts.why.all, this.all ? mostWriters : count),
        );
        // The largest entry.
        const { query_writer, key_writer } = why!.split.entries[0];
        this.pick(Math.max(0, rows.indexOf(query_writer)), Math.max(0, columns.indexOf(key_writer)));
        this.matrix.show();
    }

    private pick(row: number, column: number): void {
        const { setHtml, number, escape } = this.kit,
            { content } = this.matrix;
        if (!content) return;
        this.matrix.pick(row, column);
        this.matrix.refresh();
        const parts = [row, column].map((n, side) => {
            const writer = this.shown[side][n];
            return writer < 0
                ? escape((side ? content.columnLabels : content.rowLabels)[n])
                : this.writerHtml(writer, side);
        });
        setHtml(
            this.part("why-cell"),
            `${parts.join(" × ")} <b>${number(content.data[row * content.columns + column])}</b>`,
        );
    }
}

// The panel for the heads that learned. It follows what is picked while it is open.
export class LearnedWhy {
    private readonly panel: WhyPanel;
    private asked = "";
    private result: Result | null = null;

    constructor(
        private readonly app: App,
        private readonly kit: PageKit,
        pickMost: (row: number) => void,
        words: (text: string) => string,
    ) {
        const place = (layer: number, head: number) => {
            const { labels, layers } = app.result!.learned!;
            return (labels.length / layers) * layer + head;
        };
        this.panel = new WhyPanel(kit, kit.byId("inspect-box").parentElement!, "why", {
            headText: (layer, head) => words(app.result?.learned?.labels[place(layer, head)] ?? ""),
            open: (layer, head, token) => {
                const to = place(layer, head),
                    arrive = ({ state, learned }: Result) => {
                        if (!learned || state.head !== to) return;
                        app.onResult.delete(arrive);
                        pickMost(token);
                    };
                app.onResult.add(arrive);
                app.change({ head: to });
            },
        });
        this.panel.section.classList.add("wrap", "panel");
        app.onShow.add(() => this.follow());
    }

    async open(): Promise<void> {
        await this.ask(true);
    }
    private follow(): void {
        const { app } = this;
        if (app.result && !app.result.learned) this.kit.hide("why", true);
        if (this.panel.isOpen && !app.stale && app.result?.learned) void app.during(this.ask(false));
    }
    private async ask(opens: boolean): Promise<void> {
        const { app } = this,
            { result, state } = app;
        if (!result?.learned || app.stale) return;
        const [row, column] = [state.i, state.j].map((n) => Math.min(n, result.tokens.length - 1)),
            asked = [result.headIndex, row, column].join();
        if (asked !== this.asked || result !== this.result) {
            this.asked = asked;
            this.result = result;
            try {
                const why = await app.engine.ask("why", { head: result.headIndex, row, column });
                if (asked !== this.asked || result !== this.result) return;
                const each = result.learned.labels.length / result.learned.layers;
                this.panel.show(why, {
                    layer: Math.floor(result.headIndex / each),
                    head: result.headIndex % each,
                    tokens: result.names,
                    at: [row, column],
                });
            } catch {
                this.asked = ""; // the engine was restarted: its result will come
                return;
            }
        }
        if (opens) this.panel.open();
    }
}

// The panel for a reader's own model. Its files are of another folder, so this names what it needs of them.
interface Looked {
    readonly run: { readonly heads: { readonly job: string }[][] } | null;
    readonly layer: number;
    readonly head: number;
    readonly token: number;
    readonly key: number;
    readonly picked: string; // changes with the four before
    readonly names: string[];
    look(layer: number, head: number): Promise<void>;
    pick(row: number, column: null): Promise<void>;
    during(work: Promise<void>): Promise<unknown>;
}
interface Runner {
    ask(kind: "why", ask: { layer: number; head: number; query: number; key: number }): Promise<Why>;
}
export class ModelWhy {
    private readonly panel: WhyPanel;

    constructor(
        kit: PageKit,
        private readonly model: Looked,
        private readonly runner: Runner,
    ) {
        this.panel = new WhyPanel(kit, kit.byId("model-cell").parentElement!, "model-why", {
            headText: (layer, head) => model.run!.heads[layer][head].job,
            open: (layer, head, token) => void model.look(layer, head).then(() => model.pick(token, null)),
        });
        kit.byId("model-cell").addEventListener("click", (event) => {
            if ("why" in (event.target as HTMLElement).dataset) void model.during(this.follow(true));
        });
    }

    // Follows the pick while the panel is open.
    async follow(opens: boolean): Promise<void> {
        const { model, panel } = this,
            { layer, head, token: query, key, run, picked, names } = model;
        if (!opens && !panel.isOpen) return;
        const why = await this.runner.ask("why", { layer, head, query, key });
        if (picked !== model.picked || run !== model.run) return;
        panel.show(why, { layer, head, tokens: names, at: [query, key] });
        if (opens) panel.open();
    }
}
