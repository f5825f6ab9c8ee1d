// The state, the engine's latest results, and who wants to hear of changes.
import { taskEnds } from "../page/dom.ts";
import { fill, indexed } from "../page/format.ts";
import { Engine } from "../engine/engine.ts";
import type { Computed, Note, OwnTensors, Stage, Steps } from "../engine/protocol.ts";
import {
    addressOf,
    firstState,
    inOrder,
    ofMask,
    presetState,
    tasks,
    toHash,
    type State,
} from "../page/state.ts";
import { largeModel, megabytes } from "./views.ts";

const thumbnailSize = 48;
// Slider drags and typing within this time are one step for the Back button.
const burstMs = 900;
// Browsers reject an address that changes too often, and each change costs milliseconds: within a burst it follows this much
// later than the last one.
const addressMs = 600;
// Keys of an address that are of the frame around the layer, not of the session: `bare` for a page within another
// (1, or what of the page to keep, by comma), `big` for a projector.
const frameKeys = /&(?:bare|big)=[^&]*/g;
// How long a change waits for its values, so that both are drawn in one frame.
const patienceMs = 40;
// If one of these changes, a place in the matrix loses its meaning.
const moving: (keyof State)[] = ["level", "task", "text", "len", "stage", "heads"];

// Numbers together with the state that they were computed from; nothing shown with them may belong to another state.
export interface Result extends Omit<Computed, "steps"> {
    keyTokens: string[];
    names: string[]; // `tokens`, each with its index where it occurs more than once
    keyNames: string[];
    stages: Stage[];
    state: State;
    own: OwnTensors | null;
}

// The arithmetic of one cell of a result.
export interface Derived {
    result: Result;
    row: number;
    column: number;
    steps: Steps;
}

export class App {
    readonly engine = new Engine();
    state: State = held()?.fovea ?? (location.hash.includes("=") ? presetState(2) : firstState());
    result: Result | null = null;
    derived: Derived | null = null;
    own: OwnTensors | null = null;
    ownName = "";
    // Called at most once a frame, after a change of the state or of the values. `show` reads nothing of the page's
    // layout, so that a frame has one layout; `shown` follows when all have written.
    readonly onShow = new Set<() => void>();
    readonly onShown = new Set<() => void>();
    readonly onResult = new Set<(result: Result) => void>();
    // For tensors that are too long for a whole matrix.
    showLong: (tensors: OwnTensors, name: string, rules?: Partial<State>) => void = () => {};
    onTrouble: (text: string, canRetry: boolean, lasting?: boolean) => void = () => {};
    // The state comes from the address (Back, or a link): fields that are being edited must follow.
    following = false;
    // True without an engine: the page shows its static content, and its controls are off.
    failed = false;
    // The values are of an earlier state, and newer ones are on their way.
    stale = true;
    refused = ""; // why there are no values of the newest state
    private loading = 0; // files and scripts on their way
    private running = false;
    private again = true;
    private waking: boolean | null = null; // once values are shown
    private frame = 0;
    private patience = 0;
    private lastBurst = { field: "", time: 0 };
    private addressTimer = 0;
    private left = new Map<number | string, State>(); // how each level and task was left
    private told: Note[] = []; // notes of the last session that was read, until the reader changes something
    private unread = !held()?.fovea; // the address that the page was opened with
    readonly framing = (location.hash.match(frameKeys) ?? []).join("");

    constructor() {
        addEventListener("popstate", () => this.follow());
        addEventListener("hashchange", () => this.follow());
        addEventListener("pagehide", () => {
            if (this.addressTimer) this.writeAddress("replaceState");
        });
    }

    // Tracks work other than the engine's, such as reading and loading: `settled` waits for it.
    during<T>(work: Promise<T>): Promise<T> {
        ++this.loading;
        return work.finally(() => --this.loading);
    }

    // Nothing is on its way: an engine runs, or none can; it has answered all that it was asked; and what it answered is
    // written. Tests wait for this, as may any program that takes a picture of the page.
    get settled(): boolean {
        const { engine } = this,
            ready = engine.info ? !this.unread && !this.again : this.failed;
        return ready && !(this.loading || engine.busy || this.running || this.frame || this.patience);
    }

    // The engine runs: it reads the address, if nothing is known of it yet, and computes.
    async begin(): Promise<void> {
        if (this.unread) await this.readAddress();
        else this.recompute();
    }

    private follow(): void {
        if (location.hash && !location.hash.startsWith("#v=")) return; // a section of the page
        clearTimeout(this.addressTimer);
        this.addressTimer = 0;
        this.lastBurst.field = "";
        const state = held()?.fovea;
        if (!state) void this.readAddress();
        else if (JSON.stringify(state) !== JSON.stringify(this.state)) this.apply(state, null);
    }

    private async readAddress(): Promise<void> {
        const hash = location.hash.includes("=") ? location.hash.replace(frameKeys, "") : "";
        try {
            const { state } = hash ? await this.read(hash, false) : { state: firstState() };
            this.unread = false;
            history.replaceState({ ...held(), fovea: state }, "");
            this.apply(state, null);
        } catch (error) {
            if (!this.engine.info) return; // it is read when an engine runs
            this.unread = false;
            this.apply(presetState(2), null);
            this.told = [{ key: "", text: (error as Error).message }];
        }
    }

    // Turns a session's text into a state; notes report what was not used.
    private async read(text: string, isFile: boolean): Promise<{ state: State; own: OwnTensors | null }> {
        const { session, notes, own } = await this.engine.ask("readSession", { text, isFile });
        this.told = notes;
        return { state: { ...presetState(2), ...session.state, ...session.desktop }, own };
    }

    // Shows a session file.
    async open(text: string, name: string): Promise<void> {
        const { state, own } = await this.read(text, true);
        this.apply(state, own);
        this.ownName = name;
        this.writeAddress("pushState");
    }

    private writeAddress(how: "pushState" | "replaceState", state = this.state): void {
        clearTimeout(this.addressTimer);
        this.addressTimer = 0;
        // Whole, because a frame within a notebook (srcdoc) resolves a part of an address by the notebook's own.
        const address = location.href.split("#")[0] + addressOf(state) + this.framing;
        try {
            history[how]({ fovea: state, ...(this.own ? { own: this.ownName } : {}) }, "", address);
        } catch {
            /* too many changes for this browser: the next one is written */
        }
    }

    private apply(state: State, own: OwnTensors | null): void {
        this.state = state;
        this.own = own;
        this.following = true;
        this.recompute();
        this.showLater();
    }

    // `values`: the change concerns what is computed, not only what is shown. A burst of changes of the same field
    // (typing, dragging) is one step back.
    change(fields: Partial<State>, options: { numbers?: boolean; burst?: string } = {}): void {
        const before = this.state;
        this.state = { ...before, ...fields, ...(fields.mask === undefined ? {} : ofMask(fields.mask)) };
        this.told = [];
        if (fields.view === undefined && moving.some((field) => this.state[field] !== before[field]))
            this.state.view = "";
        if (JSON.stringify(this.state) !== JSON.stringify(before)) {
            const now = performance.now();
            const same =
                options.burst !== undefined &&
                options.burst === this.lastBurst.field &&
                now - this.lastBurst.time < burstMs;
            this.lastBurst = { field: options.burst ?? "", time: now };
            if (!same && this.addressTimer) this.writeAddress("replaceState", before); // where the last burst ended
            clearTimeout(this.addressTimer);
            if (!same) this.writeAddress("pushState");
            else this.addressTimer = window.setTimeout(() => this.writeAddress("replaceState"), addressMs);
        }
        if (options.numbers !== false) this.recompute();
        else void this.derive(this.state.i, this.state.j).then(() => this.showSoon());
        this.showLater();
    }

    // Shows a level as it was left, or, if it is in view, as it begins; the sentence is kept. A walk continues only on request.
    setLevel(level: number, step = 0, words = ""): void {
        const { state } = this,
            own = presetState(level),
            again = level === state.level && !state.task && !this.own;
        this.leave();
        const text = state.step || state.task ? (this.left.get(level) ?? own).text : state.text,
            kept = step || again ? null : this.left.get(level);
        this.change({ ...(kept ?? own), text: words || text, step });
    }
    // A model that learned a task in the place of the level's layer.
    setTask(task: string, step = 0): void {
        this.leave();
        const kept = step ? null : this.left.get(task);
        this.change({ ...(kept ?? presetState(this.state.level, task)), step });
    }
    get isTyping(): boolean {
        return this.lastBurst.field === "text";
    }
    private leave(): void {
        const { state } = this;
        if (!this.own && !state.step) this.left.set(state.task || state.level, state);
        this.own = null;
    }

    showTensors(tensors: OwnTensors, name: string): void {
        this.leave();
        this.own = tensors;
        this.ownName = name;
        this.change({
            task: "",
            stage: "weights",
            head: 0,
            i: 0,
            j: 0,
            mask: this.state.mask === "painted" ? this.state.under : this.state.mask,
            p: 0,
            cmp: -1,
        });
    }

    showSoon(): void {
        if (!this.waking) this.frame ||= requestAnimationFrame(() => this.show());
    }
    show(): void {
        cancelAnimationFrame(this.frame);
        clearTimeout(this.patience);
        this.frame = this.patience = 0;
        void this.during(this.tellAll(this.waking === null && !!this.result));
    }
    // The first values wake every part of the page. On a phone, one task for all would keep a touch waiting.
    private async tellAll(first: boolean): Promise<void> {
        if (first) this.waking = true;
        try {
            for (const tell of [...this.onShow, ...this.onShown]) {
                tell();
                if (first) await taskEnds();
            }
        } finally {
            if (first) {
                this.waking = false; // whatever a part threw
                this.showSoon(); // for requests made meanwhile
            }
        }
        this.following = false;
        // The state of the address is shown now, instead of the page's first state.
        if (this.failed || (this.result && !this.stale))
            document.documentElement.classList.remove("is-addressed");
    }
    // When the values have come, or have kept the reader waiting.
    private showLater(): void {
        this.patience ||= window.setTimeout(() => this.showSoon(), patienceMs);
    }

    // The arithmetic of a cell of the newest result, kept as `derived`.
    async derive(row: number, column: number): Promise<Derived | null> {
        const { result } = this;
        if (!result || this.stale) return null;
        row = Math.min(row, result.tokens.length - 1);
        column = Math.min(column, result.keyTokens.length - 1);
        const known = this.derived;
        if (known?.result === result && known.row === row && known.column === column) return known;
        try {
            const steps = await this.engine.ask("derive", { head: result.headIndex, row, column });
            if (result !== this.result) return null;
            this.derived = { result, row, column, steps };
            return this.derived;
        } catch {
            return null; // the engine was restarted, or holds a newer state: its result will come
        }
    }

    // Newest wins: while the engine works, later wishes only set a flag.
    recompute(): void {
        this.again = this.stale = true;
        if (!this.running && this.engine.info) void this.run();
    }

    private async run(): Promise<void> {
        this.running = true;
        while (this.again) {
            this.again = false;
            await this.computeOnce();
        }
        this.running = false;
    }

    // Joins whole sentences; the note about a cut text is next to the matrix.
    private notesOf({ notes }: Result): string {
        const texts = [...this.told, ...notes.filter(({ key }) => key !== "text")].map(({ text }) => text);
        return [...new Set(texts)].map(sentence).join(" ");
    }

    private async computeOnce(): Promise<void> {
        const state = this.state,
            own = this.own;
        try {
            if (!own && !state.text.trim()) throw new Error(texts.app.noWord);
            const model = own ? undefined : tasks.find(({ task }) => task === state.task);
            if (model && model.bytes >= largeModel && this.result?.state.task !== model.task)
                this.onTrouble(fill(texts.app.loading, model.name, megabytes(model.bytes)), false);
            const { steps, ...computed } = await this.engine.ask("compute", {
                address: toHash(state),
                head: state.head,
                row: state.i,
                column: state.j,
                thumbnails: thumbnailSize,
                own,
            });
            const { rows, keys } = computed,
                named = !own || computed.tokens.length > 0,
                tokens = named ? shownTokens(computed.tokens) : labels(rows, "q"),
                names = indexed(tokens),
                keyTokens = named ? tokens : labels(keys, "k");
            const result = {
                ...computed,
                tokens,
                keyTokens,
                names,
                keyNames: named ? names : keyTokens,
                state,
                own,
                stages: inOrder([...computed.shared, ...computed.head]),
            };
            const row = Math.min(state.i, rows - 1),
                column = Math.min(state.j, keys - 1);
            this.result = result;
            this.derived = { result, row, column, steps };
            this.stale = this.again;
            this.refused = "";
            this.onTrouble(this.notesOf(result), false);
            for (const tell of this.onResult) tell(result);
        } catch (error) {
            this.stale = this.again;
            if (this.engine.info) this.refused = sentence((error as Error).message);
            this.onTrouble("", false);
        }
        this.showSoon();
    }
}

export const sentence = (text: string) => `${text[0].toUpperCase()}${text.slice(1)}.`;

// The data of a history entry in addition to its address, which may be too short for it: the state, and the name of
// the shown tensors.
export interface Held {
    fovea?: State;
    own?: string;
}
const held = () => history.state as Held | null;

// The token that a learned model's sequences begin with takes no more room than a letter.
export const shownTokens = (tokens: string[]) => tokens.map((text) => (text === "<start>" ? "⊢" : text));

export const labels = (count: number, prefix: string) =>
    Array.from({ length: count }, (_, i) => `${prefix}${i}`);
