// Draws the pictures of the README and docs/ again, all or those named: ./dev pictures [NAME...].
// The test pictures.test.mjs draws them, too, and fails where a kept picture is not what the programs draw now.
// Two pictures depend on measured times (places of birds, how many samples) and one takes long to draw. For those,
// docs/images/drawn_from.json keeps a digest of the sources that decide what they show.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { crc32, deflateSync } from "node:zlib";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
export const folder = join(root, "docs", "images");
const programs = join(root, "build", "default", "bin"),
    driver = join(root, "build", "default", "drivers", "lavapipe26");
const text = "the cat sat on the mat and the dog sat on the rug because it was warm";

// In `draw` are a program and its arguments, to which the file's name is added. In `from` are the files for a digest, and what
// in them counts: the code or the texts in quotes.
export const pictures = {
    page: { page: { width: 1440, height: 1340 } },
    heads: { draw: ["fovea", "lesson", "induction", "--png"] },
    lesson: { draw: ["fovea", "lesson", "2", "--png"] },
    map: { draw: ["fovea", "map", "--preset", "16k", "--size", "512x512", "--backend", "cpu", "--png"] },
    visualizer: { draw: ["fovea-visualizer", "--preset", "3", "--screenshot"] },
    "visualizer-flow": {
        draw: [
            "fovea-visualizer",
            "--preset",
            "3",
            "--show",
            "flow",
            "--pick",
            "step, journey",
            "--screenshot",
        ],
    },
    "visualizer-compare": {
        draw: ["fovea-visualizer", "--preset", "3", "--against", "2", "--compare", "side", "--screenshot"],
    },
    "visualizer-mask-light": {
        draw: ["fovea-visualizer", "--preset", "4", "--show", "mask", "--theme", "light", "--screenshot"],
    },
    "visualizer-lines-light": {
        draw: [
            "fovea-visualizer",
            "--preset",
            "7",
            "--text",
            text,
            "--show",
            "lines",
            "--show",
            "gpu",
            "--roof",
        ].concat(["--theme", "light", "--screenshot"]),
    },
    "visualizer-map": {
        draw: ["fovea-visualizer", "--preset", "long-16k", "--tiles", "cpu", "--exact", "--screenshot"],
    },
    "visualizer-layers-light": {
        model: "tests/visualizer/made_model.py",
        draw: ["fovea-visualizer", "MODEL", "--show", "layers", "--theme", "light", "--screenshot"],
    },
    denoise: {
        draw: [
            "fovea_embed_denoise",
            "--headless",
            "--frames",
            "12",
            "--width",
            "320",
            "--height",
            "192",
            "--reference",
            "2048",
            "--png",
        ],
        from: { of: "code", files: ["apps/embed/denoise"] },
    },
    flock: {
        draw: ["fovea_embed_flock", "--png"],
        from: { of: "code", files: ["apps/embed/flock/shaders"] },
    },
    "denoise-window": {
        window: [
            "fovea_embed_denoise",
            "--width",
            "120",
            "--height",
            "72",
            "--budget",
            "150",
            "--camera",
            "0.35",
        ].concat(["--click", "56,57", "--frames", "600"]),
        from: { of: "texts", files: ["apps/embed/denoise/window.cpp", "apps/embed/denoise/denoiser.hpp"] },
    },
};

// A digest of the code without comments, includes, spaces and names, or of the texts in quotes in it.
export function digest({ of, files }) {
    const names = files.flatMap((name) =>
        /\.\w+$/.test(name)
            ? [name]
            : readdirSync(join(root, name), { recursive: true })
                  .filter((file) => /\.\w+$/.test(file))
                  .map((file) => join(name, file)),
    );
    const hash = createHash("sha256");
    for (const name of names.sort()) {
        const code = readFileSync(join(root, name), "utf8")
            .replace(/\/\*[^]*?\*\//g, "")
            .replace(/^ *#include.*/gm, "")
            .replace(/(^|\s)\/\/.*/g, "$1");
        hash.update(
            of === "texts"
                ? (code.match(/"(\\.|[^"\\])*"/g) ?? []).join("\n")
                : code.replace(/[A-Za-z_]\w*|\s+/g, ""),
        );
    }
    return hash.digest("hex").slice(0, 16);
}

const drawnFrom = join(folder, "drawn_from.json");
export const keptDigests = () => JSON.parse(readFileSync(drawnFrom, "utf8"));

// Why `name` cannot be drawn here; null: it can.
export function lacking(name) {
    const [program] = pictures[name].draw ?? pictures[name].window ?? [];
    return program && !existsSync(join(programs, program)) ? `build/default/bin/${program} is missing` : null;
}

function run(program, given, options = {}) {
    const command = [...(existsSync(driver) ? [driver] : []), join(programs, program), ...given];
    const { status, stderr, error } = spawnSync(command[0], command.slice(1), {
        cwd: root,
        encoding: "utf8",
        ...options,
    });
    if (status !== 0) throw new Error(`${command.join(" ")}: ${error?.message ?? stderr}`);
}

// Draws one picture into `file`. `lab` (web/tests/support.mjs) opens the page.
export async function draw(name, file, { lab }) {
    const picture = pictures[name];
    if (picture.page) {
        const page = await lab.page("", { viewport: picture.page });
        await page.screenshot({ path: file });
        await page.close();
        return;
    }
    if (picture.window) return drawWindow(picture.window, file);
    const temporary = mkdtempSync(join(tmpdir(), "fovea-picture-"));
    try {
        const model = join(temporary, "model.safetensors");
        if (picture.model && spawnSync("python3", [join(root, picture.model), model]).status !== 0)
            throw new Error(`${picture.model} failed`);
        const [program, ...given] = picture.draw.map((word) => (word === "MODEL" ? model : word));
        run(program, [...given, file]);
    } finally {
        rmSync(temporary, { recursive: true });
    }
}

// The last picture on a virtual display while the program runs on it.
async function drawWindow([program, ...given], file) {
    const temporary = mkdtempSync(join(tmpdir(), "fovea-picture-")),
        display = `:${90 + (process.pid % 100)}`;
    const server = spawn("Xvfb", [display, "-screen", "0", "1290x456x24", "-fbdir", temporary], {
        stdio: "ignore",
    });
    const screen = join(temporary, "Xvfb_screen0");
    try {
        for (let tries = 0; !existsSync(screen) && tries < 100; ++tries)
            await new Promise((done) => setTimeout(done, 100));
        const command = [...(existsSync(driver) ? [driver] : []), join(programs, program), ...given];
        const child = spawn(command[0], command.slice(1), {
            env: { ...process.env, DISPLAY: display },
            stdio: "ignore",
        });
        let last;
        const ended = new Promise((done) => child.on("exit", done));
        const watch = setInterval(() => (last = readFileSync(screen)), 500);
        const status = await ended;
        clearInterval(watch);
        if (status !== 0 || !last) throw new Error(`${command.join(" ")} ended with ${status}`);
        writeFileSync(file, pngOf(last));
    } finally {
        server.kill();
        rmSync(temporary, { recursive: true });
    }
}

// A screen as X keeps it (xwd, 32 bits a pixel) as a png.
function pngOf(screen) {
    const word = (at) => screen.readUInt32BE(4 * at);
    const [start, width, height, stride] = [word(0) + 12 * word(19), word(4), word(5), word(12)];
    const rows = Buffer.alloc(height * (1 + 3 * width));
    for (let y = 0; y < height; ++y)
        for (let x = 0; x < width; ++x)
            for (let c = 0; c < 3; ++c)
                rows[y * (1 + 3 * width) + 1 + 3 * x + c] = screen[start + y * stride + 4 * x + 2 - c];
    const chunk = (kind, data) => {
        const body = Buffer.concat([Buffer.from(kind, "latin1"), data]),
            size = Buffer.alloc(4),
            sum = Buffer.alloc(4);
        size.writeUInt32BE(data.length);
        sum.writeUInt32BE(crc32(body));
        return Buffer.concat([size, body, sum]);
    };
    const head = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0]);
    head.writeUInt32BE(width, 0);
    head.writeUInt32BE(height, 4);
    return Buffer.concat([
        Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
        chunk("IHDR", head),
        chunk("IDAT", deflateSync(rows, { level: 9 })),
        chunk("IEND", Buffer.alloc(0)),
    ]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const { Lab, missing } = await import("../tests/support.mjs");
    const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(pictures);
    const unknown = wanted.filter((name) => !pictures[name]);
    if (unknown.length)
        throw new Error(`no picture ${unknown.join(", ")}; there are ${Object.keys(pictures).join(", ")}`);
    const needsPage = wanted.some((name) => pictures[name].page);
    if (needsPage && missing) throw new Error(missing);
    const lab = needsPage ? await Lab.open() : null,
        digests = existsSync(drawnFrom) ? keptDigests() : {};
    for (const name of wanted) {
        const reason = lacking(name);
        if (reason) throw new Error(reason);
        console.log(`docs/images/${name}.png`);
        await draw(name, join(folder, `${name}.png`), { lab });
        if (pictures[name].from) digests[name] = digest(pictures[name].from);
    }
    writeFileSync(drawnFrom, `${JSON.stringify(digests, null, 4)}\n`);
    await lab?.close();
}
