// The kernels of shaders/ as WGSL: glslang makes SPIR-V of them with FOVEA_WGSL, spirv-opt bakes the constants in, naga
// (npm naga-wasm, pinned) writes WGSL, and a pass over its text does what naga leaves undone. That text is no
// contract, so the pass fails with the place of unknown text instead of guessing.
//
//   node web/tools/wgsl.mjs MODULE ID=VALUE ... [> FILE]     one kernel, for a look at it
//
// What WGSL has not, and where it is dealt with:
//   specialization constants that operations depend on    baked; a kernel is a module and its constants
//   push constants                                        a uniform buffer in group 1, the same bytes
//   a workgroup size that is a constant                   naga writes 1; put right here
//   built-ins in private variables, not known uniform     here they become the entry point's parameters
//   buffers that are only written                         the decoration NonReadable is taken away
//   -inf, isnan, products of 64 bits                      shaders/wgsl.glsl
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { NagaError, parseSpirv, parseWgsl, validate, writeWgsl } from "naga-wasm";

const shaders = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "shaders");

// A workgroup's size is the constant with this number (FOVEA_SPEC_THREADS).
const threadsConstant = 0;
const shared = readFileSync(join(shaders, "interface.h"), "utf8");
export const flagsConstant = Number(shared.match(/#define FOVEA_SPEC_FLAGS (\d+)/)[1]);
// kFlagA | kFlagB of interface.h.
export const flags = (...names) =>
    names.reduce((all, name) => {
        const bit = shared.match(new RegExp(`\\bkFlag${name} = 1u << (\\d+)`));
        if (!bit) throw new Error(`shaders/interface.h has no kFlag${name}`);
        return all | (1 << Number(bit[1]));
    }, 0);
// The bit of FOVEA_SPEC_CALL by which a kernel takes slices of several batch entries.
export const entriesCall = 1 << Number(shared.match(/\bkEntriesCall = 1u << (\d+)/)[1]);
// Flags that need no buffer: kernels may always be made with them, so that fewer kernels serve all calls.
export const freeFlags = flags(
    ...["BottomRight", "PackedQ", "PackedKv", "AllKeys", "Sparse"],
    ...["Output", "Lse", "Sampled", "Entries"],
);

// spirv-opt's own -O makes a form that naga does not take (a value used in a block before the one that makes it), so these
// are the passes that do not rewrite variables into values over several blocks.
const round = [
    "--eliminate-local-single-block",
    "--eliminate-local-single-store",
    "--simplify-instructions",
    "--eliminate-dead-branches",
    "--merge-blocks",
    "--eliminate-dead-code-aggressive",
];
const passes = [
    "--freeze-spec-const",
    "--fold-spec-const-op-composite",
    "--unify-const",
    "--wrap-opkill",
    "--eliminate-dead-branches",
    "--merge-return",
    "--inline-entry-points-exhaustive",
    "--eliminate-dead-functions",
    "--private-to-local",
    "--scalar-replacement=100",
    ...round,
    ...round,
    ...round,
];
const cleanup = [
    "--redundancy-elimination",
    "--simplify-instructions",
    "--eliminate-dead-code-aggressive",
    "--eliminate-dead-variables",
    "--eliminate-dead-const",
];

// A bias's type is a number of two bits in them, and a kernel that reads one type reads all.
const biasMask = shared
    .match(/kBiasMask = (\d)u << (\d+)/)
    .slice(1)
    .map(Number);
export const biasFlags = biasMask[0] << biasMask[1];
// The flags that a kernel for dispatches with `flags` may have without another buffer.
export const allowed = (flags) => flags | freeFlags | (flags & biasFlags ? biasFlags : 0);

// Where ./dev setup puts the compilers, else wherever the shell finds them.
function tool(name) {
    const folder = process.env.FOVEA_CACHE || join(homedir(), ".cache", "fovea");
    const set = join(folder, "bin", name);
    return existsSync(set) ? set : name;
}

function run(name, args) {
    try {
        return execFileSync(tool(name), args, { encoding: "utf8", maxBuffer: 1 << 28, stdio: "pipe" });
    } catch (error) {
        throw new Error(`${name}: ${(error.stderr || error.stdout || error.message).slice(0, 2000)}`);
    }
}

// { name: { source, defines } } of shaders/variants.def.
function modules() {
    const text = readFileSync(join(shaders, "variants.def"), "utf8");
    const lines = [...text.matchAll(/^FOVEA_SHADER\((\w+), "([\w.]+)", "([A-Z0-9_= ]*)", \d+\)$/gm)];
    return Object.fromEntries(
        lines.map(([, name, source, defines]) => [
            name,
            { source, defines: defines.split(" ").filter(Boolean) },
        ]),
    );
}

// On a branch's false edge its condition is false. spirv-opt does not use that, and so keeps the code of `if (!hidden
// && has_flag(F))` although no dispatch has F.
function withKnownEdges(assembly) {
    const no = assembly.match(/(%\d+) = OpConstantFalse /)?.[1];
    if (!no) return assembly;
    let block = "";
    const conditions = {}; // by block and the block that it goes to where its condition is false
    for (const line of assembly.split("\n")) {
        block = line.match(/(%\d+) = OpLabel/)?.[1] ?? block;
        const branch = line.match(/OpBranchConditional (%\d+) %\d+ (%\d+)/);
        if (branch) conditions[`${block} ${branch[2]}`] = branch[1];
    }
    let here = "";
    return assembly
        .split("\n")
        .map((line) => {
            here = line.match(/(%\d+) = OpLabel/)?.[1] ?? here;
            const phi = line.match(/^( *%\d+ = OpPhi %\d+)((?: %\d+ %\d+)+)$/);
            if (!phi) return line;
            const pairs = phi[2].match(/%\d+ %\d+/g).map((pair) => pair.split(" "));
            return [
                phi[1],
                ...pairs.map(([value, from]) =>
                    conditions[`${from} ${here}`] === value ? `${no} ${from}` : `${value} ${from}`,
                ),
            ].join(" ");
        })
        .join("\n");
}

// The names of the modules; their order gives the indices by which plans call them.
export const moduleNames = () => Object.keys(modules());

// SPIR-V of one module with `constants` ({ id: value }) baked in, as bytes.
function frozen(folder, module, constants) {
    const known = modules()[module];
    if (!known) throw new Error(`shaders/variants.def has no module ${module}`);
    const raw = join(folder, `${module}.raw.spv`),
        baked = join(folder, "baked.spv"),
        text = join(folder, "baked.spvasm");
    if (!existsSync(raw))
        run("glslangValidator", [
            ...["-V", "--quiet", "-g0", "--target-env", "vulkan1.1", "-DFOVEA_WGSL"],
            ...known.defines.map((define) => `-D${define}`),
            ...["-o", raw, join(shaders, known.source)],
        ]);
    // spirv-opt takes no number for a constant that is true or false, and says nothing.
    const assembly = run("spirv-dis", ["--raw-id", raw]);
    const booleans = new Set(
        [...assembly.matchAll(/(%\d+) = OpSpecConstant(?:True|False)/g)].map((m) => m[1]),
    );
    const values = [...assembly.matchAll(/OpDecorate (%\d+) SpecId (\d+)/g)].map(([, id, number]) => {
        const value = constants[number] ?? 0;
        return `${number}:${booleans.has(id) ? (value ? "true" : "false") : value >>> 0}`;
    });
    const set = values.length ? [`--set-spec-const-default-value=${values.join(" ")}`] : [];
    run("spirv-opt", ["--target-env=vulkan1.1", ...set, ...passes, raw, "-o", baked]);
    writeFileSync(
        text,
        withKnownEdges(run("spirv-dis", ["--raw-id", baked]).replace(/^.*\bNonReadable$\n/gm, "")),
    );
    run("spirv-as", ["--target-env", "vulkan1.1", "--preserve-numeric-ids", text, "-o", baked]);
    run("spirv-opt", ["--target-env=vulkan1.1", ...round, ...round, ...cleanup, baked, "-o", baked]);
    return readFileSync(baked);
}

// The one match of `pattern`, which is what the pass below relies on.
function only(text, pattern, what) {
    const found = [...text.matchAll(pattern)];
    if (found.length !== 1) throw new Error(`naga wrote ${found.length} of ${what}, and 1 was expected`);
    return found[0];
}

// The expression that builds a value of `type` from 32-bit words of `push_words`, from word `next.word` on.
function built(type, structs, next) {
    const array = type.match(/^array<(\w+), (\d+)>$/);
    if (array)
        return `${type}(${Array.from({ length: +array[2] }, () => built(array[1], structs, next)).join(", ")})`;
    if (structs[type])
        return `${type}(${structs[type].map((member) => built(member, structs, next)).join(", ")})`;
    const word = `push_words[${next.word >> 2}u].${"xyzw"[next.word & 3]}`;
    next.word += 1;
    if (type === "u32") return word;
    if (type === "i32" || type === "f32") return `bitcast<${type}>(${word})`;
    throw new Error(`push constants hold a ${type}`);
}

// naga's text as browsers take it.
function finished(wgsl, threads) {
    const structs = Object.fromEntries(
        [...wgsl.matchAll(/^struct (\w+) \{\n([\s\S]*?)^\}\n/gm)].map(([, name, members]) => [
            name,
            [...members.matchAll(/^    \w+: (.*),$/gm)].map((member) => member[1]),
        ]),
    );
    // Built-ins: naga's entry point copies its parameters into private variables and calls the kernel. They become
    // parameters of the kernel, which browsers then know to be the same for all of a workgroup.
    const entry = only(
        wgsl,
        /@compute @workgroup_size\(1, 1, 1\) \nfn main\(([^)]*(?:\([^)]*\)[^)]*)*)\) \{\n([\s\S]*?)\n\}\n/g,
        "the entry point",
    );
    let parameters = entry[1];
    for (const line of entry[2].split("\n")) {
        const copy = line.match(/^    (\w+) = (\w+);$/);
        if (!copy) {
            if (line !== "    function_();" && line !== "    return;")
                throw new Error(`naga's entry point has the line '${line.trim()}'`);
            continue;
        }
        const declared = only(wgsl, new RegExp(`^var<private> ${copy[1]}: [^;]*;\\n`, "gm"), copy[1]);
        wgsl = wgsl.replace(declared[0], "");
        parameters = parameters.replace(new RegExp(`\\b${copy[2]}:`), `${copy[1]}:`);
    }
    wgsl = wgsl.replace(entry[0], "");
    let prologue = "";
    if (wgsl.includes("var<immediate>")) {
        const push = only(wgsl, /var<immediate> (\w+): (\w+);\n/g, "the push constants");
        const next = { word: 0 },
            value = built(push[2], structs, next);
        // If a variable indexes an array in it, it needs a separate variable.
        const indexed = new RegExp(`\\b${push[1]}\\.[\\w.]*\\[`).test(wgsl);
        wgsl = wgsl.replace(
            push[0],
            `@group(1) @binding(0) \nvar<uniform> push_words: array<vec4<u32>, ${(next.word + 3) >> 2}>;\n`,
        );
        prologue = `    ${indexed ? "var" : "let"} ${push[1]} = ${value};\n`;
    }
    const kernel = only(wgsl, /^fn (\w+)\(\) \{\n/gm, "the kernel's function");
    wgsl = wgsl.replace(
        kernel[0],
        `@compute @workgroup_size(${threads}, 1, 1)\nfn main(${parameters}) {\n${prologue}`,
    );
    if (/var<immediate>|workgroup_size\(1,/.test(wgsl)) throw new Error("naga's text was not put right");
    const extension = wgsl.match(/^enable \w+;/m);
    if (extension) throw new Error(`no browser has what '${extension[0]}' asks for`);
    return (/\bsubgroup[A-Z]/.test(wgsl) ? "enable subgroups;\n" : "") + wgsl;
}

// The same kernel in fewer bytes: short names and no indentation. Every name is naga's or of `finished`.
function minified(wgsl) {
    const names = new Map();
    const short = (name) => {
        if (!names.has(name))
            names.set(
                name,
                `${"abcdefghijklmnopqrstuvw"[names.size % 23]}${Math.floor(names.size / 23).toString(36)}_`,
            );
        return names.get(name);
    };
    return wgsl
        .replace(/\b(?:_e\d+|(?:local|global|type|param|phi)_?\d*|push_words)\b/g, short)
        .replace(/\bbitcast<u32>\((\d+)i\)/g, "$1u")
        .replace(/\n\s*/g, "\n")
        .replace(/ ?([-+*/%=<>&|^!,:;{}]+) ?/g, (all, sign) => (/^[-&*]$/.test(sign) ? all : sign))
        .replace(/;\n/g, ";");
}

// Slots of group 0 that the kernel declares.
export const slotsOf = (wgsl) =>
    [...wgsl.matchAll(/@group\(0\) ?@binding\((\d+)\)/g)].map((m) => Number(m[1]));

// The input of web/src/gpu/gpu.ts: a kernel for dispatches with these constants and at most these flags.
export function kernelFrom(translator, name, constants, flags) {
    const { small } = translator.translate(name, { ...constants, [flagsConstant]: flags });
    return {
        shader: moduleNames().indexOf(name),
        name,
        constants,
        flags,
        slots: slotsOf(small),
        code: small,
    };
}

export class Translator {
    constructor() {
        this.folder = mkdtempSync(join(tmpdir(), "fovea-wgsl-"));
    }
    // The WGSL of a module of shaders/variants.def with constants ({ number: value }; those that are missing are 0).
    // It was read again and found valid.
    translate(module, constants) {
        const name = `${module} with ${Object.entries(constants)
            .map(([id, value]) => `${id}=${value}`)
            .join(" ")}`;
        try {
            const spirv = parseSpirv(new Uint8Array(frozen(this.folder, module, constants)));
            const text = finished(writeWgsl(spirv, validate(spirv)), constants[threadsConstant]);
            const small = minified(text);
            validate(parseWgsl(small));
            if (String(slotsOf(small)) !== String(slotsOf(text))) throw new Error("slots were lost");
            return { text, small };
        } catch (error) {
            throw new Error(`${name}: ${error instanceof NagaError ? error.formatted : error.message}`);
        }
    }
    close() {
        rmSync(this.folder, { recursive: true, force: true });
    }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const [module, ...given] = process.argv.slice(2);
    const translator = new Translator();
    try {
        const constants = Object.fromEntries(given.map((pair) => pair.split("=").map(Number)));
        process.stdout.write(translator.translate(module, constants).text);
    } finally {
        translator.close();
    }
}
