// A reader's own model on the text that is typed: every head of every layer, what comes next, and any weight down to the rows
// of the file.
import type { AppKit } from "../app/kit.ts";
import type { ModelWhy } from "../app/why.ts";
import { HeadGrid } from "./model_grid.ts";
import {
    bodyHtml,
    jobsHtml,
    lensHtml,
    nameOf,
    nextHtml,
    shownAs,
    tokensHtml,
    type Shown,
} from "./model_html.ts";
import type { ModelConfig, ModelHead, ModelNext, ModelRequests, ModelRun } from "./model_protocol.ts";
import { TokenRow } from "./model_row.ts";
import { stopped, type Runner } from "./model_runner.ts";

const typingMs = 120; // a run begins when this long nothing was typed

export class OpenModel {
    run: ModelRun | null = null;
    layer = 0;
    head = 0;
    token = 0; // row of the shown predictions
    readonly scales = new Map<string, number>(); // by "layer,head"
    key = 0;
    private next: ModelNext | null = null;
    private shown: ModelHead | null = null;
    private as: Shown = "weights";
    private text: string;
    private readonly patches = new Map<string, string>();
    private readonly hidden = new Set<number>();
    private typing = 0;
    private letGo = () => {}; // stops waiting for a pause in typing
    private computing = false;
    private wanted = false; // a run of the newest state
    private moves = false; // to its end
    private fetching = false; // values of a head are on their way
    private fresh = true; // nothing was looked at yet
    private readonly matrix: InstanceType<AppKit["MatrixView"]>;
    private readonly grid: HeadGrid;
    private readonly row: TokenRow;
    private why: ModelWhy | null = null;

    constructor(
        private readonly kit: AppKit,
        private readonly runner: Runner,
        files: File[],
        readonly config: ModelConfig,
        private readonly say: (text: string, canStop?: boolean) => void,
    ) {
        const { byId } = kit;
        byId("model-body").innerHTML = bodyHtml(kit, files, config);
        byId("model-body").hidden = false;
        const { text, task } = kit.app.state,
            isFit = !config.whyNoText || /^[\d\s,]+$/.test(text),
            // A report of `fovea heads` links to a text of the model.
            isLinked = !task && isFit && /[#&]text=/.test(location.hash);
        this.text = kit.input("model-text").value = isLinked ? text : config.text;
        this.matrix = new kit.MatrixView(
            byId("model-matrix"),
            { pick: (row, column) => void this.pick(row, column) },
            "Weights of the head",
        );
        this.grid = new HeadGrid(
            kit,
            byId<HTMLCanvasElement>("model-grid"),
            this,
            (layer, head) => void this.look(layer, head),
        );
        this.row = new TokenRow(kit, runner, this, say);
        this.listen();
        void this.during(kit.why().then(({ ModelWhy }) => (this.why = new ModelWhy(kit, this, runner))));
    }

    // Stops waiting for a pause in typing: nothing follows.
    close(): void {
        clearTimeout(this.typing);
        this.letGo();
    }
    get picked(): string {
        return `${this.place},${this.token},${this.key}`;
    }
    private get place(): string {
        return `${this.layer},${this.head}`;
    }
    private forget(): void {
        this.scales.clear();
        this.patches.clear();
        this.hidden.clear();
    }

    private listen(): void {
        const { byId, input } = this.kit;
        input("model-text").addEventListener("input", () => {
            this.close();
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
            this.runner.stop();
            this.say("Stopped. Type or change something to run the model again.");
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
    }

    // One run after another, each of the newest state. `moves`: to the end of another text.
    async compute(moves: boolean): Promise<void> {
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

    during(work: Promise<unknown>): Promise<unknown> {
        return this.kit.app.during(work).catch((error: Error) => this.say(error.message));
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
            await this.runner.ready();
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
        await this.runner.ready();
        this.say("computing …", true);
        const run = await this.runner.ask("run", this.asked);
        this.run = run;
        if (moves) {
            this.token = run.tokens.length - 1;
            this.row.forgetUnit();
        }
        this.token = Math.min(this.token, run.tokens.length - 1);
        this.key = Math.min(moves ? 0 : this.key, run.tokens.length - 1);
        if (this.fresh) [this.layer, this.head] = mostNamed(run);
        this.fresh = false;
        this.next = await this.runner.ask("next", { token: this.token });
        setText(byId("model-text-note"), this.config.whyNoText ?? "");
        this.say(
            `${run.tokens.length} tokens, ${Math.round(run.ms).toLocaleString("en")} ms${run.firstLayer ? `, from layer ${run.firstLayer} on` : ""}`,
        );
        this.draw();
        await this.fetchHead();
    }

    async look(layer: number, head: number): Promise<void> {
        [this.layer, this.head] = [layer, head];
        this.grid.draw();
        if (this.run) await this.during(this.fetchHead());
    }

    // The values of the head that is looked at when they come, whatever was looked at when they were asked for.
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
        await this.row.fetch();
    }

    draw(): void {
        if (!this.run) return;
        this.showTokens();
        this.showNext();
        this.kit.setHtml(this.kit.byId("model-jobs"), jobsHtml(this.kit, this.run));
        this.showHead();
        this.grid.draw();
    }

    // A cell of the head's matrix; without a key, a token: the row's largest weight.
    async pick(row: number, column: number | null): Promise<void> {
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
        await this.during(
            (async () => {
                if (other) {
                    const next = await this.runner.ask("next", { token: row });
                    if (row !== this.token || run !== this.run) return;
                    this.next = next;
                    this.showNext();
                }
                await this.derive();
                if (other) await this.row.fetch();
            })(),
        );
    }

    private async derive(): Promise<void> {
        const { byId, setHtml, inspectorHtml, number, escape, whyButton } = this.kit,
            { layer, head, token: query, key, run, config, picked } = this;
        if (!run) return;
        const steps = await this.runner.ask("derive", { layer, head, query, key });
        if (picked !== this.picked || run !== this.run) return;
        const tokens = this.names;
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
                state: { scale: number(1 / steps.scale), temp: 1, cap: config.softcap, p: 0, alibi: false },
                label: "Weights",
                value: steps.weight,
            }) +
                `<div class="model-origins"><h3 class="label">In the files</h3><dl>${origins.join("")}</dl><p class="note">The rows that make the first number of each; the next ones follow.</p></div>` +
                whyButton,
        );
        await this.why?.follow(false);
    }

    get names(): string[] {
        return this.kit.indexed(this.run!.tokens.map(({ text }) => text));
    }

    private showTokens(): void {
        const { byId, setHtml } = this.kit;
        setHtml(byId("model-tokens"), tokensHtml(this.kit, this.run!, this.token, this.hidden));
        const hide = byId("model-hide");
        hide.setAttribute("aria-pressed", String(this.hidden.has(this.token)));
        byId("model-reset").hidden = !this.scales.size && !this.patches.size && !this.hidden.size;
    }

    private showNext(): void {
        const { byId, setHtml, setText } = this.kit,
            { next, said, lens } = this.next!,
            says = next && lens;
        setText(byId("model-next-title"), `What comes after “${this.names[this.token]}”`);
        setHtml(
            byId("model-next"),
            says
                ? nextHtml(this.kit, next, said)
                : "<p>These files have no output layer (lm_head), so there are no predictions.</p>",
        );
        setHtml(byId("model-lens"), says ? lensHtml(this.kit, lens, next[0].text) : "");
    }

    private showHead(): void {
        const { shown, run, layer, head } = this;
        if (!shown || !run || shown.weights.length !== run.tokens.length ** 2) return;
        const { byId, setText, short } = this.kit,
            tokens = this.names,
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
}

// Returns the first head to show: the one with the highest score that has a name.
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
