// A reader's own tensors: dropped or chosen, named, and shown. Nothing is sent anywhere.
import type { App } from "./app.ts";
import { byId, input } from "./dom.ts";
import { escape, shapeText } from "./format.ts";
import type { FileTensor } from "./protocol.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true });
const maxBytes = 1 << 30;
const maxRows = 4096;
// What the dimensions of q, k and v mean, by their letters; a batch shows its first entry.
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

export function connectFiles(app: App): void {
    input("file").addEventListener("change", () => {
        const [file] = input("file").files ?? [];
        if (file) void open(app, file);
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
        const [file] = event.dataTransfer!.files;
        if (file) void open(app, file);
    });
}

async function open(app: App, file: File): Promise<void> {
    const sheet = byId("import");
    const refuse = (text: string) => {
        sheet.hidden = false;
        sheet.innerHTML = `<p class="notice" role="alert"><b>${escape(file.name)}</b> could not be opened: ${escape(text)}</p>`;
        sheet.scrollIntoView({ block: "nearest" });
    };
    try {
        if (file.size > maxBytes)
            throw new Error(
                `it has ${file.size.toLocaleString("en")} bytes; this page reads up to ${maxBytes.toLocaleString("en")}`,
            );
        if (/\.fovea$/i.test(file.name)) {
            await app.open(utf8.decode(await file.arrayBuffer()), file.name);
            sheet.hidden = true;
            return;
        }
        if (!/\.(safetensors|npy|npz)$/i.test(file.name))
            throw new Error("its name must end in .safetensors, .npy, .npz or .fovea");
        const tensors = await app.engine.ask("openFile", {
            name: file.name,
            bytes: new Uint8Array(await file.arrayBuffer()),
        });
        showSheet(app, file.name, tensors, refuse);
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
    sheet.innerHTML = `<div class="sheet"><h3>${escape(name)}</h3><p class="note">${tensors.length} tensor${tensors.length > 1 ? "s" : ""}. Which are which?</p><div class="knobs">${["q", "k", "v"].map((l) => `<label class="field"><span>${{ q: "Queries", k: "Keys", v: "Values" }[l]}</span><select id="own-${l}">${choices(l)}</select></label>`).join("")}<label class="field"><span>Dimensions</span><select id="own-layout"></select></label></div><p class="buttons"><button type="button" class="primary" id="own-show">Show attention</button><button type="button" class="quiet" id="own-close">Close</button><span class="note" id="own-note" role="status"></span></p></div>`;
    const chosen = (letter: string) => Number(byId<HTMLSelectElement>(`own-${letter}`).value);
    const fillLayouts = () => {
        const rank = tensors[chosen("q")]?.shape.length ?? 3;
        byId<HTMLSelectElement>("own-layout").replaceChildren(
            ...layouts.filter((l) => l.length === rank).map((l) => new Option(layoutNames[l], l)),
        );
    };
    fillLayouts();
    byId("own-q").addEventListener("change", fillLayouts);
    byId("own-close").addEventListener("click", () => {
        sheet.hidden = true;
        if (app.own) app.setLevel(app.state.level);
    });
    byId("own-show").addEventListener("click", () => void show(app, name, tensors, chosen));
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
        const load = async (letter: string): Promise<Heads | null> => {
            const index = chosen(letter);
            if (index < 0) return null;
            const { shape, name: tensorName } = tensors[index];
            if (shape.length !== layout.length)
                throw new Error(
                    `${tensorName} has ${shape.length} dimensions; the queries have ${layout.length}`,
                );
            return arrange(await app.engine.ask("fileTensor", { index }), shape, layout);
        };
        const q = await load("q"),
            k = await load("k"),
            v = await load("v");
        if (!q || !k) throw new Error("queries and keys are needed");
        for (const [what, { heads, rows, dim }] of Object.entries({
            queries: q,
            keys: k,
            ...(v && { values: v }),
        }))
            if (heads * rows * dim === 0)
                throw new Error(`the ${what} are empty: ${heads} heads, ${rows} tokens, ${dim} numbers each`);
        if (q.dim !== k.dim) throw new Error(`queries are ${q.dim} wide, keys ${k.dim}; they must be equal`);
        if (q.heads % k.heads)
            throw new Error(`${q.heads} query heads are no multiple of ${k.heads} key heads`);
        if (v && (v.rows !== k.rows || v.heads !== k.heads))
            throw new Error(
                `values are for ${v.heads} heads and ${v.rows} tokens, keys for ${k.heads} and ${k.rows}`,
            );
        if (Math.max(q.rows, k.rows) > maxRows)
            throw new Error(
                `${Math.max(q.rows, k.rows).toLocaleString("en")} tokens; a whole matrix is shown up to ${maxRows.toLocaleString("en")}`,
            );
        app.showTensors(
            {
                shape: {
                    heads: q.heads,
                    kv: k.heads,
                    rows: q.rows,
                    keys: k.rows,
                    dim: q.dim,
                    dimV: v?.dim ?? 0,
                },
                q: q.data,
                k: k.data,
                v: v?.data ?? null,
            },
            name,
        );
        app.onResult.add(function told(result) {
            app.onResult.delete(told);
            if (result.own) note.textContent = "shown above";
        });
        byId("work").scrollIntoView();
    } catch (error) {
        note.textContent = (error as Error).message;
    }
}
