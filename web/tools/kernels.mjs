// Which kernels a GPU gets: tables for web/src/gpu/gpu.ts. A plan whose kernel is not in the table goes to the CPU, which says so;
// so a table holds what its program asks for, and not every kernel that there could be.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Translator, entriesCall, flags, freeFlags, kernelFrom } from "./wgsl.mjs";

const here = dirname(fileURLToPath(import.meta.url)),
    shaders = join(here, "..", "..", "shaders");

// Constants as the planner sets them (FOVEA_SPEC_* of shaders/interface.h), with tiles of 8 rows, float32 and rows of whole
// quads, for slices of one batch entry or several and blocks of as many pixels as there may be. `parts` follows the width of the values: 8, 4, 2, 1 for up to 16, 32, 64,
// 128 of them.
const flash = (general, parts, may = 0) => ({
    name: "flash",
    constants: [32, 0, 0, 1, 8, 0, 1, general | entriesCall, parts],
    flags: may | freeFlags,
});
const tile = (general, may = 0) => ({
    name: "map_tile",
    constants: [32, 0, 0, 1, 8, 0, 512, general],
    flags: may | freeFlags | flags("TileMass", "TileMax"),
});
const combine = { name: "flash_combine", constants: [64], flags: freeFlags };
const extra = { name: "flash_extra", constants: [32], flags: 0 };

// The kernels for the page, heads of 64, causal or not, and those for the check of a GPU (gpu_check.ts).
export const pageKernels = [flash(0, 2), flash(1, 2, flags("Mask")), combine, extra, tile(0)];

// The package `fovea`: values of up to 16, 32, 64 and 128 columns, with a mask or without.
export const packageKernels = [
    ...[8, 4, 2, 1].flatMap((parts) => [flash(0, parts), flash(1, parts, flags("Mask"))]),
    ...[combine, extra, tile(0), tile(1, flags("Mask"))],
];

// The kernels of a table, translated; kept in `folder` as long as neither the shaders nor these tools change.
export function kernelTable(table, folder) {
    const sources = [
        ...readdirSync(shaders)
            .filter((name) => /\.(comp|glsl|h|def)$/.test(name))
            .map((name) => join(shaders, name)),
        join(here, "wgsl.mjs"),
        join(here, "..", "package-lock.json"),
    ];
    const hash = createHash("sha256").update(JSON.stringify(table));
    for (const file of sources) hash.update(readFileSync(file));
    const kept = join(folder, "kernels", `${hash.digest("hex").slice(0, 16)}.json`);
    if (existsSync(kept)) return JSON.parse(readFileSync(kept, "utf8"));
    const translator = new Translator();
    try {
        const made = table.map(({ name, constants, flags }) =>
            kernelFrom(translator, name, constants, flags),
        );
        mkdirSync(dirname(kept), { recursive: true });
        writeFileSync(kept, JSON.stringify(made));
        return made;
    } finally {
        translator.close();
    }
}
