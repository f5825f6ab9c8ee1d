// The kernels and the player of plans on WebGPU, in Chromium with its adapter in software: random calls judged by the
// float64 reference, as every backend is (tests/semantics, tests/gradients, tests/operations). Longer sweeps by hand:
//
//   build/default/bin/fovea_test_semantics --sweep SEED --on webgpu:flash --count 300
//
// The same on Dawn in node, a second implementation with its own compiler for WGSL, where FOVEA_DAWN names a folder
// with npm's package `webgpu`; it is 130 MB, so that no set-up fetches it unasked.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { executablePath, isNightly, root } from "./support.mjs";

const program = (name) => join(root, "build/default/bin", `fovea_test_${name}`);
const unbuilt = ["semantics", "gradients", "operations"].filter((name) => !existsSync(program(name)));
const missing = !executablePath
    ? "no Chromium found (set FOVEA_CHROMIUM)"
    : unbuilt.length
      ? `fovea_test_${unbuilt[0]} is not built: ./dev build`
      : null;

const noDawn = process.env.FOVEA_DAWN
    ? missing
    : "FOVEA_DAWN is not set (npm install --prefix FOLDER webgpu)";

for (const [implementation, kernel, seed, count, lack] of [
    ["webgpu", "staged", 1, 2, missing],
    ["webgpu", "flash", 20261401, 3, missing],
    ["dawn", "staged", 1, 4, noDawn],
    ["dawn", "flash", 1, 3, noDawn],
])
    test(
        `random calls of ${kernel} on ${implementation} are within the tolerance of every row`,
        { skip: lack ?? false },
        async () => {
            const { stdout } = await promisify(execFile)(program("semantics"), [
                ...[
                    "--sweep",
                    String(seed),
                    "--on",
                    `${implementation}:${kernel}`,
                    "--count",
                    String(isNightly ? 2 * count : count),
                ],
            ]);
            assert.ok(Number(stdout.match(/(\d+) passed, 0 failed/)?.[1]) > 0, stdout);
        },
    );

for (const [implementation, lack] of [
    ["webgpu", missing],
    ["dawn", noDawn],
]) {
    test(
        `gradients of random calls on ${implementation} are within the tolerance of every row`,
        { skip: lack ?? false },
        async () => {
            const { stdout } = await promisify(execFile)(program("gradients"), [
                ...["--sweep", "1", "--on", implementation, "--count", isNightly ? "12" : "2"],
            ]);
            assert.ok(Number(stdout.match(/(\d+) passed, 0 failed/)?.[1]) > 0, stdout);
        },
    );

    test(
        `rope, linear, append, gather and merge on ${implementation} are within the tolerance of every row`,
        { skip: lack ?? false },
        async () => {
            const { stdout } = await promisify(execFile)(program("operations"), [
                ...["--on", implementation, "--cases", isNightly ? "60" : "2"],
            ]);
            // All of them, except one that WebGPU cannot bind.
            const [, all] = stdout.match(/Running (\d+) tests/);
            assert.match(stdout, new RegExp(`\\[  PASSED  \\] ${all - 1} tests`));
            assert.match(stdout, /SKIPPED \] Operations\.rope_in_place\n/);
            assert.match(stdout, /linear on \w+: worst row/);
        },
    );
}
