// A reader's own model: every head of every layer on the text that is typed, what comes next, and any weight down to the
// rows of the file. Loaded when a model is opened.
import type { ModelKit } from "./model_door.ts";
import type {
    HeadFigures,
    Likely,
    ModelFacts,
    ModelHead,
    ModelKind,
    ModelNext,
    ModelRequests,
    ModelRow,
    ModelRun,
    ModelSum,
} from "./model_protocol.ts";
import style from "./models.css";
import { adoptStyle } from "../page/style_text.ts";

declare const MODEL_WORKER_FILE: string;

const shownAs = {
    weights: "Weights",
    valued: "Weights × length of the value",
    masked: "Scores under the mask",
} as const;
type Shown = keyof typeof shownAs;
const figures: [keyof HeadFigures, string][] = [
    ["previous", "previous token"],
    ["induction", "induction"],
    ["first", "first token"],
    ["same", "same token"],
];
const namedHeads = 4; // of each figure
// Numbers of a token's row in a line of its picture.
const acrossMost = (length: number) =>
    matchMedia("(max-width: 759px)").matches ? 16 : length > 1024 ? 128 : 32;
// Larger files are read again, layer by layer, for every run.
const heldBytes = 1 << 30;
const typingMs = 120; // a run begins when this long nothing was typed
const percent = (share: number) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`;
const nameOf = (layer: number, head: number) => `L${layer}H${head}`;

class Runner {
    private worker: Worker | null = null;
    private nextId = 1;
    private readonly waiting = new Map<
        number,
        { resolve: (value: never) => void; reject: (e: Error) => void }
    >();
    onProgress: (share: number) => void = () => {};

    get lives(): boolean {
        return this.worker !== null;
    }
    ask<K extends ModelKind>(kind: K, ask: ModelRequests[K]["ask"]): Promise<ModelRequests[K]["answer"]> {
        this.worker ??= this.begin();
        return new Promise((resolve, reject) => {
            this.worker!.postMessage({ id: this.nextId, kind, ask });
            this.waiting.set(this.nextId++, { resolve, reject });
        });
    }
    private begin(): Worker {
        const worker = new Worker(new URL(MODEL_WORKER_FILE, import.meta.url), {
            type: "module",
            name: "fovea-model",
        });
        worker.addEventListener("message", ({ data }) => {
            if (data.progress !== undefined) return this.onProgress(data.progress);
            const waiting = this.waiting.get(data.id);
            this.waiting.delete(data.id);
            if (data.fatal) this.end(data.error);
            if (data.error) waiting?.reject(new Error(data.error));
            else waiting?.resolve(data.answer as never);
        });
        worker.addEventListener("error", (event) => {
            event.preventDefault();
            this.end(event.message || "the engine for models could not be loaded");
        });
        return worker;
    }
    // A run knows nothing of wishes while it computes: its thread is ended, and another one begun.
    end(reason: string): void {
        this.worker?.terminate();
        this.worker = null;
        for (const { reject } of this.waiting.values()) reject(new Error(reason));
        this.waiting.clear();
    }
}
const stopped = "stopped";

export class Models {
    private readonly runner = new Runner();
    private files: File[] = [];
    private facts: ModelFacts | null = null;
    private run: ModelRun | null = null;
    private next: ModelNext | null = null;
    private shown: ModelHead | null = null;
    private layer = 0;
    private head = 0;
    private token = 0; // whose next ones are shown: the row
    private key = 0;
    private as: Shown = "weights";
    private text = "";
    private scales = new Map<string, number>(); // by "layer,head"
    private patches = new Map<string, string>();
    private hidden = new Set<number>();
    private typing = 0;
    private letGo = () => {}; // of a wait for typing to pause
    private computing = false;
    private wanted = false; // a run of the newest state
    private moves = false; // to its end
    private fetching = false; // numbers of a head are on their way
    private started = false; // an engine has this model open
    private fresh = false; // nothing was looked at yet
    private matrix!: InstanceType<ModelKit["MatrixView"]>;
    private hovered: [number, number] | null = null;
    // The picked token's row of a stage, and one number of it; a negative one: the largest, when it is known.
    private stage = "ff_hidden";
    private unit = -1;
    private row: ModelRow | null = null;
    private rowMatrix!: InstanceType<ModelKit["MatrixView"]>;
    private across = 1; // numbers in a line of the picture

    constructor(private readonly kit: ModelKit) {
        adoptStyle(style);
        this.runner.onProgress = (share) => this.say(`${(100 * share).toFixed(0)}%`, true);
        kit.app.onShow.add(() => this.draw()); // colours may have changed
    }

    private get place(): string {
        return `${this.layer},${this.head}`;
    }
    private forget(): void {
        this.scales.clear();
        this.patches.clear();
        this.hidden.clear();
    }
    private say(text: string, canStop = false): void {
        this.kit.setText(this.kit.byId("model-note"), text);
        const stop = document.getElementById("model-stop");
        if (stop) stop.hidden = !canStop;
    }

    async open(files: File[]): Promise<void> {
        this.runner.end(stopped);
        this.files = files;
        this.started = false;
        this.facts = this.run = this.next = this.shown = null;
        this.forget();
        this.kit.byId("model-body").hidden = true;
        const size = files.reduce((sum, file) => sum + file.size, 0);
        this.say(`Reading ${this.kit.megabytes(size)} …`);
        try {
            const facts = await this.begin();
            this.facts = facts;
            this.build(facts);
            this.text = facts.text;
            this.kit.input("model-text").value = facts.text;
            this.layer = this.head = this.key = 0;
            this.fresh = true;
            await this.compute(true);
        } catch (error) {
            if ((error as Error).message !== stopped)
                this.say(`It could not be opened: ${(error as Error).message}`);
        }
    }

    private async begin(): Promise<ModelFacts> {
        const { info } = this.kit.app.engine,
            open = async (held: number) => {
                await this.runner.ask("start", {
                    variant: info?.variant ?? "simd",
                    threads: info?.threads ?? 1,
                });
                return this.runner.ask("open", { files: this.files, held });
            };
        // A phone's browser may end the engine that asks for so much: what is not held needs a layer's memory.
        const facts = await open(heldBytes).catch((error: Error) => {
            if (this.runner.lives || error.message === stopped) throw error;
            return open(0);
        });
        this.started = true;
        return facts;
    }

    private build(facts: ModelFacts): void {
        const { byId, escape, megabytes } = this.kit;
        const name =
                this.files.find(({ name: one }) => /\.gguf$/i.test(one))?.name ??
                (this.files[0].webkitRelativePath.split("/")[0] || "a model of files"),
            types = facts.types.map(({ name: type, bytes }) => `${type} ${megabytes(bytes)}`).join(", "),
            grouped = facts.kvHeads === facts.heads ? "" : ` over ${facts.kvHeads} of keys and values`,
            reads = facts.held
                ? "Its files are in this tab’s memory."
                : `It is too large for this tab’s memory: layers are read from the disk for every run, ${megabytes(facts.layerBytes)} at a time.`;
        byId("model-body").innerHTML =
            `<div class="model-facts"><h3><bdi>${escape(name)}</bdi></h3><p class="note">${escape(facts.family)}: ${facts.layers} layers, ${facts.heads} heads${grouped}, ${facts.width.toLocaleString("en")} wide, ${facts.vocabulary.toLocaleString("en")} tokens${facts.context ? `, reads ${facts.context.toLocaleString("en")}` : ""}. ${escape(types)}. ${reads}</p></div>` +
            `<label class="field"><span>${facts.whyNoText === null ? "Your text" : "Token numbers, with spaces between"}</span><input id="model-text" type="text" dir="auto" autocomplete="off" autocapitalize="off" spellcheck="false" maxlength="400000" aria-describedby="model-text-note"></label>` +
            `<p class="note" id="model-text-note">${facts.whyNoText === null ? "" : escape(facts.whyNoText)}</p>` +
            `<p class="buttons"><button type="button" id="model-stop" class="quiet" hidden>Stop</button></p>` +
            `<h3 class="label">Tokens: choose one to see what comes next behind it</h3><div class="model-tokens" id="model-tokens" role="group" aria-label="Tokens"></div>` +
            `<p class="buttons"><button type="button" id="model-hide" class="quiet" aria-pressed="false">Hide this token from all</button><button type="button" id="model-reset" class="quiet" hidden>Undo all changes</button></p>` +
            `<div class="two"><div><h3 class="label" id="model-next-title">What comes next</h3><div id="model-next"></div></div><div><h3 class="label">If the model ended behind a layer</h3><div class="scroll" id="model-lens" tabindex="0" role="region" aria-label="What the model would say behind each layer"></div></div></div>` +
            `<h3 class="label">Every head on this text: a row for each layer</h3><div class="model-grid-box scroll"><canvas id="model-grid" tabindex="0" role="img"></canvas></div><p class="note" id="model-hover" role="status"></p><div id="model-jobs"></div>` +
            `<div class="model-tools"><h3 id="model-head-name"></h3><div class="segmented" role="radiogroup" aria-label="What is shown">${Object.entries(
                shownAs,
            )
                .map(
                    ([id, label], i) =>
                        `<label><input type="radio" name="model-as" value="${id}"${i ? "" : " checked"}><span>${label}</span></label>`,
                )
                .join(
                    "",
                )}</div><button type="button" id="model-off" class="quiet" aria-pressed="false">Switch this head off</button><button type="button" id="model-map" class="quiet">Deep zoom of this head</button></div>` +
            `<div class="model-tools"><label class="field slide"><span>What it adds <output id="model-scale-out"></output></span><input id="model-scale" type="range" min="0" max="2" step="0.05" value="1"></label><label class="field model-patch"><span>In place of its own context, that of another text of as many tokens</span><input id="model-patch" type="text" dir="auto" autocomplete="off" autocapitalize="off" spellcheck="false"></label></div>` +
            `<div class="model-work"><div class="matrix" id="model-matrix"></div><aside id="model-cell" aria-label="The arithmetic of one weight"></aside></div>` +
            `<div class="model-tools"><h3 id="model-row-name"></h3><label class="field"><span>One number of the layer, down to the files</span><select id="model-stage"></select></label></div><p class="note" id="model-row-about"></p>` +
            `<div class="matrix" id="model-row"></div><section id="model-sum" aria-label="The arithmetic of one number"></section>`;
        byId("model-body").hidden = false;
        this.as = "weights";
        this.matrix = new this.kit.MatrixView(
            byId("model-matrix"),
            { pick: (row, column) => void this.pick(row, column) },
            "Weights of the head",
        );
        this.rowMatrix = new this.kit.MatrixView(
            byId("model-row"),
            { pick: (row, column) => this.pickUnit(row * this.across + column) },
            "Numbers of the token",
        );
        this.unit = -1;
        this.listen();
    }

    private listen(): void {
        const { byId, input } = this.kit;
        input("model-text").addEventListener("input", () => {
            clearTimeout(this.typing);
            this.letGo();
            void this.kit.app.during(
                new Promise<void>((resolve) => {
                    this.letGo = resolve;
                    this.typing = setTimeout(() => {
                        this.text = input("model-text").value;
                        this.hidden.clear(); // these were places in another text
                        this.patches.clear();
                        void this.compute(true).finally(resolve);
                    }, typingMs);
                }),
            );
        });
        byId("model-stop").addEventListener("click", () => {
            this.started = false;
            this.runner.end(stopped);
            this.say("Stopped. Type on, or change anything, to run it again.");
        });
        byId("model-tokens").addEventListener("click", (event) => {
            const button = (event.target as Element).closest<HTMLElement>("[data-token]");
            if (button) void this.pick(Number(button.dataset.token), null);
        });
        byId("model-hide").addEventListener("click", () => {
            if (!this.hidden.delete(this.token)) this.hidden.add(this.token);
            void this.compute(false);
        });
        byId("model-reset").addEventListener("click", () => {
            this.forget();
            void this.compute(false);
        });
        const scaled = (by: number) => {
            if (by === 1) this.scales.delete(this.place);
            else this.scales.set(this.place, by);
            void this.compute(false);
        };
        byId("model-off").addEventListener("click", () => scaled(this.scales.get(this.place) === 0 ? 1 : 0));
        byId("model-map").addEventListener("click", () => void this.kit.app.during(this.map()));
        input("model-scale").addEventListener("change", () => scaled(input("model-scale").valueAsNumber));
        input("model-patch").addEventListener("change", () => {
            const text = input("model-patch").value;
            if (text.trim()) this.patches.set(this.place, text);
            else this.patches.delete(this.place);
            void this.compute(false);
        });
        for (const button of document.querySelectorAll<HTMLInputElement>("[name=model-as]"))
            button.addEventListener("change", () => {
                this.as = button.value as Shown;
                this.showHead();
            });
        byId("model-jobs").addEventListener("click", (event) => {
            const button = (event.target as Element).closest<HTMLElement>("[data-head]");
            if (button) void this.look(Number(button.dataset.layer), Number(button.dataset.head));
        });
        const grid = byId<HTMLCanvasElement>("model-grid");
        grid.addEventListener("pointermove", (event) => {
            this.hovered = this.headAt(event.offsetX, event.offsetY);
            this.showHover();
        });
        grid.addEventListener("pointerleave", () => {
            this.hovered = null;
            this.showHover();
        });
        grid.addEventListener("click", (event) => {
            const at = this.headAt(event.offsetX, event.offsetY);
            if (at) void this.look(...at);
        });
        grid.addEventListener("keydown", (event) => {
            const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[
                event.key
            ];
            if (!step || !this.facts) return;
            event.preventDefault();
            const layer = Math.min(this.facts.layers - 1, Math.max(0, this.layer + step[0])),
                head = Math.min(this.facts.heads - 1, Math.max(0, this.head + step[1]));
            void this.look(layer, head);
        });
        input("model-stage").addEventListener("change", () => this.goTo(input("model-stage").value, -1));
        byId("model-sum").addEventListener("click", (event) => {
            const { stage, unit } =
                (event.target as Element).closest<HTMLElement>("[data-unit]")?.dataset ?? {};
            if (stage) this.goTo(stage, Number(unit));
        });
        new ResizeObserver(() => this.drawGrid()).observe(grid.parentElement!);
    }

    // One run after another, each of the newest state. `moves`: to the end of another text.
    private async compute(moves: boolean): Promise<void> {
        this.wanted = true;
        this.moves ||= moves;
        if (this.computing) return;
        this.computing = true;
        while (this.wanted) {
            const move = this.moves;
            this.wanted = this.moves = false;
            try {
                await this.kit.app.during(this.computeOnce(move));
            } catch (error) {
                if ((error as Error).message === stopped) continue;
                this.say("");
                this.kit.setText(this.kit.byId("model-text-note"), (error as Error).message);
            }
        }
        this.computing = false;
    }

    private get asked(): ModelRequests["run"]["ask"] {
        const headsOf = <T>(changes: Map<string, T>) =>
            [...changes].map(([place, to]): [number, number, T] => {
                const [layer, head] = place.split(",").map(Number);
                return [layer, head, to];
            });
        return {
            text: this.text,
            scales: headsOf(this.scales),
            patches: headsOf(this.patches),
            hidden: [...this.hidden],
        };
    }

    // The head on all of the text, however long: what the matrix has no room for is a map.
    private async map(): Promise<void> {
        const { layer, head } = this;
        try {
            if (!this.started) await this.begin();
            this.say("computing …", true);
            const { q, k, dim, tokens, scale, softcap, causal, windowed, left, right } =
                await this.runner.ask("map", { ...this.asked, layer, head });
            this.say("");
            const shape = { heads: 1, kv: 1, rows: tokens.length, keys: tokens.length, dim, dimV: 0 };
            this.kit.app.showLong({ shape, q, k, v: null, tokens }, `Your model, ${nameOf(layer, head)}`, {
                ...{ scale, cap: softcap, causal, windowed, win: left, right },
                mask: windowed ? "window" : causal ? "causal" : "none",
            });
        } catch (error) {
            if ((error as Error).message !== stopped) this.say((error as Error).message);
        }
    }

    private async computeOnce(moves: boolean): Promise<void> {
        const { byId, setText } = this.kit;
        if (!this.started) await this.begin();
        this.say("computing …", true);
        const run = await this.runner.ask("run", this.asked);
        this.run = run;
        if (moves) [this.token, this.unit] = [run.tokens.length - 1, -1];
        this.token = Math.min(this.token, run.tokens.length - 1);
        this.key = Math.min(moves ? 0 : this.key, run.tokens.length - 1);
        if (this.fresh) [this.layer, this.head] = mostNamed(run);
        this.fresh = false;
        this.next = await this.runner.ask("next", { token: this.token });
        setText(byId("model-text-note"), this.facts!.whyNoText ?? "");
        this.say(
            `${run.tokens.length} tokens, ${Math.round(run.ms).toLocaleString("en")} ms${run.firstLayer ? `, from layer ${run.firstLayer} on` : ""}`,
        );
        this.draw();
        await this.fetchHead();
    }

    private async look(layer: number, head: number): Promise<void> {
        [this.layer, this.head] = [layer, head];
        this.drawGrid();
        if (this.run)
            await this.kit.app.during(this.fetchHead()).catch((error: Error) => this.say(error.message));
    }

    // The numbers of the head that is looked at when they come, whatever was looked at when they were asked for.
    private async fetchHead(): Promise<void> {
        if (this.fetching) return;
        this.fetching = true;
        try {
            for (;;) {
                const { run, place, layer, head } = this,
                    shown = await this.runner.ask("head", { layer, head });
                if (run !== this.run || place !== this.place) continue;
                this.shown = shown;
                break;
            }
        } finally {
            this.fetching = false;
        }
        this.showHead();
        await this.derive();
        await this.fetchRow();
    }

    private goTo(stage: string, unit: number): void {
        [this.stage, this.unit] = [stage, unit];
        void this.kit.app.during(this.fetchRow()).catch((error: Error) => this.say(error.message));
    }
    private pickUnit(unit: number): void {
        if (this.row && unit < this.row.row.length) this.goTo(this.stage, unit);
    }

    // The token's row of the chosen stage and the arithmetic of one number of it, as fetchHead() asks for a head.
    private async fetchRow(): Promise<void> {
        const { run, layer, head, token, stage } = this;
        if (!run) return;
        const isNewest = () =>
            run === this.run &&
            layer === this.layer &&
            head === this.head &&
            token === this.token &&
            stage === this.stage;
        const row = await this.runner.ask("row", { layer, stage, head, row: token });
        if (!isNewest()) return;
        const { length } = row.row;
        if (!(this.unit >= 0 && this.unit < length))
            this.unit = row.row.reduce((most, x, i) => (Math.abs(x) > Math.abs(row.row[most]) ? i : most), 0);
        const { unit } = this,
            found = await this.runner.ask("sum", { layer, stage: row.stage, head, row: token, column: unit });
        if (!isNewest() || unit !== this.unit) return;
        this.row = row;
        this.stage = row.stage;
        this.showRow();
        this.showSum(found);
    }

    private showRow(): void {
        const { byId, setHtml, setText, escape, stageTexts } = this.kit,
            { stage, stages, row } = this.row!,
            text = stageTexts[stage as keyof typeof stageTexts];
        setHtml(
            byId("model-stage"),
            stages
                .map(
                    ({ id }) =>
                        `<option value="${id}"${id === stage ? " selected" : ""}>${escape(stageTexts[id as keyof typeof stageTexts].label)}</option>`,
                )
                .join(""),
        );
        this.kit.input("model-stage").value = stage;
        setText(
            byId("model-row-name"),
            `Layer ${this.layer}: ${text.label} of “${this.run!.tokens[this.token].text}”`,
        );
        const { formula, heads } = stages.find(({ id }) => id === stage)!;
        setText(
            byId("model-row-about"),
            `${formula}: ${text.about}; ${row.length.toLocaleString("en")} numbers${heads > 1 ? " of this head" : ""}, in lines.`,
        );
        this.across = Math.min(row.length, acrossMost(row.length));
        while (row.length % this.across) --this.across;
        const down = row.length / this.across;
        this.rowMatrix.set({
            data: row,
            rows: down,
            columns: this.across,
            rowLabels: Array.from({ length: down }, (_, i) => String(i * this.across)),
            columnLabels: Array.from({ length: this.across }, (_, i) => String(i)),
            name: text.label,
            map: "auto",
            signed: true,
            sums: false,
            log: false,
            low: null,
            high: null,
        });
        this.rowMatrix.pick(Math.floor(this.unit / this.across), this.unit % this.across);
        this.rowMatrix.show();
    }

    private showSum({ value, sum }: ModelRequests["sum"]["answer"]): void {
        const { byId, setHtml, escape, number, stageTexts } = this.kit,
            { stages, stage } = this.row!,
            isStage = (id: string) => stages.some((one) => one.id === id),
            labelOf = (id: string) => (isStage(id) ? stageTexts[id as keyof typeof stageTexts].label : id);
        // Where a factor comes from, the next click goes.
        const named = ({ a }: ModelSum, name: string) => {
            const [to, unit] = isStage(name)
                ? [name, this.unit]
                : isStage(a) && /^\d+$/.test(name)
                  ? [a, name]
                  : [];
            return to === undefined
                ? `<bdi>${escape(name)}</bdi>`
                : `<button type="button" class="quiet" data-stage="${to}" data-unit="${unit}">${escape(labelOf(name))}</button>`;
        };
        const line = (name: string, last: number | string) =>
            `<tr><th scope="row" colspan="3">${escape(name)}</th><td>${number(last)}</td></tr>`;
        const ending = (of: ModelSum) =>
            of.ending
                ? `<p class="model-ending"><span>${escape(of.ending)}</span> <b>${number(of.result)}</b></p>`
                : "";
        const tableOf = (of: ModelSum) =>
            `<div><p class="note">${escape(of.how)}</p><table class="plain model-sum"><thead><tr><td></td><th scope="col">${escape(labelOf(of.a))}</th><th scope="col">${escape(of.b)}</th><th scope="col">${of.b ? "product" : ""}</th></tr></thead><tbody>${of.terms
                .map(
                    (term) =>
                        `<tr><th scope="row">${named(of, term.name)}</th>${of.b ? `<td>${number(term.a)}</td><td>${number(term.b)}</td>` : "<td></td><td></td>"}<td>${number(term.product)}</td></tr>`,
                )
                .join(
                    "",
                )}${of.left ? line(`${of.left.toLocaleString("en")} smaller ones`, of.leftSum) : ""}${of.addedName ? line(of.addedName, of.added) : ""}${line("sum", of.sum)}</tbody></table>${of === sum ? "" : ending(of)}</div>`;
        setHtml(
            byId("model-sum"),
            `<div><p class="label">${escape(labelOf(stage))}, number <b>${this.unit}</b></p><p class="big">${number(value)}</p>${sum ? ending(sum) : `<p class="note">${stage === "inputs" ? "What enters the layer: the layer before gave it, and before the first layer the embedding." : "Given: it is no sum."}</p>`}</div>${sum ? [sum, ...sum.factors].map(tableOf).join("") : ""}`,
        );
    }

    draw(): void {
        if (!this.run) return;
        this.showTokens();
        this.showNext();
        this.showJobs();
        this.showHead();
        this.drawGrid();
    }

    // A cell of the head's matrix; without a key, a token: the row's largest weight.
    private async pick(row: number, column: number | null): Promise<void> {
        const { run, shown } = this;
        if (!run || !shown || shown.weights.length !== run.tokens.length ** 2) return;
        const count = run.tokens.length;
        this.key = column ?? 0;
        if (column === null)
            for (let j = 1; j < count; ++j)
                if (shown.weights[row * count + j] > shown.weights[row * count + this.key]) this.key = j;
        const other = row !== this.token;
        this.token = row;
        this.showTokens();
        this.matrix.pick(row, this.key);
        this.matrix.refresh();
        await this.kit.app
            .during(
                (async () => {
                    if (other) {
                        const next = await this.runner.ask("next", { token: row });
                        if (row !== this.token || run !== this.run) return;
                        this.next = next;
                        this.showNext();
                    }
                    await this.derive();
                    if (other) await this.fetchRow();
                })(),
            )
            .catch((error: Error) => this.say(error.message));
    }

    private async derive(): Promise<void> {
        const { byId, setHtml, inspectorHtml, number, escape } = this.kit,
            { layer, head, token: query, key, run, facts } = this;
        if (!run || !facts) return;
        const steps = await this.runner.ask("derive", { layer, head, query, key });
        if (query !== this.token || key !== this.key || run !== this.run || layer !== this.layer) return;
        if (head !== this.head) return;
        const tokens = run.tokens.map(({ text }) => text);
        const origins = ["q", "k", "v"].map(
            (of, n) => `<dt>${of}</dt><dd><bdi>${escape(steps.origins[n])}</bdi></dd>`,
        );
        setHtml(
            byId("model-cell"),
            inspectorHtml(steps, {
                tokensRow: tokens,
                tokensColumn: tokens,
                row: query,
                column: key,
                state: { scale: number(1 / steps.scale), temp: 1, cap: facts.softcap, p: 0, alibi: false },
                label: "Weights",
                value: steps.weight,
            }) +
                `<div class="model-origins"><h3 class="label">In the files</h3><dl>${origins.join("")}</dl><p class="note">The rows that make the first number of each; the next ones follow.</p></div>`,
        );
    }

    private showTokens(): void {
        const { byId, setHtml, escape } = this.kit;
        setHtml(
            byId("model-tokens"),
            this.run!.tokens.map(
                ({ text, id }, n) =>
                    `<button type="button" data-token="${n}" aria-pressed="${n === this.token}"${this.hidden.has(n) ? ' class="off"' : ""} title="token ${id}"><bdi>${escape(text)}</bdi></button>`,
            ).join(""),
        );
        const hide = byId("model-hide");
        hide.setAttribute("aria-pressed", String(this.hidden.has(this.token)));
        byId("model-reset").hidden = !this.scales.size && !this.patches.size && !this.hidden.size;
    }

    private showNext(): void {
        const { byId, setHtml, setText, escape } = this.kit,
            { next, said, lens } = this.next!;
        setText(byId("model-next-title"), `What comes next behind “${this.run!.tokens[this.token].text}”`);
        if (!next || !lens) {
            setHtml(byId("model-next"), "<p>The files hold no unembedding: the model says nothing.</p>");
            setHtml(byId("model-lens"), "");
            return;
        }
        const bar = ({ probability }: Likely) =>
            `<meter min="0" max="1" value="${probability}" aria-hidden="true"></meter>`;
        const rows = next.map(
            (one, n) =>
                `<tr><th scope="row"><bdi>${escape(one.text)}</bdi></th><td>${bar(one)}</td><td>${percent(one.probability)}</td>${said ? `<td>${percent(one.unchanged!)}</td><td><bdi>${escape(said[n]?.text ?? "")}</bdi></td>` : ""}</tr>`,
        );
        setHtml(
            byId("model-next"),
            `<table class="plain model-next"><thead><tr><th scope="col">token</th><th scope="col" colspan="2">${said ? "with the changes" : "probability"}</th>${said ? '<th scope="col">without</th><th scope="col">said without</th>' : ""}</tr></thead><tbody>${rows.join("")}</tbody></table>`,
        );
        const last = next[0].text;
        setHtml(
            byId("model-lens"),
            `<table class="plain model-lens"><thead><tr><th scope="col">behind</th><th scope="col" colspan="${lens[0].length}">likeliest tokens</th></tr></thead><tbody>${lens
                .map(
                    (row, n) =>
                        `<tr><th scope="row">${n ? `layer ${n - 1}` : "the embedding"}</th>${row.map((one) => `<td${one.text === last ? ' class="hit"' : ""}><bdi>${escape(one.text)}</bdi> ${percent(one.probability)}</td>`).join("")}</tr>`,
                )
                .reverse()
                .join("")}</tbody></table>`,
        );
    }

    private showJobs(): void {
        const { byId, setHtml, short } = this.kit,
            all = this.run!.heads.flatMap((heads, layer) => heads.map((of, head) => ({ layer, head, of })));
        const lines = figures.map(([key, label]) => {
            const best = all
                .filter(({ of }) => of[key] !== null)
                .sort((a, b) => (b.of[key] as number) - (a.of[key] as number))
                .slice(0, namedHeads);
            if (!best.length)
                return `<p><b>${label}</b> <span class="note">no such token in this text</span></p>`;
            return `<p><b>${label}</b> ${best.map(({ layer, head, of }) => `<button type="button" class="quiet" data-layer="${layer}" data-head="${head}">${nameOf(layer, head)} ${short(of[key] as number)}</button>`).join(" ")}</p>`;
        });
        setHtml(byId("model-jobs"), `<h3 class="label">Heads that look most at</h3>${lines.join("")}`);
    }

    private showHead(): void {
        const { shown, run, layer, head } = this;
        if (!shown || !run || shown.weights.length !== run.tokens.length ** 2) return;
        const { byId, setText, short } = this.kit,
            tokens = run.tokens.map(({ text }) => text),
            figure = run.heads[layer][head],
            scale = this.scales.get(this.place) ?? 1,
            isOff = scale === 0;
        setText(
            byId("model-head-name"),
            `Layer ${layer}, head ${head}${figure.job ? `: ${figure.job}` : ""}`,
        );
        const off = byId("model-off");
        off.setAttribute("aria-pressed", String(isOff));
        setText(off, isOff ? "Switch this head on" : "Switch this head off");
        this.kit.input("model-scale").value = String(scale);
        setText(byId("model-scale-out"), isOff ? "off" : `× ${short(scale)}`);
        const patch = this.kit.input("model-patch");
        if (document.activeElement !== patch) patch.value = this.patches.get(this.place) ?? "";
        this.matrix.set({
            data: shown[this.as],
            rows: tokens.length,
            columns: tokens.length,
            rowLabels: tokens,
            columnLabels: tokens,
            name: shownAs[this.as],
            map: "auto",
            signed: this.as === "masked",
            sums: false,
            log: false,
            low: null,
            high: null,
            masked: shown.masked,
        });
        this.matrix.pick(this.token, this.key);
        this.matrix.show();
    }

    // Pixels of a thumbnail and of the room around it.
    private sizes(): { cell: number; label: number } {
        const label = 30,
            width = this.kit.byId("model-grid").parentElement!.clientWidth - label;
        return { cell: Math.max(18, Math.min(64, Math.floor(width / this.facts!.heads))), label };
    }

    private headAt(x: number, y: number): [number, number] | null {
        const { cell, label } = this.sizes(),
            layer = Math.floor(y / cell),
            head = Math.floor((x - label) / cell);
        return layer >= 0 && layer < this.facts!.layers && head >= 0 && head < this.facts!.heads
            ? [layer, head]
            : null;
    }

    private drawGrid(): void {
        const { run, facts } = this;
        if (!run || !facts) return;
        const canvas = this.kit.byId<HTMLCanvasElement>("model-grid"),
            { cell, label } = this.sizes(),
            ratio = Math.min(2, devicePixelRatio || 1),
            width = label + facts.heads * cell,
            height = facts.layers * cell;
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
        canvas.style.width = `${width}px`;
        canvas.style.height = `${height}px`;
        const context = canvas.getContext("2d")!,
            style = getComputedStyle(canvas),
            { side, pictures } = run,
            table = this.kit.colorTable("ink"),
            small = document.createElement("canvas");
        small.width = small.height = side;
        const pixels = new ImageData(side, side);
        context.scale(ratio, ratio);
        context.imageSmoothingEnabled = side > cell;
        context.font = `450 11px ${style.fontFamily}`;
        context.textAlign = "right";
        context.textBaseline = "middle";
        for (let layer = 0; layer < facts.layers; ++layer) {
            context.fillStyle = style.getPropertyValue("--soft");
            context.fillText(`L${layer}`, label - 6, (layer + 0.5) * cell);
            for (let head = 0; head < facts.heads; ++head) {
                const first = (layer * facts.heads + head) * side * side;
                for (let i = 0; i < side * side; ++i) {
                    // A square root: most weights are small, and where they are is what tells heads apart.
                    const weight = pictures[first + i],
                        color = 3 * Math.round(255 * Math.sqrt(Math.min(1, Math.max(0, weight || 0))));
                    for (let c = 0; c < 3; ++c) pixels.data[4 * i + c] = table[color + c];
                    pixels.data[4 * i + 3] = 255;
                }
                small.getContext("2d")!.putImageData(pixels, 0, 0);
                const [x, y] = [label + head * cell, layer * cell];
                context.globalAlpha = this.scales.get(`${layer},${head}`) === 0 ? 0.25 : 1;
                context.drawImage(small, x + 1, y + 1, cell - 3, cell - 3);
                context.globalAlpha = 1;
                if (layer !== this.layer || head !== this.head) continue;
                context.strokeStyle = style.getPropertyValue("--warm");
                context.lineWidth = 2;
                context.strokeRect(x, y, cell - 1, cell - 1);
            }
        }
        this.showHover();
    }

    private showHover(): void {
        const { byId, setText, short } = this.kit,
            [layer, head] = this.hovered ?? [this.layer, this.head],
            of = this.run?.heads[layer]?.[head];
        if (!of) return;
        const said = figures
            .filter(([key]) => of[key] !== null)
            .map(([key, label]) => `${label} ${short(of[key] as number)}`);
        const text = `${nameOf(layer, head)}${of.job ? `, ${of.job}` : ""}: ${said.join(", ")}; entropy ${short(of.entropy)} nats`;
        setText(byId("model-hover"), text);
        byId("model-grid").setAttribute(
            "aria-label",
            `Weights of ${this.facts!.layers} layers of ${this.facts!.heads} heads; arrows choose one. ${text}`,
        );
    }
}

// What a reader sees first: the head with the highest score that has a name.
function mostNamed(run: ModelRun): [number, number] {
    let best = 0,
        at: [number, number] = [0, 0];
    run.heads.forEach((heads, layer) =>
        heads.forEach((of, head) => {
            const score = Math.max(of.induction ?? 0, of.previous ?? 0);
            if (score > best) {
                best = score;
                at = [layer, head];
            }
        }),
    );
    return at;
}

export const begin = (kit: ModelKit) => new Models(kit);
