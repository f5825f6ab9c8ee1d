// Loads an engine's module from the site. The page that is one file has its engine within it: tools/standalone.mjs puts
// another function in this one's place.
import type { EngineModule } from "./engine_abi.ts";

export async function loadEngine(folder: string, threads: number): Promise<EngineModule> {
    const url = new URL(`../${folder}/fovea.mjs`, import.meta.url);
    const { default: create } = (await import(url.href)) as {
        default: (options: object) => Promise<EngineModule>;
    };
    return create({ pthreadPoolSize: threads - 1 });
}
