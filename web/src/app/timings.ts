// Timings of attention on this machine, loaded when they are asked for.
// It imports only types: code shared with the page would become a separate file that the first view waits for.
import type { App } from "./app.ts";
import type { TimingsKit } from "./kit.ts";

const sizes = [
    { name: "6 tokens, 1 head of 2", heads: 1, tokens: 6, dim: 2, repeats: 10 },
    { name: "256 tokens, 12 heads of 64", heads: 12, tokens: 256, dim: 64, repeats: 5 },
    { name: "1,024 tokens, 12 heads of 64", heads: 12, tokens: 1024, dim: 64, repeats: 3 },
];
// Where a GPU is worth its way, if anywhere.
const largest = { name: "4,096 tokens, 12 heads of 64", heads: 12, tokens: 4096, dim: 64, repeats: 2 };
// Multiplications and additions of q·k and weights·v over the visible half.
const flops = (s: { heads: number; tokens: number; dim: number }) =>
    (4 * s.dim * s.heads * (s.tokens * (s.tokens + 1))) / 2;

export async function measure(app: App, { byId, duration, rate }: TimingsKit): Promise<void> {
    const most = app.engine.info?.threads ?? 1;
    const threads = [...new Set([1, 2, most])].filter((n) => n <= most);
    const rows: string[] = [];
    let gain = 1; // speedup of the largest size
    const gpuSizes = sizes.slice(1); // heads of 64
    byId("bench-body").innerHTML = `<p class="note" role="status">Looking for a GPU…</p>`;
    const hasGpu = (await onGpu(app, gpuSizes[0])) !== null;
    await app.engine.lookAtGpu();
    let crossing = "";
    for (const size of hasGpu ? [...sizes, largest] : sizes) {
        const cells: string[] = [],
            times: number[] = [];
        for (const count of threads) {
            byId("bench-body").innerHTML =
                `<p class="note" role="status">Measuring ${size.name}, ${count} thread${count > 1 ? "s" : ""}…</p>`;
            const seconds = (await app.engine.ask("bench", { ...size, causal: true, threads: count }))!;
            times.push(seconds);
            cells.push(`<td>${duration(seconds * 1000)}</td><td>${rate(flops(size) / seconds / 1e9)}</td>`);
        }
        gain = times[0] / times.at(-1)!;
        if (hasGpu) {
            const seconds = size.dim === 64 ? await onGpu(app, size) : null;
            cells.push(
                seconds === null
                    ? "<td>–</td><td>–</td>"
                    : `<td>${duration(seconds * 1000)}</td><td>${rate(flops(size) / seconds / 1e9)}</td>`,
            );
            if (seconds !== null && seconds < Math.min(...times))
                crossing ||= size.name.split(",").slice(0, -1).join(",");
            else crossing = "";
        }
        rows.push(`<tr><th scope="row">${size.name}</th>${cells.join("")}</tr>`);
    }
    const head = threads
        .map((n) => `<th scope="col">${n} thread${n > 1 ? "s" : ""}</th><th scope="col">GFLOP/s</th>`)
        .join("")
        .concat(hasGpu ? `<th scope="col">GPU</th><th scope="col">GFLOP/s</th>` : "");
    byId("bench-body").innerHTML =
        `<div class="scroll" tabindex="0" role="region" aria-label="Timings"><table class="plain"><thead><tr><th scope="col">Causal attention</th>${head}</tr></thead><tbody>${rows.join("")}</tbody></table></div><dl class="facts">${(await limits(app, gain, crossing)).map(([name, text]) => `<dt>${name}</dt><dd>${text}</dd>`).join("")}</dl>`;
}

const onGpu = (app: App, size: typeof largest) =>
    app.engine.ask("bench", { ...size, causal: true, threads: 0 });

// Lists the machine's capabilities, and the reasons that limit the speed of attention.
async function limits(app: App, gain: number, crossing: string): Promise<[string, string][]> {
    const info = app.engine.info!,
        cores = navigator.hardwareConcurrency || 1;
    const { bytes } = await app.engine.ask("facts", null);
    const simd = info.variant.startsWith("relaxed")
        ? "128 bits, with fused multiply-add (relaxed SIMD)"
        : "128 bits; multiply and add are two instructions";
    const threads =
        info.threads > 1
            ? `${info.threads} of ${cores} cores; ${gain.toFixed(1)} times as fast as one`
            : `1 of ${cores} cores${info.reason ? `: ${info.reason}` : ""}`;
    const limit =
        info.threads === 1 && cores > 1
            ? "one thread, and vectors of 128 bits whatever the processor has"
            : gain < 0.7 * info.threads
              ? "the threads: something else uses the processor, or its cores share more than they add"
              : "arithmetic: WebAssembly’s vectors are 128 bits wide, whatever the processor has";
    return [
        ["Threads", threads],
        ["Vectors", simd],
        ["What limits it", limit],
        ["Memory", `${Math.round(bytes / 1048576)} MiB held by the engine`],
        ["Engine", `${info.variant}, target ${info.target}`],
        [
            "GPU",
            !info.gpu.name
                ? `none: ${info.gpu.reason || "WebGPU was not asked for one"}`
                : crossing
                  ? `${info.gpu.name}, faster from ${crossing} on`
                  : `${info.gpu.name}, slower at all of these sizes`,
        ],
    ];
}
