// The kernels as WGSL: what web/tools/wgsl.mjs makes of the shaders is valid by naga's own front end, binds what a browser
// has room for, and what it does not know it refuses.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { kernelTable, packageKernels, pageKernels } from "../tools/kernels.mjs";
import { Translator, flags, flagsConstant, slotsOf } from "../tools/wgsl.mjs";
import { root } from "./support.mjs";

let translator;
before(() => {
    translator = new Translator();
});
after(() => translator.close());

// Constants: threads, types, whole quads, rows, column quads or pixels, general, parts.
const flash = (general, whole, may) => ({
    0: 32,
    3: whole,
    4: 8,
    6: 1,
    7: general,
    8: 2,
    [flagsConstant]: may,
});
const kernels = [
    ["flash", flash(0, 1, flags("Output", "Lse")), 6],
    ["flash", flash(1, 0, flags("Output", "Lse", "Mask", "Sparse")), 8],
    ["flash_combine", { 0: 64, [flagsConstant]: flags("Output", "Lse") }, 3],
    ["map_tile", { 0: 32, 3: 1, 4: 8, 6: 512, [flagsConstant]: flags("TileMass", "TileMax", "Sampled") }, 5],
    ["softmax", { 0: 128, 1: 32, [flagsConstant]: flags("Mask", "Lse", "Weights", "Philox") }, 5],
    ["linear_shared", { 0: 128, 3: 1 }, 4],
];

for (const [module, constants, most] of kernels)
    test(`${module} becomes WGSL that binds ${most} buffers at most`, () => {
        const { text, small } = translator.translate(module, constants);
        assert.match(text, new RegExp(`@workgroup_size\\(${constants[0]}, 1, 1\\)`));
        assert.equal(text.match(/var<uniform>/g).length, 1, "push constants are one uniform buffer");
        assert.ok(slotsOf(text).length <= most, `${slotsOf(text)}`);
        assert.ok(small.length < 0.6 * text.length);
    });

test("an unknown module and one that WGSL cannot say are refused by name", () => {
    assert.throws(() => translator.translate("flash2", { 0: 32 }), /flash2 with 0=32: .*no module flash2/);
    assert.throws(
        () => translator.translate("linear_coopmat", { 0: 128, 4: 64, 8: 8, 9: 8, 10: 8, 11: 64, 13: 4 }),
        /linear_coopmat with 0=128 .*CooperativeMatrixKHR/,
    );
});

// Chrome reads WGSL by Tint. No set-up fetches it: FOVEA_TINT names the program, Debian sid's dawn-tools has one.
const tint = process.env.FOVEA_TINT;
test(
    "Tint reads every kernel of the page and of the package, and not just anything",
    { skip: tint ? false : "FOVEA_TINT names no tint (Debian sid: dawn-tools)" },
    () => {
        const folder = mkdtempSync(join(tmpdir(), "fovea-tint-")),
            file = join(folder, "kernel.wgsl");
        const read = (text) => {
            writeFileSync(file, text);
            const out = join(folder, "kernel.spv");
            const { status, stdout, stderr } = spawnSync(tint, ["--format", "spirv", "-o", out, file], {
                encoding: "utf8",
            });
            return status === 0 ? "" : `${status}: ${stdout}${stderr}`;
        };
        try {
            for (const table of [pageKernels, packageKernels])
                for (const { shader, constants, code } of kernelTable(table, join(root, "build")))
                    assert.equal(read(code), "", `shader ${shader} with ${constants}`);
            for (const [module, constants] of kernels)
                assert.equal(read(translator.translate(module, constants).text), "", module);
            assert.match(read("fn f() -> f32 { return true; }"), /return/);
        } finally {
            rmSync(folder, { recursive: true });
        }
    },
);
