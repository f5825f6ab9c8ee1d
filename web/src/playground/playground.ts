// The playground: a small model learns a task while a reader watches its heads. Loaded when it is asked for; what it needs
// of the page comes with the call, so that nothing of the page is loaded twice.
import type { App } from "../app/app.ts";
import type { colorAt, colorTable } from "../page/colors.ts";
import { byId, input, select, setHtml, setText } from "../page/dom.ts";
import { escape } from "../page/format.ts";
import { drawCurves, drawHead, headCell } from "./playground_pictures.ts";
import type { Probe, Report, TrainKind, TrainRequests, TrainTask } from "./train_protocol.ts";

declare const TRAIN_WORKER_FILE: string;

export interface Kit {
    app: App;
    colorAt: typeof colorAt;
    colorTable: typeof colorTable;
}

const tasks: Record<string, { name: string; about: string }> = {
    induction: {
        name: "Continue the word",
        about: "A word of letters stands between others and is then begun again. To go on with it, a model must find where it was before: one head looks at the letter before, and with its help another one at the letter that came next.",
    },
    sort: {
        name: "Sort numbers",
        about: "Twelve numbers, then the same in rising order. One head is enough: each number looks for the next larger one.",
    },
    reverse: {
        name: "Reverse the letters",
        about: "Twelve letters, then the same letters from the last to the first. Only places matter: take the positions away and nothing is learned.",
    },
    recall: {
        name: "Remember pairs",
        about: "Eight keys, each with a value, then the keys in another order: say each one’s value.",
    },
};
const speeds: Record<string, number> = { slow: 20, fast: 200, most: Infinity };
const newest = 2 ** 32;

// The run that an address describes: "induction+nostart,1,150,2,q c d".
interface Place {
    task: string;
    flags: string[];
    seed: number;
    step: number;
    off: number;
    tokens: string;
}
function readPlace(text: string): Place {
    const [what = "", seed = "", step = "", off = "", ...tokens] = text.split(","),
        [task, ...flags] = what.split("+"),
        whole = (value: string, most: number) => Math.min(most, Math.max(0, Math.floor(Number(value)) || 0));
    return {
        task: task in tasks ? task : "induction",
        flags, // the engine rejects unknown flags with a message
        seed: seed === "" ? 1 : whole(seed, newest - 1),
        step: whole(step, 5000),
        off: whole(off, 255),
        tokens: tokens.join(","),
    };
}

class Trainer {
    private readonly worker = new Worker(new URL(TRAIN_WORKER_FILE, import.meta.url), {
        type: "module",
        name: "fovea-train",
    });
    private nextId = 1;
    private readonly waiting = new Map<
        number,
        { resolve: (value: never) => void; reject: (e: Error) => void }
    >();

    constructor() {
        this.worker.addEventListener("message", ({ data }) => {
            const waiting = this.waiting.get(data.id);
            this.waiting.delete(data.id);
            if (data.error) waiting?.reject(new Error(data.error));
            else waiting?.resolve(data.answer as never);
        });
        this.worker.addEventListener("error", (event) => {
            event.preventDefault();
            for (const { reject } of this.waiting.values())
                reject(new Error(event.message || "the trainer could not be loaded"));
            this.waiting.clear();
        });
    }
    ask<K extends TrainKind>(kind: K, ask: TrainRequests[K]["ask"]): Promise<TrainRequests[K]["answer"]> {
        return new Promise((resolve, reject) => {
            this.worker.postMessage({ id: this.nextId, kind, ask });
            this.waiting.set(this.nextId++, { resolve, reject });
        });
    }
}

export class Playground {
    private readonly trainer = new Trainer();
    private place: Place;
    private task: TrainTask | null = null;
    private reports: Report[] = []; // by step; those of a run stay when it is wound back
    private probe: Probe | null = null;
    private judged: { step: number; off: number; with: number; without: number } | null = null;
    private running = false;
    private due = 0;
    private last = 0;
    private written = "";
    private busy: Promise<void> = Promise.resolve();
    private picked: { head: number; row: number; column: number } | null = null;

    constructor(private readonly kit: Kit) {
        const { app } = kit;
        this.place = readPlace(app.state.train);
        this.written = app.state.train;
        this.build();
        addEventListener("visibilitychange", () => {
            if (document.hidden) this.pause();
        });
        app.onShow.add(() => {
            if (app.state.train && app.state.train !== this.written && !this.running) this.follow();
            this.draw(); // colors may have changed
        });
        new ResizeObserver(() => this.draw()).observe(byId("play-body"));
        void this.open(this.place.step);
    }

    private follow(): void {
        const { step, ...before } = this.place,
            place = readPlace(this.kit.app.state.train),
            { step: to, ...after } = place;
        this.place = place;
        this.written = this.kit.app.state.train;
        const same = ["task", "flags", "seed"].every(
            (key) => String(before[key as "task"]) === String(after[key as "task"]),
        );
        if (same) place.tokens ||= before.tokens;
        this.fields();
        if (same) void this.seek(to);
        else void this.open(to);
    }

    private build(): void {
        byId("play-body").innerHTML =
            `<div class="play-tools"><label class="inline"><span>Task</span><select id="play-task">${Object.entries(
                tasks,
            )
                .map(([id, { name }]) => `<option value="${id}">${name}</option>`)
                .join(
                    "",
                )}</select></label><label class="inline"><span>Seed</span><input id="play-seed" type="number" min="0" max="4294967295" step="1"></label><button type="button" class="quiet" id="play-new">New seed</button></div>` +
            `<p class="prose" id="play-about"></p>` +
            `<div class="play-tools"><button type="button" class="primary" id="play-run">Train</button><button type="button" class="quiet" id="play-one">One step</button><button type="button" class="quiet" id="play-back">Rewind</button>` +
            `<div class="segmented" role="radiogroup" aria-label="Steps a second">${[
                ["slow", "20 a second"],
                ["fast", "× 10"],
                ["most", "as fast as it can"],
            ]
                .map(
                    ([id, name], i) =>
                        `<label><input type="radio" name="pace" value="${id}"${i ? "" : " checked"}><span>${name}</span></label>`,
                )
                .join("")}</div>` +
            `<label class="inline play-scrub"><span>Step</span><input id="play-step" type="range" min="0" max="0" step="1" value="0"></label></div>` +
            `<p class="play-now" id="play-now"></p><p class="unseen" id="play-said" role="status"></p>` +
            `<div class="two"><figure><figcaption id="play-loss-about"></figcaption><canvas id="play-loss" class="curve" role="img" aria-label="Loss and accuracy, step by step"></canvas></figure><figure><figcaption id="play-score-about"></figcaption><canvas id="play-scores" class="curve" role="img" aria-label="Scores of heads, step by step"></canvas></figure></div>` +
            `<label class="field"><span>Your own sequence: tokens separated by spaces</span><input id="play-tokens" autocomplete="off" autocapitalize="off" spellcheck="false"></label><p class="note" id="play-note" role="status"></p>` +
            `<div class="scroll" tabindex="0" role="region" aria-label="What the model says comes next"><table class="plain" id="play-next"></table></div>` +
            `<div class="play-heads" id="play-heads"></div><p class="zoom-pick" id="play-pick"></p>` +
            `<fieldset class="play-break" id="play-break"><legend>Take a part away and train again</legend><label class="check"><input type="checkbox" id="play-start"><span>a first token that is always the same</span></label><label class="check"><input type="checkbox" id="play-all"><span>loss on every token, not only on the copy</span></label><label class="check"><input type="checkbox" id="play-bias"><span>biases on queries and keys</span></label><label class="inline"><span>Positions</span><select id="play-positions"><option value="">as the task needs</option><option value="rotary">rotary</option><option value="learned">learned</option><option value="nopositions">none</option></select></label></fieldset>`;
        const again = (fields: Partial<Place>) => {
            Object.assign(this.place, { off: 0 }, fields);
            void this.open(0);
        };
        select("play-task").addEventListener("change", () =>
            again({ task: select("play-task").value, flags: [], tokens: "" }),
        );
        input("play-seed").addEventListener("change", () => {
            const seed = input("play-seed").valueAsNumber;
            if (Number.isInteger(seed) && seed >= 0 && seed < newest) again({ seed });
        });
        byId("play-new").addEventListener("click", () => again({ seed: (this.place.seed + 1) % newest }));
        byId("play-run").addEventListener("click", () => (this.running ? this.pause() : this.run()));
        byId("play-one").addEventListener("click", () => {
            this.pause();
            void this.seek(this.place.step + 1);
        });
        byId("play-back").addEventListener("click", () => {
            this.pause();
            void this.seek(0);
        });
        input("play-step").addEventListener("input", () => {
            this.pause();
            void this.seek(input("play-step").valueAsNumber);
        });
        input("play-tokens").addEventListener("input", () => {
            this.place.tokens = input("play-tokens").value.trim().replace(/\s+/g, " ");
            void this.look().then(() => this.write());
        });
        for (const id of ["play-start", "play-all", "play-bias", "play-positions"])
            byId(id).addEventListener("change", () => {
                const positions = select("play-positions").value;
                again({
                    flags: [
                        ...(input("play-start").checked ? [] : ["nostart"]),
                        ...(input("play-all").checked ? [] : ["copy"]),
                        ...(input("play-bias").checked ? [] : ["nobias"]),
                        ...(positions ? [positions] : []),
                    ],
                    tokens: "",
                });
            });
        byId("play-heads").addEventListener("click", (event) => {
            const button = (event.target as Element).closest<HTMLElement>("[data-off]");
            if (!button) return;
            this.place.off ^= 1 << Number(button.dataset.off);
            void this.look()
                .then(() => this.judge())
                .then(() => this.write());
        });
        byId("play-heads").addEventListener("pointermove", (event) => {
            const canvas = (event.target as Element).closest<HTMLCanvasElement>("canvas");
            const cell =
                canvas &&
                this.probe &&
                headCell(canvas, this.probe.tokens.length, event.offsetX, event.offsetY);
            this.picked = cell ? { head: Number(canvas.dataset.head), row: cell[0], column: cell[1] } : null;
            this.showPick();
        });
        this.fields();
    }

    private fields(): void {
        const { place } = this,
            has = (flag: string) => place.flags.includes(flag);
        select("play-task").value = place.task;
        input("play-seed").value = String(place.seed);
        setText(byId("play-about"), tasks[place.task].about);
        if (document.activeElement !== input("play-tokens")) input("play-tokens").value = place.tokens;
        input("play-start").checked = !has("nostart");
        input("play-all").checked = !has("copy");
        input("play-bias").checked = !has("nobias");
        select("play-positions").value = ["rotary", "learned", "nopositions"].find(has) ?? "";
        for (const id of ["play-start", "play-all"])
            (byId(id).parentElement as HTMLElement).hidden = place.task !== "induction";
    }

    // One thing after another; a failure is told and ends it.
    private then(work: () => Promise<void>): Promise<void> {
        this.busy = this.busy.then(work).catch((error: Error) => {
            this.running = false;
            this.showTools();
            setText(byId("play-note"), error.message);
        });
        return this.busy;
    }

    private open(step: number): Promise<void> {
        const wasRunning = this.running && step === 0;
        this.running = false;
        return this.then(async () => {
            const { place } = this;
            this.reports = [];
            this.probe = this.judged = this.picked = null;
            place.step = 0;
            this.task = await this.trainer.ask("open", {
                place: [[place.task, ...place.flags].join("+"), place.seed].join(),
            });
            place.tokens ||= this.task.example;
            this.fields();
            if (step) await this.advance("seek", step);
            await this.lookNow();
            await this.judgeNow();
            this.write();
            this.show();
            if (wasRunning) this.run();
        });
    }

    private take(reports: Report[]): void {
        for (const report of reports) this.reports[report.step] = report;
        if (reports.length) this.place.step = reports.at(-1)!.step + 1;
    }
    private async advance(kind: "step" | "seek", by: number): Promise<void> {
        const reports =
            kind === "seek"
                ? await this.trainer.ask("seek", { step: by })
                : await this.trainer.ask("step", { count: by });
        this.take(reports);
        if (kind === "seek") this.place.step = by;
    }

    private wanted = -1;
    private seek(step: number): Promise<void> {
        this.wanted = step;
        return this.then(async () => {
            if (this.wanted !== step) return; // a later wish has come
            await this.advance("seek", step);
            await this.lookNow();
            await this.judgeNow();
            this.write();
            this.show();
        });
    }
    private look = () =>
        this.then(async () => {
            await this.lookNow();
            this.show();
        });
    private judge = () =>
        this.then(async () => {
            await this.judgeNow();
            this.show();
        });

    private async lookNow(): Promise<void> {
        setText(byId("play-note"), "");
        try {
            this.probe = await this.trainer.ask("probe", { tokens: this.place.tokens, off: this.place.off });
        } catch (error) {
            setText(byId("play-note"), (error as Error).message); // the last sequence stays
        }
    }
    // On sequences that were kept back, with and without the heads that are off.
    private async judgeNow(): Promise<void> {
        const { step, off } = this.place;
        const whole = await this.trainer.ask("evaluate", { off: 0 });
        const part = off ? await this.trainer.ask("evaluate", { off }) : whole;
        this.judged = { step, off, with: whole.accuracy, without: part.accuracy };
        setText(
            byId("play-said"),
            `Step ${step}: ${percent(part.accuracy)} right on new sequences, loss ${part.loss.toFixed(2)}.${(this.probe?.labels ?? []).map(({ text, value, named }, head) => (named ? ` ${this.headName(head)}: ${text} ${value.toFixed(2)}.` : "")).join("")}`,
        );
    }

    private run(): void {
        this.running = true;
        this.last = performance.now();
        this.due = 1;
        this.showTools();
        requestAnimationFrame(() => void this.tick());
    }
    private pause(): void {
        if (!this.running) return;
        this.running = false;
        this.showTools();
        void this.judge().then(() => this.write());
    }
    private async tick(): Promise<void> {
        if (!this.running) return;
        const now = performance.now(),
            pace =
                speeds[
                    document.querySelector<HTMLInputElement>('input[name="pace"]:checked')?.value ?? "slow"
                ];
        this.due = pace === Infinity ? 8 : Math.min(20, this.due + (pace * (now - this.last)) / 1000);
        this.last = now;
        const count = Math.floor(this.due);
        if (count > 0) {
            this.due -= count;
            await this.then(async () => {
                if (!this.running) return;
                await this.advance("step", count);
                await this.lookNow();
                this.show();
            });
        }
        requestAnimationFrame(() => void this.tick());
    }

    private write(): void {
        const { task, flags, seed, step, off, tokens } = this.place,
            own = tokens === this.task?.example ? "" : tokens;
        this.written = `${[task, ...flags].join("+")},${seed},${step},${off},${own}`;
        this.kit.app.change({ train: this.written }, { numbers: false, burst: "train" });
    }

    private headName = (head: number) => {
        const { layers, heads } = this.task!;
        return layers * heads === 1
            ? "The head"
            : `Layer ${Math.floor(head / heads)}${heads > 1 ? `, head ${head % heads}` : ""}`;
    };

    private showTools(): void {
        setText(byId("play-run"), this.running ? "Pause" : "Train");
        const range = input("play-step");
        range.max = String(Math.max(this.reports.length, this.place.step, 1));
        range.value = String(this.place.step);
    }

    private show(): void {
        const { task, place, probe, judged } = this;
        if (!task) return;
        this.showTools();
        const report = this.reports[Math.max(0, place.step - 1)],
            guess = Math.log(task.vocabulary.length);
        const judge =
            judged?.step === place.step
                ? ` On new sequences <b>${percent(judged.with)}</b>${judged.off ? `; with the heads that are off <b>${percent(judged.without)}</b>` : ""}.`
                : "";
        setHtml(
            byId("play-now"),
            place.step && report
                ? `Step <b>${place.step}</b> of about ${task.within}: loss <b>${report.loss.toFixed(3)}</b> (chance ${guess.toFixed(2)}), accuracy <b>${percent(report.accuracy)}</b>.${judge}`
                : `Step <b>0</b>: ${task.weights.toLocaleString("en")} weights drawn from seed ${place.seed}; it can only guess.${judge}`,
        );
        setHtml(
            byId("play-loss-about"),
            `<span class="key a">loss</span> <span class="key b">accuracy</span> <span class="key dash">chance, ln ${task.vocabulary.length} = ${guess.toFixed(2)}</span>`,
        );
        setHtml(
            byId("play-score-about"),
            task.scores.map(({ label }, n) => `<span class="key ${"abcde"[n]}">${label}</span>`).join(" ") +
                " <span>of the head with the highest score; a map frames the cells whose weights name it</span>",
        );
        this.showHeads();
        if (probe)
            setHtml(
                byId("play-next"),
                `<tbody><tr><th scope="row">sequence</th>${probe.tokens.map((t) => `<td>${escape(t)}</td>`).join("")}</tr><tr><th scope="row">predicted next</th>${probe.said
                    .map((t, i) => {
                        const right = i + 1 < probe.tokens.length && probe.tokens[i + 1] === t;
                        return `<td class="${right ? "hit" : ""}" title="${percent(probe.sure[i])} sure">${escape(t)}</td>`;
                    })
                    .join("")}</tr></tbody>`,
            );
        this.draw();
        this.showPick();
    }

    private showHeads(): void {
        const { probe, place } = this,
            list = byId("play-heads");
        if (!probe) return;
        if (list.childElementCount !== probe.heads)
            list.innerHTML = Array.from(
                { length: probe.heads },
                (_, head) =>
                    `<figure class="play-head"><figcaption></figcaption><canvas data-head="${head}" role="img"></canvas><button type="button" class="quiet" data-off="${head}"></button></figure>`,
            ).join("");
        [...list.children].forEach((figure, head) => {
            const { text, named, value } = probe.labels[head] ?? {
                    text: "no clear role",
                    named: false,
                    value: 0,
                },
                off = ((place.off >> head) & 1) === 1,
                [caption, canvas, button] = figure.children;
            setHtml(
                caption,
                `${this.headName(head)}: <b>${named ? `${text} ${value.toFixed(2)}` : "no clear role"}</b>`,
            );
            canvas.setAttribute("aria-label", `Weights of ${this.headName(head)}, ${text}`);
            setText(button, off ? "Switch on" : "Switch off");
            button.setAttribute("aria-label", `${off ? "Switch on" : "Switch off"} ${this.headName(head)}`);
            figure.classList.toggle("off", off);
        });
    }

    private draw(): void {
        const { task, probe, place, kit } = this;
        if (!task) return;
        drawCurves(
            byId<HTMLCanvasElement>("play-loss"),
            this.reports,
            place.step,
            [
                { of: (r) => r.loss, top: Math.log(task.vocabulary.length) * 1.15, color: "a" },
                { of: (r) => r.accuracy, top: 1, color: "b" },
            ],
            Math.log(task.vocabulary.length),
        );
        drawCurves(
            byId<HTMLCanvasElement>("play-scores"),
            this.reports,
            place.step,
            task.scores.map(({ index }, n) => ({
                of: (r) => Math.max(...r.heads.map((scores) => scores[index] ?? 0)),
                top: 1,
                color: "abcde"[n],
            })),
        );
        if (!probe) return;
        const scale = { table: kit.colorTable("ink"), low: 0, high: 1, log: false };
        for (const canvas of byId("play-heads").querySelectorAll("canvas"))
            drawHead(canvas, probe, Number(canvas.dataset.head), (x) => kit.colorAt(scale, x));
    }

    // The number under the pointer, which changes while the model learns.
    private showPick(): void {
        const { picked, probe } = this;
        const n = probe?.tokens.length ?? 0;
        setHtml(
            byId("play-pick"),
            picked && probe && picked.row < n && picked.column <= picked.row
                ? `${this.headName(picked.head)}: <b>${escape(probe.tokens[picked.row])}</b> (place ${picked.row}) looks at <b>${escape(probe.tokens[picked.column])}</b> (place ${picked.column}): ${probe.weights[(picked.head * n + picked.row) * n + picked.column].toFixed(4)}`
                : "",
        );
    }
}

const percent = (share: number) => `${(100 * share).toFixed(1)}%`;

export const begin = (kit: Kit) => new Playground(kit);
