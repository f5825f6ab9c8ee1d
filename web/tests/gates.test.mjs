// The trainer that the page loads learns each task as the others do, without a browser: two seeds of each here,
// FOVEA_TRAIN_SEEDS=10 tries as many. What counts as learned is in lens/train/task.cpp and said by webTrainOpen.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "./support.mjs";

const seeds = Number(process.env.FOVEA_TRAIN_SEEDS ?? 2);
// Which heads of induction count, and how much of their score the best one must have.
const scores = { induction: { previous: 0.65, induction: 0.9, sink: 0.6 } };

async function trainer() {
    const folder = process.env.FOVEA_TRAIN_MODULE ?? newest(join(root, "build", "web", "train"));
    const { default: create } = await import(pathToFileURL(join(folder, "train.mjs")));
    const module = await create({ wasmBinary: readFileSync(join(folder, "train.wasm")) });
    return (name, ...values) => {
        const given = values.map((v) => (typeof v === "string" ? module.stringToNewUTF8(v) : v));
        const address = module[`_webTrain${name}`](...given);
        const answer = address && JSON.parse(module.UTF8ToString(address));
        values.forEach((v, n) => typeof v === "string" && module._free(given[n]));
        assert.ok(answer, module.UTF8ToString(module._webTrainError()));
        return answer;
    };
}
const newest = (folder) => {
    const all = readdirSync(folder);
    assert.equal(all.length, 1, `${folder} holds one trainer, that of the last build`);
    return join(folder, all[0]);
};

// The first step, of every twentieth one, at which the task is learned; one more than allowed where it never is.
function stepsToGoal(call, task, seed) {
    const run = call("Open", `${task},${seed}`);
    const best = (report, name) => {
        const { index } = run.scores.find((s) => s.name === name);
        return Math.max(...report.heads.map((head) => head[index]));
    };
    let least = Infinity;
    for (let step = 0; step <= run.within; step += 20) {
        const report = call("Evaluate", 0);
        const learned =
            report.accuracy >= run.accuracy &&
            Object.entries(scores[task] ?? {}).every(([name, wanted]) => best(report, name) >= wanted);
        if (learned) return { steps: step, within: run.within, least };
        for (let n = 0; n < 20; ++n) {
            const begin = performance.now();
            call("Step", 1);
            least = Math.min(least, performance.now() - begin);
        }
    }
    return { steps: run.within + 1, within: run.within, least };
}

for (const task of ["induction", "sort", "reverse", "recall"])
    test(`in WebAssembly ${task} is learned with every seed`, async (t) => {
        const call = await trainer();
        const found = Array.from({ length: seeds }, (_, seed) => stepsToGoal(call, task, seed));
        t.diagnostic(
            `${task}: ${found.map((f) => f.steps).join(", ")} steps; the quickest took ${Math.min(...found.map((f) => f.least)).toFixed(2)} ms`,
        );
        for (const [seed, { steps, within }] of found.entries())
            assert.ok(steps <= within, `${task}, seed ${seed}: not within ${within} steps`);
    });
