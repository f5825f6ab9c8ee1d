// The entries of a zip archive: what an npz is. Inflating is the browser's own work.

const maxInflatedBytes = 1 << 30;

async function inflate(bytes: Uint8Array<ArrayBuffer>, size: number): Promise<Uint8Array<ArrayBuffer>> {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const out = new Uint8Array(size);
    let at = 0;
    const reader = stream.getReader();
    for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        if (at + value.length > size) throw new Error("an entry is longer than the archive says");
        out.set(value, at);
        at += value.length;
    }
    if (at !== size) throw new Error(`an entry has ${at} bytes where the archive says ${size}`);
    return out;
}

export async function unzip(
    file: Uint8Array<ArrayBuffer>,
): Promise<{ name: string; bytes: Uint8Array<ArrayBuffer> }[]> {
    const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
    const need = (at: number, size: number) => {
        if (at < 0 || at + size > file.length)
            throw new Error(`the archive ends at byte ${file.length}, before byte ${at + size}`);
    };
    let end = file.length - 22;
    while (end >= 0 && end > file.length - 65558 && view.getUint32(end, true) !== 0x06054b50) --end;
    if (end < 0 || view.getUint32(end, true) !== 0x06054b50)
        throw new Error("this is no zip archive, or its end is missing");
    const count = view.getUint16(end + 10, true);
    let at = view.getUint32(end + 16, true),
        total = 0;
    const entries: { name: string; bytes: Uint8Array<ArrayBuffer> }[] = [];
    for (let i = 0; i < count; ++i) {
        need(at, 46);
        if (view.getUint32(at, true) !== 0x02014b50)
            throw new Error(`entry ${i} of the archive is damaged at byte ${at}`);
        const method = view.getUint16(at + 10, true),
            packed = view.getUint32(at + 20, true),
            size = view.getUint32(at + 24, true);
        const nameLength = view.getUint16(at + 28, true),
            start = view.getUint32(at + 42, true);
        need(at + 46, nameLength);
        const name = new TextDecoder().decode(file.subarray(at + 46, at + 46 + nameLength));
        if (packed === 0xffffffff || size === 0xffffffff)
            throw new Error(`${name}: archives over 4 GB are not read here`);
        total += size;
        if (total > maxInflatedBytes)
            throw new Error(`${name}: the archive would inflate to more than 1 GiB`);
        need(start, 30);
        const data = start + 30 + view.getUint16(start + 26, true) + view.getUint16(start + 28, true);
        need(data, packed);
        const bytes = file.subarray(data, data + packed);
        if (method !== 0 && method !== 8)
            throw new Error(`${name}: packed by method ${method}; only stored and deflated entries are read`);
        entries.push({
            name: name.replace(/\.npy$/, ""),
            bytes: method === 0 ? bytes : await inflate(bytes, size),
        });
        at += 46 + nameLength + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
    }
    return entries;
}
