// Calls of the module that runs published models, as the page and tests make them.
import { allocateText } from "../engine/memory.ts";
import type { ModelModule } from "./model_abi.ts";
import type { ModelHost, ReadableFile } from "./model_host.ts";
import type {
    ModelConfig,
    ModelHead,
    ModelMap,
    ModelNext,
    ModelRequests,
    ModelRow,
    ModelRun,
    ModelSteps,
    ModelToken,
} from "./model_protocol.ts";

interface Memory {
    address: number;
    count: number;
}

export class ModelSession {
    constructor(
        private readonly module: ModelModule,
        private readonly host: ModelHost,
    ) {}

    private read<T>(address: number): T {
        if (!address) throw new Error(this.module.UTF8ToString(this.module._webModelError()));
        return JSON.parse(this.module.UTF8ToString(address)) as T;
    }
    private with<T>(text: string, call: (address: number) => number): T {
        const address = allocateText(this.module, text);
        try {
            return this.read(call(address));
        } finally {
            this.module._free(address);
        }
    }
    private copy({ address, count }: Memory): Float32Array {
        const first = address / 4;
        return this.module.HEAPF32.slice(first, first + count);
    }

    open(files: { name: string; file: ReadableFile }[], held: number): ModelConfig {
        this.host.files.splice(0, Infinity, ...files.map(({ file }) => file));
        for (const { name, file } of files) {
            const address = allocateText(this.module, name);
            this.module._webModelFile(address, file.size);
            this.module._free(address);
        }
        return this.read(this.module._webModelOpen(held));
    }
    split(text: string): ModelToken[] {
        return this.with<{ tokens: ModelToken[] }>(text, (at) => this.module._webModelSplit(at)).tokens;
    }
    run(ask: ModelRequests["run"]["ask"]): ModelRun {
        const begin = performance.now();
        const found = this.with<Omit<ModelRun, "pictures"> & { pictures: Memory }>(
            JSON.stringify(ask),
            (text) => this.module._webModelRun(text),
        );
        return { ...found, pictures: this.copy(found.pictures), ms: performance.now() - begin };
    }
    next(token: number): ModelNext {
        return this.read(this.module._webModelNext(token));
    }
    head(layer: number, head: number): ModelHead {
        const found = this.read<{ entropy: number[] } & Record<"weights" | "masked" | "valued", Memory>>(
            this.module._webModelHead(layer, head),
        );
        return {
            entropy: found.entropy,
            weights: this.copy(found.weights),
            masked: this.copy(found.masked),
            valued: this.copy(found.valued),
        };
    }
    derive(layer: number, head: number, query: number, key: number): ModelSteps {
        return this.read(this.module._webModelDerive(layer, head, query, key));
    }
    row({ layer, stage, head, row }: ModelRequests["row"]["ask"]): ModelRow {
        const found = this.with<Omit<ModelRow, "row"> & { row: Memory }>(stage, (id) =>
            this.module._webModelRow(layer, id, head, row),
        );
        return { ...found, row: this.copy(found.row) };
    }
    map(ask: ModelRequests["map"]["ask"]): ModelMap {
        const found = this.with<Omit<ModelMap, "q" | "k"> & Record<"q" | "k", Memory>>(
            JSON.stringify(ask),
            (text) => this.module._webModelMap(text),
        );
        return { ...found, q: this.copy(found.q), k: this.copy(found.k) };
    }
    sum({ layer, stage, head, row, column }: ModelRequests["sum"]["ask"]): ModelRequests["sum"]["answer"] {
        return this.with(stage, (id) => this.module._webModelSum(layer, id, head, row, column));
    }
    // For tests: every number of a run on these tokens.
    numbers(tokens: number[]): { hidden: Float32Array; logits: Float32Array } {
        const found = this.with<Record<"hidden" | "logits", Memory>>(tokens.join(" "), (text) =>
            this.module._webModelNumbers(text),
        );
        return { hidden: this.copy(found.hidden), logits: this.copy(found.logits) };
    }
}
