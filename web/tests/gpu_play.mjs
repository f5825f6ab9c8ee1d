// The code that gpu_player.mjs bundles for a page or for node: one plan on an open device, through the page's own
// script.
import { Gpu } from "../src/gpu/gpu.ts";

export const openGpu = (makeKernel, options) => Gpu.open(makeKernel, { fallback: true, ...options });

// `slices`: the words of each (web/engine/gpu_plan.hpp). `bindings`: number, wanted, bytes. Returns the contents of
// the wanted ones after the plan has run.
export async function playPlan(gpu, slices, bindings) {
    const buffers = new Map();
    try {
        for (const { number, bytes } of bindings) buffers.set(number, gpu.buffer(bytes.length, bytes));
        await gpu.run({ slices: slices.length, words: (slice) => slices[slice] }, buffers);
        const results = [];
        for (const { number, wanted, bytes } of bindings)
            if (wanted) results.push(new Uint8Array(await gpu.read(buffers.get(number), bytes.length)));
        return results;
    } finally {
        for (const buffer of buffers.values()) buffer.destroy();
    }
}
