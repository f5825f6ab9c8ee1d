// Checks that this machine's GPU gives the CPU engine's results: a browser may assume that all values are finite,
// drivers have bugs, and neither is reported. Uses small problems with fragile features: fully masked rows, a NaN in
// a masked key, softcap, key splits, map tiles.
import type { Gpu } from "./gpu.ts";
import {
    bindings,
    flagCausal,
    outputLse,
    outputO,
    tileBindings,
    type Calls,
    type Numbers,
    type Operation,
    type Tensors,
} from "./gpu_calls.ts";

// For values of about 1, computed in another order. Real faults are larger by far.
const tolerance = 2e-5;
const dim = 64;

// The same values everywhere: a linear congruential generator, about -1.7 to 1.7.
function numbersOf(count: number, seed: number): Float32Array {
    let state = seed >>> 0;
    return Float32Array.from({ length: count }, () => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return (state / 2 ** 32 - 0.5) * 3.4;
    });
}

interface Problem {
    what: string;
    operation: Operation;
    numbers: Numbers;
    tensors: Tensors;
}

function problems(calls: Calls): Problem[] {
    const square = (tokens: number, keys = tokens) => ({
        batch: 1,
        heads_q: 2,
        heads_kv: 1,
        dim_qk: dim,
        dim_v: dim,
        len_q: tokens,
        len_kv: keys,
        outputs: outputO | outputLse,
    });
    const inputs = (tokens: number, keys = tokens): Tensors =>
        new Map<number, Float32Array>([
            [bindings.q, numbersOf(2 * tokens * dim, 1)],
            [bindings.k, numbersOf(keys * dim, 2)],
            [bindings.v, numbersOf(keys * dim, 3)],
        ]);
    const tokens = 40;
    // Query 5 is fully masked; key 7 is masked for all queries, and is NaN.
    const mask = new Uint8Array(tokens * tokens);
    for (let i = 0; i < tokens; ++i)
        for (let j = 0; j < tokens; ++j) mask[i * tokens + j] = i !== 5 && j !== 7 && (i + 3 * j) % 4 ? 1 : 0;
    const poisoned = inputs(tokens);
    const key = poisoned.get(bindings.k) as Float32Array,
        value = poisoned.get(bindings.v) as Float32Array;
    key.fill(NaN, 7 * dim, 8 * dim);
    value.fill(Infinity, 7 * dim, 8 * dim);
    value[7 * dim] = NaN;
    poisoned.set(bindings.mask, mask);
    const causal = { ...square(70), flags: flagCausal };
    const lse = calls.onCpu("attention", causal, inputs(70)).get(bindings.lse)!;
    return [
        {
            what: "a mask with an empty row, softcap and a NaN in a hidden key",
            operation: "attention",
            numbers: {
                ...square(tokens),
                softcap: 5,
                "mask.present": 1,
                "mask.type": 2, // FOVEA_U8
                "mask.batch": 1,
                "mask.heads": 1,
                "mask.rows": tokens,
                "mask.keys": tokens,
            },
            tensors: poisoned,
        },
        { what: "causal attention", operation: "attention", numbers: causal, tensors: inputs(70) },
        {
            what: "keys in splits",
            operation: "attention",
            numbers: square(4, 2048),
            tensors: inputs(4, 2048),
        },
        {
            what: "a map tile",
            operation: "tile",
            numbers: { ...causal, "tile.width": 16, "tile.height": 16, "tile.outputs": 3 },
            tensors: new Map<number, ArrayBufferView>([
                ...[...inputs(70)].filter(([number]) => number !== bindings.v),
                [bindings.lse, new Float32Array(lse)],
            ]),
        },
    ];
}

// Mass is a whole number of 2^-40 in two words.
const massOf = (bytes: ArrayBuffer) =>
    Float64Array.from(new BigUint64Array(bytes), (units) => Number(units) / 2 ** 40);

// The first difference of the GPU's results from the CPU's; "" if there is none. `damage` changes a result before it is
// compared: for the test of what the page says then.
async function differenceFromCpu(
    calls: Calls,
    gpu: Gpu,
    damage: (values: Float32Array) => void = () => {},
): Promise<string> {
    for (const { what, operation, numbers, tensors } of problems(calls)) {
        const expected = calls.onCpu(operation, numbers, tensors),
            got = await calls.onGpu(operation, numbers, tensors, gpu);
        for (const [binding, bytes] of expected) {
            const isMass = binding === tileBindings.mass;
            const ours = isMass ? massOf(bytes) : new Float32Array(bytes),
                theirs = isMass ? massOf(got.get(binding)!) : new Float32Array(got.get(binding)!);
            if (theirs instanceof Float32Array) damage(theirs);
            for (let n = 0; n < ours.length; ++n) {
                const right =
                    ours[n] === theirs[n] ||
                    Math.abs(ours[n] - theirs[n]) <= tolerance * Math.max(1, Math.abs(ours[n]));
                if (!right) return `${what}: number ${n} is ${theirs[n]} on the GPU, ${ours[n]} on the CPU`;
            }
        }
    }
    return "";
}

// Throws if the GPU's results differ from the CPU's, or if it cannot compute them, and closes it then.
export async function checkResults(
    calls: Calls,
    gpu: Gpu,
    damage?: (values: Float32Array) => void,
): Promise<void> {
    try {
        const difference = await differenceFromCpu(calls, gpu, damage);
        if (difference) throw new Error(`the results of this GPU are wrong (${difference}); it is not used`);
    } catch (error) {
        gpu.close();
        throw error;
    }
}
