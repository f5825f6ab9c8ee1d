// Measures one attention call from JavaScript: inputs copied into the engine's memory, the call, the output copied
// out.
//   node web/bench/call.mjs MODULE.mjs [batch heads tokens dim]     default: 2 2 6 2, the smallest problem of docs/lab/performance.md
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";

const [file, ...sizes] = process.argv.slice(2);
const [batch, heads, tokens, dim] = sizes.length ? sizes.map(Number) : [2, 2, 6, 2];
const { default: create } = await import(pathToFileURL(resolve(file)));
const engine = await create();
if (!engine._callPrepare(batch, heads, tokens, dim, 0)) throw new Error("the engine refuses these sizes");

const count = batch * heads * tokens * dim;
const random = () => Float32Array.from({ length: count }, () => Math.random() * 2 - 1);
const inputs = [random(), random(), random()];
const output = new Float32Array(count);
const [q, k, v, o] = [0, 1, 2, 3].map((binding) => engine._callBuffer(binding) / 4);

function attend() {
    const memory = engine.HEAPF32;
    memory.set(inputs[0], q);
    memory.set(inputs[1], k);
    memory.set(inputs[2], v);
    if (!engine._callRun()) throw new Error("the call was refused");
    output.set(memory.subarray(o, o + count));
    return output;
}

// Softmax attention in float64, to know that what is timed is right.
function largestError(output) {
    let worst = 0;
    for (let head = 0; head < batch * heads; ++head) {
        const at = (tensor, token, e) => tensor[(head * tokens + token) * dim + e];
        for (let i = 0; i < tokens; ++i) {
            const weights = Array.from({ length: tokens }, (_, j) => {
                let score = 0;
                for (let e = 0; e < dim; ++e) score += at(inputs[0], i, e) * at(inputs[1], j, e);
                return Math.exp(score / Math.sqrt(dim));
            });
            const sum = weights.reduce((a, b) => a + b, 0);
            for (let e = 0; e < dim; ++e) {
                const exact = weights.reduce((total, w, j) => total + (w / sum) * at(inputs[2], j, e), 0);
                worst = Math.max(worst, Math.abs(exact - at(output, i, e)));
            }
        }
    }
    return worst;
}

const error = largestError(attend());
if (!(error < 1e-5)) throw new Error(`wrong by ${error}`);
const rounds = [];
for (let round = 0; round < 40; ++round) {
    const calls = 5000;
    const start = process.cpuUsage(); // microseconds of this process: others may use the machine too
    for (let n = 0; n < calls; ++n) attend();
    const { user, system } = process.cpuUsage(start);
    rounds.push((user + system) / calls);
}
rounds.sort((a, b) => a - b);
console.log(
    `${batch} x ${heads} heads, ${tokens} tokens, D ${dim}: median ${rounds[20].toFixed(2)} us a call, ` +
        `best ${rounds[0].toFixed(2)}; largest error ${error.toExponential(1)}`,
);
