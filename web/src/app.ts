// The state, the engine's latest results, and who wants to hear of changes.
import { Engine } from "./engine.ts";
import type { Computed, OwnTensors, Stage, Steps } from "./protocol.ts";
import {
    addressOf,
    engineText,
    engineTextOfTensors,
    fromHash,
    isWhole,
    presetState,
    tokensOf,
    type State,
} from "./state.ts";
import { orderStages } from "./views.ts";

const thumbnailSize = 48;
// Slider drags and typing within this time are one step for the Back button.
const burstMs = 900;
// Browsers refuse an address that changes too often: within a burst it follows this much later.
const addressMs = 300;
// How long a change waits for the numbers behind it, so that both are drawn in one frame.
const patienceMs = 40;
// What another of these changes makes a place in the matrix meaningless.
const moving: (keyof State)[] = ["level", "text", "length", "stage", "heads"];

// Numbers with what they were computed from: nothing beside them may speak of another state.
export interface Result extends Omit<Computed, "steps"> {
    tokens: string[];
    keyTokens: string[];
    typed: number;
    heads: number;
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
    state: State = stateOfHistory();
    result: Result | null = null;
    derived: Derived | null = null;
    own: OwnTensors | null = null;
    ownName = "";
    // Called at most once a frame, after a change of the state or of the numbers. `show` reads nothing of the page's
    // layout, so that a frame has one layout; `shown` follows when all have written.
    readonly onShow = new Set<() => void>();
    readonly onShown = new Set<() => void>();
    readonly onResult = new Set<(result: Result) => void>();
    onTrouble: (text: string, canRetry: boolean, lasting?: boolean) => void = () => {};
    // The state comes from the address (Back, or a link): fields that are being edited must follow.
    following = false;
    // There is no engine: the page shows what it has, and its controls are off.
    failed = false;
    // The numbers are of an earlier state, and newer ones are on their way.
    stale = true;
    private running = false;
    private again = false;
    private frame = 0;
    private patience = 0;
    private lastBurst = { field: "", time: 0 };
    private addressTimer = 0;
    private left = new Map<number, State>(); // how each level was left

    constructor() {
        addEventListener("popstate", () => this.follow());
        addEventListener("hashchange", () => this.follow());
        addEventListener("pagehide", () => {
            if (this.addressTimer) this.writeAddress("replaceState");
        });
    }

    private follow(): void {
        if (location.hash && !location.hash.startsWith("#v=")) return; // a section of the page
        clearTimeout(this.addressTimer);
        this.addressTimer = 0;
        const state = stateOfHistory();
        if (JSON.stringify(state) === JSON.stringify(this.state)) return;
        this.lastBurst.field = "";
        this.apply(state, null);
    }

    // Shows a session file.
    open(state: State, own: OwnTensors | null, name: string): void {
        this.apply(state, own);
        this.ownName = name;
        this.writeAddress("pushState");
    }

    // A state too long for an address stays with the history's entry.
    private writeAddress(how: "pushState" | "replaceState", state = this.state): void {
        clearTimeout(this.addressTimer);
        this.addressTimer = 0;
        try {
            const kept = {
                ...(isWhole(state) ? {} : { fovea: state }),
                ...(this.own ? { own: this.ownName } : {}),
            };
            history[how](kept, "", addressOf(state));
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

    // `numbers`: the change concerns what is computed, not only what is shown. A burst of changes of the same field
    // (typing, dragging) is one step back.
    change(fields: Partial<State>, options: { numbers?: boolean; burst?: string } = {}): void {
        const before = this.state;
        this.state = { ...before, ...fields };
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
            if (!same) this.writeAddress("pushState");
            else if (!this.addressTimer)
                this.addressTimer = window.setTimeout(() => this.writeAddress("replaceState"), addressMs);
        }
        if (options.numbers !== false) this.recompute();
        else void this.derive(this.state.row, this.state.column).then(() => this.showSoon());
        this.showLater();
    }

    // A level is found as it was left; the sentence goes along.
    setLevel(level: number): void {
        if (!this.own) this.left.set(this.state.level, this.state);
        this.own = null;
        this.change({ ...(this.left.get(level) ?? presetState(level)), text: this.state.text });
    }

    showTensors(tensors: OwnTensors, name: string): void {
        if (!this.own) this.left.set(this.state.level, this.state);
        this.own = tensors;
        this.ownName = name;
        this.change({
            stage: "weights",
            head: 0,
            row: 0,
            column: 0,
            heads: tensors.shape.heads,
            kv: tensors.shape.kv,
            mask: "none",
            p: 0,
            compare: -1,
        });
    }

    showSoon(): void {
        this.frame ||= requestAnimationFrame(() => this.show());
    }
    show(): void {
        cancelAnimationFrame(this.frame);
        clearTimeout(this.patience);
        this.frame = this.patience = 0;
        for (const tell of this.onShow) tell();
        for (const tell of this.onShown) tell();
        this.following = false;
    }
    // When the numbers have come, or have kept the reader waiting.
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

    get headCount(): number {
        return this.own ? this.own.shape.heads : this.state.level >= 5 ? this.state.heads : 1;
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

    private async computeOnce(): Promise<void> {
        const state = this.state,
            own = this.own;
        const { tokens, typed } = own
            ? { tokens: labels(own.shape.rows, "q"), typed: own.shape.rows }
            : tokensOf(state);
        const keyTokens = own ? labels(own.shape.keys, "k") : tokens;
        try {
            if (tokens.length === 0)
                throw new Error("Type at least one word: the last result is still shown.");
            const heads = this.headCount,
                head = Math.min(state.head, heads - 1),
                row = Math.min(state.row, tokens.length - 1),
                column = Math.min(state.column, keyTokens.length - 1);
            const { steps, ...computed } = await this.engine.ask("compute", {
                text: own ? engineTextOfTensors(state, own.shape) : engineText(state, tokens),
                head,
                heads,
                row,
                column,
                thumbnails: thumbnailSize,
                own,
            });
            const result = {
                ...computed,
                tokens,
                keyTokens,
                typed,
                heads,
                state,
                own,
                stages: orderStages([...computed.shared, ...computed.head]),
            };
            this.result = result;
            this.derived = { result, row, column, steps };
            this.stale = this.again;
            this.onTrouble("", false);
            for (const tell of this.onResult) tell(result);
        } catch (error) {
            this.stale = this.again;
            if (this.engine.info) this.onTrouble((error as Error).message, false);
        }
        this.showSoon();
    }
}

// What an entry of the history holds beside its address: a state too long for one; the name of tensors that were shown.
export interface Held {
    fovea?: State;
    own?: string;
}
function stateOfHistory(): State {
    const held = (history.state as Held | null)?.fovea;
    return held && addressOf(held) === location.hash ? held : fromHash(location.hash);
}

export const labels = (count: number, prefix: string) =>
    Array.from({ length: count }, (_, i) => `${prefix}${i}`);
