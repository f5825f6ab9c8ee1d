// Builds the page into build/web: an engine module for each variant, four of them (Emscripten), the scripts and styles (esbuild), and the HTML with
// the level-2 result already in it, computed by the engine itself. FOVEA_WEB_VARIANTS=simd,relaxed builds only those;
// --page builds everything but the engines, which are taken as they are.
import { build, transformSync } from "esbuild";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
    copyFileSync,
    existsSync,
    mkdirSync,
    readFileSync,
    readdirSync,
    rmSync,
    statSync,
    writeFileSync,
} from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";
import { declarationsOf, writeConstants } from "./abi.mjs";
import { cssAsText } from "./css_text.mjs";
import { kernelTable, pageKernels } from "./kernels.mjs";
import { storiesOf, tablesOf } from "./tables.mjs";
import { writeClassPages } from "./class_pages.mjs";
import { sourceHash, standalone } from "./standalone.mjs";
import { bundleIn, languages, textsOf } from "./texts.mjs";

const web = dirname(dirname(fileURLToPath(import.meta.url)));
const root = dirname(web);
const out = join(root, "build", "web");

const hashOf = (bytes) => createHash("sha256").update(bytes).digest("hex").slice(0, 8);
const engineFolder = (variant) => join(root, "build", variant === "simd" ? "wasm" : `wasm-${variant}`);

// Runs a step, says every five seconds how far it is, and shows what it printed only when it fails.
async function step(title, program, args) {
    const start = Date.now();
    let printed = "",
        told = false;
    const seconds = () => Math.round((Date.now() - start) / 1000);
    const timer = setInterval(() => {
        const [, done, all] = [...printed.slice(-2000).matchAll(/^\[(\d+)\/(\d+)\]/gm)].at(-1) ?? [];
        console.error(`fovea: ${title} (${seconds()} s)${all ? ` step ${done} of ${all}` : ""}`);
        told = true;
    }, 5000);
    const child = spawn(program, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr])
        stream.setEncoding("utf8").on("data", (text) => (printed = (printed + text).slice(-40000)));
    const status = await new Promise((done, failed) => child.on("close", done).on("error", failed));
    clearInterval(timer);
    if (status !== 0) {
        process.stderr.write(printed.slice(-20000));
        throw new Error(`${title} failed: ${program} ${args.join(" ")}`);
    }
    if (told) console.error(`fovea: ${title}: done in ${seconds()} s`);
}

// The builds of a variant: its engine, the models' and, once for all browsers, the trainer (without threads).
async function compile(variant) {
    const folder = engineFolder(variant);
    const jobs = process.env.FOVEA_JOBS || String(availableParallelism());
    const targets = [
        "fovea_web",
        "fovea_web_model",
        ...(variant === trainerVariant ? ["fovea_web_train"] : []),
    ];
    await step(`configuring the engine ${variant}`, "cmake", [
        ...["--preset", "wasm", "-B", folder],
        `-DFOVEA_WASM_VARIANT=${variant}`,
    ]);
    await step(`building the engine ${variant}`, "cmake", [
        ...["--build", folder, "--parallel", jobs, "--target"],
        ...targets,
    ]);
}

// A module of Emscripten's: its code, and its script without what only a reader of it needs.
function takeModule(from, to, name) {
    mkdirSync(join(out, to), { recursive: true });
    copyFileSync(join(from, `${name}.wasm`), join(out, to, `${name}.wasm`));
    const script = readFileSync(join(from, `${name}.mjs`), "utf8");
    const options = { format: "esm", target: "es2022", minify: true, legalComments: "none" };
    writeFileSync(join(out, to, `${name}.mjs`), transformSync(script, options).code);
}

// A built module below its own folder, which its content names.
function takeBuilt(variant, kind, module, prefix) {
    const built = join(engineFolder(variant), "web");
    const target = join(kind, `${prefix}${hashOf(readFileSync(join(built, `${module}.wasm`)))}`);
    takeModule(built, target, module);
    return target;
}

// The weights of each task's model, by name and hash.
const learnedFolder = join(root, "lens/model/learned");
const learned = readdirSync(learnedFolder)
    .filter((name) => name.endsWith(".safetensors"))
    .map((name) => ({ task: name.slice(0, -".safetensors".length), path: join(learnedFolder, name) }))
    .filter(({ task }) =>
        JSON.parse(readFileSync(join(root, "lens/model/tables/learned.json"))).some(
            (row) => row.task === task && row.lead,
        ),
    );
function copyLearned() {
    mkdirSync(join(out, "learned"), { recursive: true });
    return Object.fromEntries(
        learned.map(({ task, path }) => {
            const file = `learned/${task}-${hashOf(readFileSync(path))}.safetensors`;
            copyFileSync(path, join(out, file));
            return [task, file];
        }),
    );
}

// The GPU's kernels, named by their content.
function writeKernels() {
    const text = JSON.stringify(kernelTable(pageKernels, join(root, "build")));
    const name = `kernels-${hashOf(text)}.json`;
    mkdirSync(join(out, "assets"), { recursive: true });
    writeFileSync(join(out, "assets", name), text);
    return name;
}

const nameOf = (result, entry) =>
    Object.entries(result.metafile.outputs)
        .find(([, o]) => o.entryPoint?.endsWith(entry))[0]
        .split("/")
        .pop();

// Files of another language than English begin with its name.
async function optionsIn(language) {
    const { define, plugins } = await bundleIn(language),
        names = language === "en" ? "[name]-[hash]" : `${language}-[name]-[hash]`;
    return {
        bundle: true,
        minify: true,
        format: "esm",
        target: "es2022",
        outdir: join(out, "assets"),
        metafile: true,
        entryNames: names,
        chunkNames: names,
        legalComments: "none",
        logLevel: "warning",
        charset: "utf8",
        define,
        plugins,
    };
}

// Bundles the scripts and styles that are the same in every language.
async function bundle(engines, trainer, modelEngines, learnedFiles) {
    const common = await optionsIn("en");
    // Code that only a reader with a GPU loads.
    const gpu = await build({ ...common, entryPoints: [join(web, "src/gpu/gpu_page.ts")] });
    const worker = await build({
        ...common,
        entryPoints: [join(web, "src/worker.ts")],
        define: {
            ENGINE_FOLDERS: JSON.stringify(engines),
            LEARNED_FILES: JSON.stringify(learnedFiles),
            GPU_FILE: JSON.stringify(nameOf(gpu, "src/gpu/gpu_page.ts")),
            KERNELS_FILE: JSON.stringify(writeKernels()),
        },
    });
    const workerName = nameOf(worker, "src/worker.ts");
    const trainWorker = await build({
        ...common,
        entryPoints: [join(web, "src/playground/train_worker.ts")],
        define: { TRAIN_FOLDER: JSON.stringify(trainer) },
    });
    // Not a part of the page's own bundle: what both need would become a third file that the first view waits for.
    const playground = await build({
        ...common,
        entryPoints: [join(web, "src/playground/playground.ts")],
        define: {
            ...common.define,
            TRAIN_WORKER_FILE: JSON.stringify(nameOf(trainWorker, "src/playground/train_worker.ts")),
        },
    });
    const modelWorker = await build({
        ...common,
        entryPoints: [join(web, "src/model/model_worker.ts")],
        define: { MODEL_FOLDERS: JSON.stringify(modelEngines) },
    });
    const models = await build({
        ...common,
        plugins: [...common.plugins, cssAsText],
        entryPoints: [join(web, "src/model/models.ts")],
        define: {
            ...common.define,
            MODEL_WORKER_FILE: JSON.stringify(nameOf(modelWorker, "src/model/model_worker.ts")),
        },
    });
    const style = await build({ ...common, entryPoints: [join(web, "src/style.css")] });
    return {
        style: nameOf(style, "src/style.css"),
        files: {
            WORKER_FILE: JSON.stringify(workerName),
            WORKER_TEXT: '""',
            MODELS_FILE: JSON.stringify(nameOf(models, "src/model/models.ts")),
            PLAYGROUND_FILE: JSON.stringify(trainer && nameOf(playground, "src/playground/playground.ts")),
        },
    };
}

// Bundles the page's own script in a language.
async function bundleMain(language, files) {
    const common = await optionsIn(language),
        vectors = await build({ ...common, entryPoints: [join(web, "src/layer/vectors.ts")] });
    const main = await build({
        ...common,
        plugins: [...common.plugins, cssAsText],
        splitting: true, // modules requested later are loaded later
        entryPoints: [join(web, "src/main.ts")],
        define: {
            ...common.define,
            ...files,
            VECTORS_FILE: JSON.stringify(nameOf(vectors, "src/layer/vectors.ts")),
        },
    });
    return nameOf(main, "src/main.ts");
}

// The same functions that draw the live page draw its first state here.
async function staticParts(engineTarget, entry, language) {
    const file = join(root, "build", `web-${entry}-${language}.mjs`);
    await build({
        ...(await bundleIn(language)),
        bundle: true,
        format: "esm",
        platform: "node",
        target: "es2022",
        outfile: file,
        entryPoints: [join(web, `src/static/${entry}.ts`)],
        logLevel: "warning",
    });
    const made = await import(`${pathToFileURL(file)}?${Date.now()}`);
    const { default: create } = await import(pathToFileURL(join(out, engineTarget, "fovea.mjs")));
    const engine = await create({ wasmBinary: readFileSync(join(out, engineTarget, "fovea.wasm")) }),
        weightsOf = (task) => readFileSync(learned.find((one) => one.task === task).path);
    return (made.renderStatic ?? made.renderClassPages)(engine, weightsOf);
}

function filesUnder(folder) {
    return readdirSync(folder, { recursive: true })
        .map((f) => join(folder, f))
        .filter((f) => statSync(f).isFile());
}

// Writes a brotli form of each file, for servers that send those (nginx's brotli_static); reported sizes are theirs.
function compress() {
    const sizes = {};
    for (const file of filesUnder(out)) {
        if (/\.(br|png)$|_headers$/.test(file)) continue;
        const from = statSync(file),
            to = `${file}.br`;
        if (!existsSync(to) || statSync(to).mtimeMs < from.mtimeMs)
            writeFileSync(
                to,
                brotliCompressSync(readFileSync(file), {
                    params: {
                        [constants.BROTLI_PARAM_SIZE_HINT]: from.size,
                        // Measured: the mode for fonts makes scripts 0.2 to 0.5% smaller, and nothing else.
                        [constants.BROTLI_PARAM_MODE]: file.endsWith(".js")
                            ? constants.BROTLI_MODE_FONT
                            : constants.BROTLI_MODE_GENERIC,
                    },
                }),
            );
        sizes[relative(out, file).replaceAll("\\", "/")] = statSync(to).size;
    }
    return sizes;
}

// Returns the size of the first view in another language, with the worker and style that all languages share.
const pageOf = (sizes, language) =>
    Object.entries(sizes)
        .filter(([file]) =>
            [`${language}.html`, `assets/${language}-main-`, "assets/worker-", "assets/style-"].some((name) =>
                file.startsWith(name),
            ),
        )
        .reduce((sum, [, size]) => sum + size, 0);

function report() {
    const sizes = compress(),
        ofLanguage = /^(assets\/)?[a-z]{2}[-.]/; // other than English
    const sum = (test) =>
        Object.entries(sizes)
            .filter(([f]) => !ofLanguage.test(f) && test(f))
            .reduce((a, [, n]) => a + n, 0);
    const kb = (n) => `${(n / 1000).toFixed(1)} KB`;
    const later = sum((f) =>
            /^assets\/(copies|edit|model_stories|playground|reshape|timings|train_worker|vectors)-/.test(f),
        ),
        gpu = sum((f) => /^assets\/(gpu_page|kernels)-/.test(f)),
        zoom = sum((f) => /^assets\/zoom-/.test(f)),
        models = sum((f) => /^assets\/(models|model_worker)-/.test(f)),
        saving = sum((f) => /^assets\/(mask|saving)-/.test(f)),
        why = sum((f) => f.startsWith("assets/why-")),
        page =
            sum((f) => f === "index.html" || f.startsWith("assets/")) -
            (later + gpu + zoom + models + saving + why);
    console.log(
        `page (HTML, CSS, JS): ${kb(page)} after brotli; stories, copies, playground and plane, behind the first view: ${kb(later)}`,
    );
    console.log(`deep zoom's script, when a map is asked for: ${kb(zoom)}`);
    console.log(`what writes files and paints masks, when asked for: ${kb(saving)}`);
    console.log(`why a head attends, when asked for: ${kb(why)}`);
    console.log(`script and style of a reader's own model, when one is opened: ${kb(models)}`);
    console.log(`the GPU's script and kernels, where there is one: ${kb(gpu)}`);
    for (const variant of variants) {
        console.log(`models with ${variant}: ${kb(sum((f) => f.startsWith(`${modelEngines[variant]}/`)))}`);
        console.log(
            `engine ${variant}: ${kb(sum((f) => f.startsWith(`engine/${variant}-`) && f.split("/")[1].match(/^(.*)-[0-9a-f]+$/)[1] === variant))}`,
        );
    }
    for (const language of languages.slice(1))
        console.log(`page in ${language}: ${kb(pageOf(sizes, language))}`);
    console.log(`learned models, one when it is shown: ${kb(sum((f) => f.startsWith("learned/")))}`);
    if (trainer) console.log(`trainer: ${kb(sum((f) => f.startsWith("train/")))}`);
    writeFileSync(join(root, "build", "web-sizes.json"), JSON.stringify(sizes, null, 1));
}

writeConstants();
writeFileSync(
    join(web, "src/engine/engine_abi.ts"),
    declarationsOf(join(web, "engine/web_engine.h"), "EngineModule"),
);
writeFileSync(
    join(web, "src/engine/call_abi.ts"),
    declarationsOf(join(web, "engine/call_engine.h"), "CallModule"),
);
writeFileSync(
    join(web, "src/playground/train_abi.ts"),
    declarationsOf(join(web, "engine/train_engine.h"), "TrainModule"),
);
writeFileSync(
    join(web, "src/model/model_abi.ts"),
    declarationsOf(join(web, "engine/model_engine.h"), "ModelModule"),
);
writeFileSync(join(web, "src/page/model_tables.ts"), tablesOf(join(root, "lens/model/tables")));
writeFileSync(join(web, "src/lessons/model_stories.ts"), storiesOf(join(root, "lens/model/tables")));
const onlyPage = process.argv.includes("--page");
const builtIn = (folder) =>
    readdirSync(join(out, folder)).map((name) => [name.replace(/-[0-9a-f]{8}$/, ""), join(folder, name)]);
const built = onlyPage ? builtIn("engine") : [];
const variants = onlyPage
    ? built.map(([variant]) => variant)
    : (process.env.FOVEA_WEB_VARIANTS?.split(",") ?? ["simd", "simd-threads", "relaxed", "relaxed-threads"]);
for (const old of onlyPage ? readdirSync(out).filter((name) => !/^(engine|train|model)$/.test(name)) : [""])
    rmSync(join(out, old), { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const trainerVariant =
    variants.find((name) => name === "simd") ?? variants.find((name) => !name.endsWith("-threads"));
if (!onlyPage) for (const variant of variants) await compile(variant);
const takenOf = (kind, module) =>
    Object.fromEntries(
        onlyPage
            ? builtIn(kind)
            : variants.map((variant) => [variant, takeBuilt(variant, kind, module, `${variant}-`)]),
    );
const engines = takenOf("engine", "fovea"),
    modelEngines = takenOf("model", "model");
const trained = join(out, "train");
const trainer = onlyPage
    ? existsSync(trained)
        ? join("train", readdirSync(trained)[0])
        : ""
    : trainerVariant
      ? takeBuilt(trainerVariant, "train", "train", "")
      : "";
const { style, files } = await bundle(engines, trainer, modelEngines, copyLearned());
const drawing = engines[variants.find((v) => v === "simd") ?? variants[0]],
    styleFile = `assets/${style}`;

// A reader whose browser speaks German gets the German page, unless the address asks for English.
const choose = {
    en: '/^de/.test(navigator.language)&&!/lang=en/.test(location.search)&&location.replace("de.html"+location.search+location.hash);',
    de: "",
};
async function pageIn(language) {
    const { page } = await textsOf(language),
        mainFile = `assets/${await bundleMain(language, files)}`;
    let html = readFileSync(join(web, "src/index.html"), "utf8");
    const fill = (parts) => {
        for (const [name, text] of Object.entries(parts)) html = html.replaceAll(`{{${name}}}`, () => text);
    };
    fill({
        ...page,
        ...(await staticParts(drawing, "static", language)),
        choose: choose[language],
        mainFile,
        styleFile,
        // The preview of the task that the first view shows; an absolute address if the site's is known.
        preview: process.env.FOVEA_SITE
            ? new URL("task/induction/preview.png", process.env.FOVEA_SITE).href
            : "task/induction/preview.png",
        version: JSON.parse(readFileSync(join(web, "package.json"), "utf8")).version,
    });
    fill({ early: sourceHash(html.match(/<script>(.*?)<\/script>/)[1]) });
    const missing = html.match(/\{\{\w+\}\}/);
    if (missing) throw new Error(`index.html in ${language}: nothing fills ${missing[0]}`);
    writeFileSync(join(out, fileOf(language)), html);
    return { html, mainFile };
}
const fileOf = (language) => (language === "en" ? "index.html" : `${language}.html`);
const pages = {};
for (const language of languages) {
    pages[language] = await pageIn(language);
    writeClassPages(await staticParts(drawing, "class_pages", language), {
        out,
        styleFile,
        language,
        file: fileOf(language),
        label: (await textsOf(language)).lesson.all,
    });
}
for (const file of ["icon.svg", "app.webmanifest"]) copyFileSync(join(web, "src", file), join(out, file));
const precache = filesUnder(out)
    .map((f) => relative(out, f).replaceAll("\\", "/"))
    .filter((f) => !f.endsWith(".br"));
// The text model is too large to be kept offline.
const large = /^learned\/text-/;
const worker = readFileSync(join(web, "src/sw.js"), "utf8")
    .replace(
        "__FILES__",
        JSON.stringify(
            precache.filter((f) => !/^(engine|train|model|level|task)\//.test(f) && !large.test(f)),
        ),
    )
    .replace(
        "__VERSION__",
        hashOf(precache.join() + languages.map((language) => pages[language].html).join()),
    );
writeFileSync(join(out, "sw.js"), worker);
// For hosts that read it (Netlify, Cloudflare Pages): threads at once, and names with a hash for ever.
writeFileSync(
    join(out, "_headers"),
    `/*
  Cross-Origin-Opener-Policy: same-origin
  Cross-Origin-Embedder-Policy: require-corp
/assets/*
  Cache-Control: public, max-age=31536000, immutable
/engine/*
  Cache-Control: public, max-age=31536000, immutable
/learned/*
  Cache-Control: public, max-age=31536000, immutable
/model/*
  Cache-Control: public, max-age=31536000, immutable
/train/*
  Cache-Control: public, max-age=31536000, immutable
`,
);
report();
for (const language of languages) {
    const name = language === "en" ? "fovea.html" : `fovea-${language}.html`;
    const single = await standalone({
        web,
        engine: join(out, engines.simd ?? engines[variants[0]]),
        learned: learned.filter(({ task }) => task !== "text"), // which is as large as all else
        ...pages[language],
        ...(await bundleIn(language)),
        choose: choose[language],
        styleFile,
        out: join(root, "build", name),
    });
    console.log(`the page as one file, build/${name}: ${(single / 1e6).toFixed(1)} MB`);
}
