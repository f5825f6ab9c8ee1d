// The entries of a zip archive: what an npz is. Inflating is the browser's own work. It rejects what
// lens/files/zip_archive.cpp rejects, so that all programs agree on damaged files.

const maxInflatedBytes = 1 << 30;
const mostInflated = 1032; // bytes that deflate makes of one, at most
const knownFlags = 0x80e; // hints for packing, sizes that follow the data, a name in UTF-8
const sizesFollow = 8;
const mark32 = 0xffffffff; // the number is in a zip64 field
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
    for (let bit = 0; bit < 8; ++bit) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1;
    return byte;
});
function crcOf(bytes: Uint8Array): number {
    let crc = ~0;
    for (const byte of bytes) crc = crcTable[(crc ^ byte) & 255] ^ (crc >>> 8);
    return ~crc >>> 0;
}

async function inflate(bytes: Uint8Array<ArrayBuffer>, size: number): Promise<Uint8Array<ArrayBuffer>> {
    if (size > mostInflated * bytes.length)
        throw new Error(`the archive is damaged: ${bytes.length} packed bytes cannot become ${size}`);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const out = new Uint8Array(size);
    let at = 0;
    const reader = stream.getReader();
    for (;;) {
        const { done, value } = await reader.read().catch(() => {
            throw new Error("the packed bytes are damaged");
        });
        if (done) break;
        if (at + value.length > size) {
            void reader.cancel().catch(() => {});
            throw new Error("the entry is longer than the archive says");
        }
        out.set(value, at);
        at += value.length;
    }
    if (at !== size) throw new Error(`the entry has ${at} bytes, and the archive says ${size}`);
    return out;
}

export async function unzip(
    file: Uint8Array<ArrayBuffer>,
): Promise<{ name: string; bytes: Uint8Array<ArrayBuffer> }[]> {
    const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
    const u16 = (at: number) => view.getUint16(at, true),
        u32 = (at: number) => view.getUint32(at, true);
    const nameAt = (at: number, size: number) => utf8.decode(file.subarray(at, at + size));
    // The end record's comment reaches the end of the file.
    let end = file.length - 22;
    const first = Math.max(0, end - 0xffff);
    while (end >= first && (u32(end) !== 0x06054b50 || u16(end + 20) !== file.length - 22 - end)) --end;
    if (end < first) throw new Error("this is not a zip archive, or its end is missing");
    const count = u16(end + 10),
        begin = u32(end + 16);
    if (begin === mark32 || count === 0xffff) throw new Error("archives over 4 GB are not supported");
    if (begin + u32(end + 12) > end || u32(end + 4) || u16(end + 8) !== count)
        throw new Error(`the archive's directory is damaged at byte ${end}`);
    const names = new Set<string>(),
        places: { name: string; from: number; to: number }[] = [];
    const entries: { name: string; bytes: Uint8Array<ArrayBuffer> }[] = [];
    let at = begin,
        total = 0;
    for (let i = 0; i < count; ++i) {
        if (at + 46 > end || u32(at) !== 0x02014b50 || at + 46 + u16(at + 28) > end)
            throw new Error(`entry ${i} of the archive is damaged at byte ${at}`);
        const [flags, method, crc, packed, size, start] = [
            u16(at + 8),
            u16(at + 10),
            u32(at + 16),
            u32(at + 20),
            u32(at + 24),
            u32(at + 42),
        ];
        let name: string;
        try {
            name = nameAt(at + 46, u16(at + 28));
        } catch {
            throw new Error(`the name of entry ${i} is not valid UTF-8`);
        }
        const refuse = (why: string): never => {
            throw new Error(`${name}: ${why}`);
        };
        if (names.has(name)) refuse("the archive has two entries of this name");
        names.add(name);
        if ([packed, size, start].includes(mark32)) refuse("archives over 4 GB are not supported");
        if (flags & ~knownFlags) refuse(flags & 1 ? "it is encrypted" : "it has unknown flags");
        if (method !== 0 && method !== 8)
            refuse(`packed by method ${method}; only stored and deflated entries are read`);
        total += size;
        if (total > maxInflatedBytes) refuse("the archive would inflate to more than 1 GiB");
        if (start + 30 > begin || u32(start) !== 0x04034b50) refuse(`there is no entry at byte ${start}`);
        const named = u16(start + 26),
            data = start + 30 + named + u16(start + 28);
        if (data + packed > begin)
            refuse(`the archive's entries end at byte ${begin}, before byte ${data + packed}`);
        const said = (own: number, local: number) => local === own || local === mark32; // zip64, which may be small
        if (
            named !== u16(at + 28) ||
            !file.subarray(at + 46, at + 46 + named).every((byte, n) => byte === file[start + 30 + n]) ||
            u16(start + 8) !== method ||
            (!(flags & sizesFollow) &&
                (u32(start + 14) !== crc ||
                    !said(packed, u32(start + 18)) ||
                    !said(size, u32(start + 22)))) ||
            (method === 0 && packed !== size)
        )
            refuse("the archive's directory says otherwise than the entry");
        places.push({ name, from: start, to: data + packed });
        let bytes = file.subarray(data, data + packed);
        if (method !== 0)
            try {
                bytes = await inflate(bytes, size);
            } catch (error) {
                refuse((error as Error).message);
            }
        if (crcOf(bytes) !== crc) refuse("the checksum is wrong");
        entries.push({ name: name.replace(/\.npy$/, ""), bytes });
        at += 46 + u16(at + 28) + u16(at + 30) + u16(at + 32);
    }
    places.sort((a, b) => a.from - b.from);
    for (let i = 1; i < places.length; ++i)
        if (places[i].from < places[i - 1].to)
            throw new Error(`${places[i].name}: the entry overlaps another one`);
    return entries;
}
