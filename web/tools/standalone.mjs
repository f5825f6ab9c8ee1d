// The page as one file, build/fovea.html: opened from a disk, without a server, with the engine `simd` within it.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cssAsText } from "./css_text.mjs";

// The name by which a Content-Security-Policy allows a script or a style inside the page.
export const sourceHash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

// `html` is the site's page; `engine` the folder of the built engine; `learned` tasks and the files of their weights.
export async function standalone({
    web,
    engine,
    learned,
    html,
    styleFile,
    mainFile,
    out,
    define,
    plugins,
    choose,
}) {
    const options = {
        bundle: true,
        minify: true,
        format: "esm",
        target: "es2022",
        write: false,
        legalComments: "none",
        logLevel: "warning",
        charset: "utf8",
    };
    const textOf = (result) => result.outputFiles[0].text;
    const within = {
        name: "engine within",
        setup(builder) {
            builder.onResolve({ filter: /load_engine\.ts$/ }, () => ({
                path: "within",
                namespace: "engine",
            }));
            builder.onLoad({ filter: /.*/, namespace: "engine" }, () => ({
                resolveDir: engine,
                contents:
                    'import create from "./fovea.mjs"; import wasmBinary from "./fovea.wasm"; export const loadEngine = () => create({ wasmBinary, locateFile: (name) => name });' +
                    [...learned.keys()].map((n) => `import model${n} from "${learned[n].path}";`).join("") +
                    `const models = {${learned.map(({ task }, n) => `${task}: model${n}`).join()}};export const loadLearned = async (task) => { if (!models[task]) throw new Error("this page is a single file without the model of the task " + task + ": the site has it"); return models[task]; };`,
            }));
        },
    };
    const worker = textOf(
        await build({
            ...options,
            format: "iife",
            logOverride: { "empty-import-meta": "silent" },
            entryPoints: [join(web, "src/worker.ts")],
            plugins: [within, ...plugins],
            loader: { ".wasm": "binary", ".safetensors": "binary" },
            platform: "browser",
            external: ["module"],
            define: { ...define, ENGINE_FOLDERS: '{"simd":""}', GPU_FILE: '""', KERNELS_FILE: '""' },
        }),
    );
    const main = textOf(
        await build({
            ...options,
            plugins: [cssAsText, ...plugins],
            entryPoints: [join(web, "src/main.ts")],
            define: {
                ...define,
                WORKER_FILE: '""',
                WORKER_TEXT: JSON.stringify(worker),
                VECTORS_FILE: '""',
                MODELS_FILE: '""', // a page of one file has no engine for models and no trainer, and says so
                PLAYGROUND_FILE: '""',
            },
        }),
    )
        .replaceAll("</script", "<\\/script")
        .replaceAll("<!--", "<\\!--");
    const style = textOf(await build({ ...options, entryPoints: [join(web, "src/style.css")] }));
    const icon = `data:image/svg+xml;base64,${readFileSync(join(web, "src/icon.svg")).toString("base64")}`;
    // A single file has one language, so the link to the other one and the redirect are removed.
    const early = html.match(/<script>(.*?)<\/script>/)[1],
        kept = early.replace(choose, ""),
        [link] = html.match(/<a id="language".*?<\/a>/);
    const swaps = [
        [early, kept],
        [sourceHash(early), sourceHash(kept)],
        [link, ""],
        [`<link rel="stylesheet" href="${styleFile}">`, `<style>${style}</style>`],
        [`<script type="module" src="${mainFile}"></script>`, ""],
        ["</body>", `<script type="module">${main}</script></body>`],
        ['<link rel="manifest" href="app.webmanifest">', ""],
        ['href="icon.svg"', `href="${icon}"`],
        ["script-src 'self'", `script-src ${sourceHash(main)}`],
        ["style-src 'self'", `style-src ${sourceHash(style)}`],
        ["connect-src 'self'; worker-src 'self'; manifest-src 'self'", "worker-src blob:"],
    ];
    let page = html;
    for (const [from, to] of swaps) {
        if (!page.includes(from)) throw new Error(`index.html has no ${from}`);
        page = page.replace(from, () => to);
    }
    writeFileSync(out, page);
    return page.length;
}
