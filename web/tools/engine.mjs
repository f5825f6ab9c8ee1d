// The page's engine in node, from build/web.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const engines = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "build", "web", "engine");

// The module of one engine, started with one thread. `variant`: simd, or another without threads.
export async function openEngine(variant = "simd") {
    const built = existsSync(engines) ? readdirSync(engines) : [];
    const folder = built.find((name) => name.replace(/-[0-9a-f]{8}$/, "") === variant);
    if (!folder) throw new Error(`build/web has no engine ${variant}: ./dev build web makes it`);
    const { default: create } = await import(pathToFileURL(join(engines, folder, "fovea.mjs")));
    const engine = await create({ wasmBinary: readFileSync(join(engines, folder, "fovea.wasm")) });
    engine._webStart(1);
    return engine;
}

function place(engine, value) {
    if (typeof value === "string") return engine.stringToNewUTF8(value);
    if (!(value instanceof Uint8Array)) return 0;
    const address = engine._malloc(value.length + 1);
    engine.HEAPU8.set(value, address);
    engine.HEAPU8[address + value.length] = 0;
    return address;
}

// Calls a function of the engine with texts (or their bytes) and values; what it answers, as text. Its error is an
// Error.
export function askText(engine, name, ...given) {
    const texts = given.map((value) => place(engine, value));
    try {
        const answer = engine[`_${name}`](...given.map((value, i) => texts[i] || value));
        if (!answer) throw new Error(engine.UTF8ToString(engine._webError()));
        return engine.UTF8ToString(answer);
    } finally {
        for (const address of texts) if (address) engine._free(address);
    }
}

// The weights of the task that sessions show from now on.
export function giveLearned(engine, bytes) {
    const address = engine._webAllocate(bytes.length);
    engine.HEAPU8.set(bytes, address);
    const taken = engine._webLearned(address, bytes.length);
    engine._webRelease(address);
    if (!taken) throw new Error(engine.UTF8ToString(engine._webError()));
}
