// Loads an engine's module from the site. The page that is one file has its engine within it: tools/standalone.mjs puts
// another function in this one's place.
import type { EngineModule } from "./engine_abi.ts";

declare const LEARNED_FILES: Record<string, string>;

export async function loadEngine(folder: string, threads: number): Promise<EngineModule> {
    const url = new URL(`../${folder}/fovea.mjs`, import.meta.url);
    const { default: create } = (await import(url.href)) as {
        default: (options: object) => Promise<EngineModule>;
    };
    return create({ pthreadPoolSize: threads - 1 });
}

// The weights of a task's model, a file of lens/model/learned.
export async function loadLearned(task: string): Promise<Uint8Array> {
    const file = LEARNED_FILES[task];
    if (!file) throw new Error(`this site has no model of the task ${task}`);
    const answer = await fetch(new URL(`../${file}`, import.meta.url));
    if (!answer.ok) throw new Error(`the model of the task ${task} could not be loaded (${answer.status})`);
    return new Uint8Array(await answer.arrayBuffer());
}
