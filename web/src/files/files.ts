// A reader's own tensors: dropped or chosen, named, and shown. Nothing is sent anywhere.
import type { App } from "../app/app.ts";
import { byId, input } from "../page/dom.ts";
import { escape, shapeText, withCommas } from "../page/format.ts";
import { isModel, type ModelDoor } from "../model/model_door.ts";
import type { FileTensor } from "../engine/protocol.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }); // the engine judges a mark
const maxBytes = 1 << 30;
const maxRows = 4096; // limit for a whole matrix
const mostRows = 1 << 20; // limit for a map
// The dimensions of q, k and v, by their letters; of a batch the first entry is shown.
const layouts = ["BHND", "BNHD", "HND", "NHD", "ND"] as const;
type Layout = (typeof layouts)[number];
const layoutNames: Record<Layout, string> = {
    BHND: "batch, heads, tokens, width",
    BNHD: "batch, tokens, heads, width",
    HND: "heads, tokens, width",
    NHD: "tokens, heads, width",
    ND: "tokens, width (one head)",
};

interface Heads {
    heads: number;
    rows: number;
    dim: number;
    data: Float32Array;
}

// [heads, tokens, width], packed.
function arrange(values: Float32Array, shape: number[], layout: Layout): Heads {
    const size = (letter: string) => {
        const at = layout.indexOf(letter);
        return at < 0 ? 1 : shape[at];
    };
    const heads = size("H"),
        rows = size("N"),
        dim = size("D");
    if (!layout.includes("NH")) return { heads, rows, dim, data: values.slice(0, heads * rows * dim) };
    const data = new Float32Array(heads * rows * dim);
    for (let r = 0; r < rows; ++r)
        for (let h = 0; h < heads; ++h)
            data.set(values.subarray((r * heads + h) * dim, (r * heads + h + 1) * dim), (h * rows + r) * dim);
    return { heads, rows, dim, data };
}

// The tensor whose name says most clearly that it is q, k or v.
function guess(tensors: FileTensor[], letter: string): number {
    const words = { q: ["q", "query", "queries"], k: ["k", "key", "keys"], v: ["v", "value", "values"] }[
        letter
    ]!;
    const score = ({ name, shape }: FileTensor) => {
        const last = name
            .toLowerCase()
            .split(/[^a-z]+/)
            .filter(Boolean);
        return (
            (words.some((w) => last.includes(w)) ? 2 : 0) +
            (words.includes(name.toLowerCase()) ? 1 : 0) -
            (shape.length < 2 || shape.length > 4 ? 4 : 0)
        );
    };
    const best = tensors.map((t, index) => ({ index, score: score(t) })).sort((a, b) => b.score - a.score)[0];
    return best && best.score > 0 ? best.index : -1;
}

// Models often make q, k and v in one product: [tokens, 3 x width] (c_attn, qkv), a third of each row for each.
const fusedOrders = ["qkv", "qvk", "kqv", "kvq", "vqk", "vkq"];
const mayBeFused = ({ shape }: FileTensor) =>
    (shape.length === 2 || shape.length === 3) && shape.at(-1)! % 3 === 0;
const looksFused = (tensor: FileTensor) =>
    mayBeFused(tensor) && /c_attn|qkv|in_proj|fused/i.test(tensor.name);

// The part of a fused tensor that holds `letter`, its first batch, cut into heads.
function cut(values: Float32Array, shape: number[], order: string, letter: string, heads: number): Heads {
    const width = shape.at(-1)! / 3,
        rows = shape.at(-2)!;
    if (!Number.isInteger(width))
        throw new Error(`the tensor is ${shape.at(-1)} wide; it must be a multiple of 3, for q, k and v`);
    if (!Number.isInteger(heads) || heads < 1 || width % heads)
        throw new Error(`heads is ${heads}; it must divide the width, ${width}`);
    const first = order.indexOf(letter) * width,
        part = new Float32Array(rows * width);
    for (let r = 0; r < rows; ++r)
        part.set(values.subarray(3 * r * width + first, 3 * r * width + first + width), r * width);
    return arrange(part, [rows, heads, width / heads], "NHD");
}

// The files of a folder that was dropped, not those of folders within it.
async function filesOf(entries: FileSystemEntry[]): Promise<File[]> {
    const fileOf = (entry: FileSystemEntry) =>
        new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    const found: File[] = [];
    for (const entry of entries) {
        if (entry.isFile) {
            found.push(await fileOf(entry));
            continue;
        }
        const reader = (entry as FileSystemDirectoryEntry).createReader();
        for (;;) {
            // A browser lists a hundred at a time.
            const some = await new Promise<FileSystemEntry[]>((resolve, reject) =>
                reader.readEntries(resolve, reject),
            );
            if (!some.length) break;
            for (const one of some) if (one.isFile) found.push(await fileOf(one));
        }
    }
    return found;
}

export function connectFiles(app: App, models: ModelDoor): void {
    const take = (files: File[]) => (isModel(files) ? models.open(files) : app.during(open(app, files)));
    input("file").addEventListener("change", () => {
        void take([...(input("file").files ?? [])]);
        input("file").value = "";
    });
    let depth = 0;
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const cover = (on: boolean) => {
        byId("dropping").hidden = !on;
    };
    addEventListener("dragenter", (event) => {
        if (hasFiles(event)) {
            ++depth;
            cover(true);
        }
    });
    addEventListener("dragleave", () => {
        if (--depth <= 0) {
            depth = 0;
            cover(false);
        }
    });
    addEventListener("dragover", (event) => {
        if (hasFiles(event)) event.preventDefault();
    });
    addEventListener("drop", (event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        depth = 0;
        cover(false);
        const entries = [...event.dataTransfer!.items]
            .map((item) => item.webkitGetAsEntry?.())
            .filter((entry) => entry != null);
        const files = [...event.dataTransfer!.files];
        if (entries.some(({ isDirectory }) => isDirectory)) void filesOf(entries).then(take);
        else void take(files);
    });
}

async function open(app: App, files: File[]): Promise<void> {
    if (!files.length) return;
    const sheet = byId("import"),
        [file] = files,
        name = files.map((f) => f.name).join(", ");
    // The engine holds one file: the sheet of the last one must not name tensors of this one.
    sheet.hidden = true;
    sheet.replaceChildren();
    const refuse = (text: string) => {
        sheet.hidden = false;
        sheet.innerHTML = `<p class="notice" role="alert"><b>${escape(name)}</b> could not be opened: ${escape(text)}</p>`;
        sheet.scrollIntoView({ block: "nearest" });
    };
    try {
        const bytes = files.reduce((sum, { size }) => sum + size, 0);
        if (bytes > maxBytes)
            throw new Error(
                `the file has ${withCommas(bytes)} bytes; the limit of this page is ${withCommas(maxBytes)}`,
            );
        if (files.length > 1 && !files.every((f) => /\.npy$/i.test(f.name)))
            throw new Error("several files at once must all be .npy, one tensor each");
        if (/\.fovea$/i.test(name)) {
            await app.open(utf8.decode(await file.arrayBuffer()), name);
            sheet.hidden = true;
            return;
        }
        if (!/\.(safetensors|npy|npz)$/i.test(name))
            throw new Error("the file's name must end in .safetensors, .npy, .npz or .fovea");
        const read = async (f: File) => ({ name: f.name, bytes: new Uint8Array(await f.arrayBuffer()) });
        const tensors = await app.engine.ask("openFiles", { files: await Promise.all(files.map(read)) });
        showSheet(app, name, tensors, refuse);
    } catch (error) {
        refuse((error as Error).message);
    }
}

function showSheet(app: App, name: string, tensors: FileTensor[], refuse: (text: string) => void): void {
    const sheet = byId("import");
    const usable = tensors.filter((t) => t.shape.length >= 2 && t.shape.length <= 4);
    if (usable.length === 0) {
        refuse(`it holds ${tensors.length} tensors, but none of 2 to 4 dimensions`);
        return;
    }
    const choices = (letter: string) =>
        `<option value="-1">${letter === "v" ? "none" : "choose"}</option>${tensors.map((t, i) => `<option value="${i}"${guess(tensors, letter) === i ? " selected" : ""}>${escape(t.name)} (${shapeText(t.shape)}, ${t.type})</option>`).join("")}`;
    sheet.hidden = false;
    sheet.innerHTML = `<div class="sheet"><h3>${escape(name)}</h3><p class="note">${tensors.length} tensor${tensors.length > 1 ? "s" : ""}. Which are which?</p><div class="knobs">${["q", "k", "v"].map((l) => `<label class="field"><span>${{ q: "Queries", k: "Keys", v: "Values" }[l]}</span><select id="own-${l}">${choices(l)}</select></label>`).join("")}<label class="field"><span>Dimensions</span><select id="own-layout"></select></label><label class="field"><span>q, k and v in one tensor</span><select id="own-fused"><option value="">no, one tensor each</option>${fusedOrders.map((o) => `<option value="${o}">in the order ${[...o].join(", ")}</option>`).join("")}</select></label><label class="field" id="own-heads-box"><span>Heads in it</span><input id="own-heads" type="number" min="1" max="1024" step="1" value="1"></label></div><p class="buttons"><button type="button" class="primary" id="own-show">Show attention</button><button type="button" class="quiet" id="own-close">Close</button><span class="note" id="own-note" role="status"></span></p></div>`;
    const chosen = (letter: string) => Number(byId<HTMLSelectElement>(`own-${letter}`).value);
    const fillLayouts = () => {
        const rank = tensors[chosen("q")]?.shape.length ?? 3;
        byId<HTMLSelectElement>("own-layout").replaceChildren(
            ...layouts.filter((l) => l.length === rank).map((l) => new Option(layoutNames[l], l)),
        );
    };
    const fused = byId<HTMLSelectElement>("own-fused");
    const showFused = () => {
        const on = fused.value !== "";
        byId("own-heads-box").hidden = !on;
        for (const id of ["own-k", "own-v", "own-layout"]) byId<HTMLSelectElement>(id).disabled = on;
    };
    const whole = tensors.findIndex(looksFused);
    if (whole >= 0 && chosen("k") < 0) {
        byId<HTMLSelectElement>("own-q").value = String(whole);
        fused.value = "qkv";
    }
    fillLayouts();
    showFused();
    fused.addEventListener("change", showFused);
    byId("own-q").addEventListener("change", fillLayouts);
    byId("own-close").addEventListener("click", () => {
        sheet.hidden = true;
        if (app.own) app.setLevel(app.state.level);
    });
    byId("own-show").addEventListener("click", () => void app.during(show(app, name, tensors, chosen)));
    sheet.scrollIntoView({ block: "nearest" });
}

async function show(
    app: App,
    name: string,
    tensors: FileTensor[],
    chosen: (letter: string) => number,
): Promise<void> {
    const note = byId("own-note");
    try {
        const layout = byId<HTMLSelectElement>("own-layout").value as Layout;
        const order = byId<HTMLSelectElement>("own-fused").value;
        const load = async (letter: string): Promise<Heads | null> => {
            const index = chosen(order ? "q" : letter);
            if (index < 0) return null;
            if (order) {
                const tensor = tensors[index];
                if (!mayBeFused(tensor))
                    throw new Error(
                        `${tensor.name} is ${shapeText(tensor.shape)}; a fused tensor of q, k and v must be [tokens, 3 × width]`,
                    );
                const values = await app.engine.ask("fileTensor", { index });
                return cut(values, tensor.shape, order, letter, input("own-heads").valueAsNumber);
            }
            const { shape, name: tensorName } = tensors[index];
            if (shape.length !== layout.length)
                throw new Error(
                    `${tensorName} has ${shape.length} dimensions; it must have ${layout.length}, as the queries do`,
                );
            return arrange(await app.engine.ask("fileTensor", { index }), shape, layout);
        };
        const q = await load("q"),
            k = await load("k"),
            v = await load("v");
        if (!q || !k) throw new Error("choose tensors for queries and keys; both are needed");
        for (const [what, { heads, rows, dim }] of Object.entries({
            queries: q,
            keys: k,
            ...(v && { values: v }),
        }))
            if (heads * rows * dim === 0)
                throw new Error(
                    `the ${what} have ${heads} heads, ${rows} tokens and ${dim} elements each; none may be 0`,
                );
        if (q.dim !== k.dim)
            throw new Error(`queries are ${q.dim} wide and keys ${k.dim}; they must be equal`);
        if (q.heads % k.heads)
            throw new Error(
                `there are ${q.heads} query heads and ${k.heads} key heads; the first must be a multiple of the second`,
            );
        if (v && (v.rows !== k.rows || v.heads !== k.heads))
            throw new Error(
                `values have ${v.heads} heads and ${v.rows} tokens, keys ${k.heads} and ${k.rows}; both must be equal`,
            );
        const longest = Math.max(q.rows, k.rows);
        if (longest > mostRows)
            throw new Error(
                `the tensors have ${withCommas(longest)} tokens; the limit of a map is ${withCommas(mostRows)}`,
            );
        const { heads, rows, dim } = q,
            shape = { heads, kv: k.heads, rows, keys: k.rows, dim, dimV: v?.dim ?? 0 },
            own = { shape, q: q.data, k: k.data, v: v?.data ?? null };
        if (longest > maxRows) {
            note.textContent = `A whole matrix is shown up to ${withCommas(maxRows)} tokens: its map is under Deep zoom.`;
            app.showLong({ ...own, v: null }, name);
            return;
        }
        app.showTensors(own, name);
        app.onResult.add(function told(result) {
            app.onResult.delete(told);
            if (result.own) note.textContent = "shown above";
        });
        byId("work").scrollIntoView();
    } catch (error) {
        note.textContent = (error as Error).message;
    }
}
