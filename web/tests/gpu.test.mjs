// The kernels and the player of plans on WebGPU, in Chromium with its adapter in software: random calls judged by the
// float64 reference, as every backend is (tests/semantics). Longer sweeps by hand:
//
//   build/default/bin/fovea_test_semantics --sweep SEED --on webgpu:flash --count 300
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { executablePath, root } from "./support.mjs";

const program = join(root, "build/default/bin/fovea_test_semantics");
const missing = !executablePath
    ? "no Chromium found (set FOVEA_CHROMIUM)"
    : !existsSync(program)
      ? "fovea_test_semantics is not built: ./dev build"
      : null;

for (const [kernel, seed, count] of [
    ["staged", 1, 4],
    ["flash", 1, 3],
])
    test(
        `random calls of ${kernel} on WebGPU are within the tolerance of every row`,
        { skip: missing ?? false },
        async () => {
            const { stdout } = await promisify(execFile)(program, [
                ...["--sweep", String(seed), "--on", `webgpu:${kernel}`, "--count", String(count)],
            ]);
            assert.ok(Number(stdout.match(/(\d+) passed, 0 failed/)?.[1]) > 0, stdout);
        },
    );
