// Packs the npm package `fovea` (web/npm) into build/npm: one ES module with the engine `simd` of build/web, which must have
// been built, its WebAssembly and the kernels for a GPU. Nothing is published.
//
//   node web/tools/npm.mjs        prints the path of the tarball
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { kernelTable, packageKernels } from "./kernels.mjs";

const web = dirname(dirname(fileURLToPath(import.meta.url))),
    root = dirname(web),
    out = join(root, "build", "npm");

export async function pack() {
    const engines = join(root, "build", "web", "engine");
    const variant = readdirSync(engines).find((name) => /^simd-[0-9a-f]{8}$/.test(name));
    if (!variant) throw new Error("build/web has no engine simd: ./dev build web makes it");
    const folder = join(out, "package");
    rmSync(out, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    await build({
        bundle: true,
        minify: true,
        format: "esm",
        target: "es2022",
        platform: "browser",
        external: ["module"],
        alias: { engine: join(engines, variant, "fovea.mjs") },
        outfile: join(folder, "fovea.js"),
        entryPoints: [join(web, "src/npm_entry.ts")],
        legalComments: "none",
        logLevel: "warning",
        charset: "utf8",
    });
    copyFileSync(join(engines, variant, "fovea.wasm"), join(folder, "fovea.wasm"));
    writeFileSync(
        join(folder, "kernels.json"),
        JSON.stringify(kernelTable(packageKernels, join(root, "build"))),
    );
    for (const file of ["package.json", "README.md", "index.d.ts"])
        copyFileSync(join(web, "npm", file), join(folder, file));
    const packed = spawnSync("npm", ["pack", "--pack-destination", out], { cwd: folder, encoding: "utf8" });
    if (packed.status !== 0) throw new Error(packed.stderr);
    return join(out, packed.stdout.trim().split("\n").at(-1));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(await pack());
