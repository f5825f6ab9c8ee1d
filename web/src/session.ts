// Session files (.fovea): the page's whole state as JSON, shared with the desktop program. docs/files.md has the format.
import type { OwnTensors } from "./protocol.ts";
import { fromHash, urlKeys, type State } from "./state.ts";

const format = "fovea-session",
    version = 1;
const largestEmbedded = 64 * 1024 * 1024;

const toBase64 = (values: Float32Array) => {
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    let text = "";
    for (let i = 0; i < bytes.length; i += 0x8000)
        text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
    return btoa(text);
};

function fromBase64(text: string): Float32Array {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    if (bytes.length % 4) throw new Error("its float32 data is cut off");
    return new Float32Array(bytes.buffer);
}

export function sessionText(state: State, own: OwnTensors | null): string {
    const values: Record<string, unknown> = { level: state.level };
    for (const [field, key] of urlKeys) values[key] = state[field];
    const session: Record<string, unknown> = { format, version, state: values };
    if (own) {
        const { heads, kv, rows, keys, dim, dimV } = own.shape;
        const size = own.q.byteLength + own.k.byteLength + (own.v?.byteLength ?? 0);
        if (size > largestEmbedded)
            throw new Error(
                `a session holds tensors of up to ${largestEmbedded.toLocaleString("en")} bytes; these have ${size.toLocaleString("en")}`,
            );
        session.tensors = {
            q: { shape: [heads, rows, dim], f32: toBase64(own.q) },
            k: { shape: [kv, keys, dim], f32: toBase64(own.k) },
            ...(own.v ? { v: { shape: [kv, keys, dimV], f32: toBase64(own.v) } } : {}),
        };
    }
    return `${JSON.stringify(session, null, 2)}\n`;
}

interface Embedded {
    shape: [number, number, number];
    data: Float32Array;
}

function embedded(all: Record<string, unknown>, name: string): Embedded | null {
    const tensor = all[name] as { shape?: unknown; f32?: unknown; path?: unknown } | undefined;
    if (tensor === undefined) return null;
    if (typeof tensor?.path === "string")
        throw new Error(
            `${name} lies in the file ${tensor.path}, which a page cannot open by itself: open that file here`,
        );
    const { shape, f32 } = tensor ?? {};
    if (
        !Array.isArray(shape) ||
        shape.length !== 3 ||
        !shape.every((n) => Number.isInteger(n) && n > 0 && n <= 1 << 24)
    )
        throw new Error(`the shape of ${name} is not [heads, tokens, width]`);
    if (typeof f32 !== "string") throw new Error(`${name} has no data`);
    let data: Float32Array;
    try {
        data = fromBase64(f32);
    } catch (error) {
        throw new Error(`${name}: ${(error as Error).message}`);
    }
    if (data.length !== shape[0] * shape[1] * shape[2])
        throw new Error(
            `${name} has ${data.length.toLocaleString("en")} elements; its shape asks for ${shape.join(" × ")}`,
        );
    return { shape: shape as [number, number, number], data };
}

function tensorsOf(all: Record<string, unknown>): OwnTensors {
    const q = embedded(all, "q"),
        k = embedded(all, "k"),
        v = embedded(all, "v");
    if (!q || !k) throw new Error("its tensors lack q or k");
    const [heads, rows, dim] = q.shape,
        [kv, keys, keyDim] = k.shape;
    if (dim !== keyDim) throw new Error(`queries are ${dim} wide, keys ${keyDim}; they must be equal`);
    if (heads % kv) throw new Error(`${heads} query heads are no multiple of ${kv} key heads`);
    if (v && (v.shape[0] !== kv || v.shape[1] !== keys))
        throw new Error(
            `values are for ${v.shape[0]} heads and ${v.shape[1]} tokens, keys for ${kv} and ${keys}`,
        );
    return {
        shape: { heads, kv, rows, keys, dim, dimV: v?.shape[2] ?? 0 },
        q: q.data,
        k: k.data,
        v: v?.data ?? null,
    };
}

// Values that a state cannot have count as absent, as in a link; a file that is no session is refused.
export function parseSession(text: string): { state: State; own: OwnTensors | null } {
    let session: { format?: unknown; version?: unknown; state?: unknown; tensors?: unknown };
    try {
        session = JSON.parse(text);
    } catch {
        throw new Error("it is not a session file: no JSON");
    }
    if (session?.format !== format) throw new Error("it is not a session file of this program");
    if (session.version !== version)
        throw new Error(
            `it is of version ${JSON.stringify(session.version)}; this page reads version ${version}`,
        );
    const { state, tensors } = session;
    if (typeof state !== "object" || state === null || Array.isArray(state))
        throw new Error("its state is no object");
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(state))
        if (["string", "number", "boolean"].includes(typeof value))
            query.set(key, typeof value === "boolean" ? String(Number(value)) : String(value));
    const own =
        typeof tensors === "object" && tensors !== null
            ? tensorsOf(tensors as Record<string, unknown>)
            : null;
    return { state: fromHash(query.toString()), own };
}
