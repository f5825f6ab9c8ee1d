// The state, the engine's latest results, and who wants to hear of changes.
import { Engine } from "./engine.ts";
import type { Computed, OwnTensors, Stage } from "./protocol.ts";
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
// What another of these changes makes a place in the matrix meaningless.
const moving: (keyof State)[] = ["level", "text", "length", "stage", "heads"];

export interface Result extends Computed {
    tokens: string[];
    typed: number;
    stages: Stage[];
    state: State;
}

export class App {
    readonly engine = new Engine();
    state: State = stateOfHistory();
    result: Result | null = null;
    own: OwnTensors | null = null;
    ownName = "";
    // Told of every change of the state, and of every new result.
    readonly onState = new Set<() => void>();
    readonly onResult = new Set<(result: Result) => void>();
    onTrouble: (text: string, canRetry: boolean, lasting?: boolean) => void = () => {};
    // The state comes from the address (Back, or a link): fields that are being edited must follow.
    following = false;
    private running = false;
    private again = false;
    private lastBurst = { field: "", time: 0 };
    private addressTimer = 0;

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
            history[how](isWhole(state) ? null : { fovea: state }, "", addressOf(state));
        } catch {
            /* too many changes for this browser: the next one is written */
        }
    }

    private apply(state: State, own: OwnTensors | null): void {
        this.state = state;
        this.own = own;
        this.following = true;
        this.announceState();
        this.following = false;
        this.recompute();
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
        this.announceState();
        if (options.numbers !== false) this.recompute();
    }

    setLevel(level: number): void {
        const text = this.state.text;
        this.own = null;
        this.change({ ...presetState(level), text });
    }

    showTensors(tensors: OwnTensors | null, name: string): void {
        this.own = tensors;
        this.ownName = name;
        this.change({
            stage: "weights",
            head: 0,
            row: 0,
            column: 0,
            heads: tensors?.shape.heads ?? this.state.heads,
            kv: tensors?.shape.kv ?? this.state.kv,
            mask: "none",
            p: 0,
            compare: -1,
        });
    }

    private announceState(): void {
        for (const tell of this.onState) tell();
    }

    get headCount(): number {
        return this.own ? this.own.shape.heads : this.state.level >= 5 ? this.state.heads : 1;
    }

    // Newest wins: while the engine works, later wishes only set a flag.
    recompute(): void {
        this.again = true;
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
        if (tokens.length === 0) {
            this.onTrouble("Type at least one word: the last result is still shown.", false);
            return;
        }
        const heads = this.headCount,
            head = Math.min(state.head, heads - 1);
        const text = own ? engineTextOfTensors(state, own.shape) : engineText(state, tokens);
        try {
            const computed = await this.engine.ask("compute", {
                text,
                head,
                heads,
                thumbnails: thumbnailSize,
                own,
            });
            this.result = {
                ...computed,
                tokens,
                typed,
                state,
                stages: orderStages([...computed.shared, ...computed.head]),
            };
            this.onTrouble("", false);
            for (const tell of this.onResult) tell(this.result);
        } catch (error) {
            if (this.engine.info) this.onTrouble((error as Error).message, false);
        }
    }
}

function stateOfHistory(): State {
    const held = (history.state as { fovea?: State } | null)?.fovea;
    return held && addressOf(held) === location.hash ? held : fromHash(location.hash);
}

export const labels = (count: number, prefix: string) =>
    Array.from({ length: count }, (_, i) => `${prefix}${i}`);
