// Calls of the module that runs published models, as the page and tests make them.
import { allocateText } from "../engine/memory.ts";
import type { Why } from "../engine/protocol.ts";
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

    // Replaces each address with its count by a copy of the values.
    private read<T>(address: number): T {
        const { module } = this;
        if (!address) throw new Error(module.UTF8ToString(module._webModelError()));
        return JSON.parse(module.UTF8ToString(address), (_, value: Memory | null) =>
            value?.address === undefined
                ? value
                : module.HEAPF32.slice(value.address / 4, value.address / 4 + value.count),
        ) as T;
    }
    private with<T>(text: string, call: (address: number) => number): T {
        const address = allocateText(this.module, text);
        try {
            return this.read(call(address));
        } finally {
            this.module._free(address);
        }
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
        const found = this.with<ModelRun>(JSON.stringify(ask), (text) => this.module._webModelRun(text));
        return { ...found, ms: performance.now() - begin };
    }
    next(token: number): ModelNext {
        return this.read(this.module._webModelNext(token));
    }
    head(layer: number, head: number): ModelHead {
        return this.read(this.module._webModelHead(layer, head));
    }
    derive(layer: number, head: number, query: number, key: number): ModelSteps {
        return this.read(this.module._webModelDerive(layer, head, query, key));
    }
    why(layer: number, head: number, query: number, key: number): Why {
        return this.read(this.module._webModelWhy(layer, head, query, key));
    }
    row({ layer, stage, head, row }: ModelRequests["row"]["ask"]): ModelRow {
        return this.with(stage, (id) => this.module._webModelRow(layer, id, head, row));
    }
    map(ask: ModelRequests["map"]["ask"]): ModelMap {
        return this.with(JSON.stringify(ask), (text) => this.module._webModelMap(text));
    }
    sum({ layer, stage, head, row, column }: ModelRequests["sum"]["ask"]): ModelRequests["sum"]["answer"] {
        return this.with(stage, (id) => this.module._webModelSum(layer, id, head, row, column));
    }
}
