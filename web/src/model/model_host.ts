// Services of the page for the module that runs published models: bytes of files, progress, and the Unicode
// properties of texts, which browsers know. The other side is web/engine/browser_host.cpp.
import { allocate } from "../engine/memory.ts";
import type { ModelModule } from "./model_abi.ts";

export interface ReadableFile {
    size: number;
    // Bytes [first, first + size); null where the file cannot be read any more.
    read(first: number, size: number): Uint8Array | null;
}

const classes: [number, RegExp][] = [
    [1, /\p{White_Space}/u],
    [2, /\p{P}/u],
    [4, /\p{M}/u],
    [8, /\p{Mn}/u],
    [16, /\p{N}/u],
    [32, /[\p{L}\p{M}\p{Nd}\p{Pc}]/u],
    [64, /\p{C}/u],
];
const forms = ["NFC", "NFD", "NFKC", "NFKD"];

// `module` is there once the module's own code runs.
export function makeHost(module: () => ModelModule, progress: (share: number) => void) {
    const files: ReadableFile[] = [];
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true }), // each byte counts
        encoder = new TextEncoder();
    // Memory that threads share cannot be decoded in place.
    const textAt = (address: number, size: number) =>
        decoder.decode(module().HEAPU8.slice(address, address + size));
    const give = (count: number, bytes: Uint8Array) => {
        const address = allocate(module(), 4 + bytes.length);
        new DataView(module().HEAPU8.buffer).setUint32(address, count, true);
        module().HEAPU8.set(bytes, address + 4);
        return address;
    };
    const giveText = (text: string) => {
        const bytes = encoder.encode(text);
        return give(bytes.length, bytes);
    };
    const giveNumbers = (numbers: number[], of: number) =>
        give(numbers.length / of, new Uint8Array(Uint32Array.from(numbers).buffer));
    // Places in a text's UTF-8 for rising places in its UTF-16.
    const placesIn = (text: string) => {
        let at = 0,
            bytes = 0;
        return (to: number) => {
            bytes += encoder.encode(text.slice(at, to)).length;
            at = to;
            return bytes;
        };
    };
    return {
        files,
        read(index: number, first: number, size: number, out: number): number {
            const bytes = files[index].read(first, size);
            if (!bytes || bytes.length !== size) return 0;
            module().HEAPU8.set(bytes, out);
            return 1;
        },
        progress,
        classes(first: number, out: number): void {
            const heap = module().HEAPU8;
            for (let n = 0; n < 256; ++n) {
                const surrogate = first + n >= 0xd800 && first + n < 0xe000,
                    letter = surrogate ? "" : String.fromCodePoint(first + n);
                // An unassigned code point is not "other": \p{Cn} is left out.
                heap[out + n] = surrogate
                    ? 64
                    : classes.reduce((bits, [bit, of]) => (of.test(letter) ? bits | bit : bits), 0) &
                      (/\p{Cn}/u.test(letter) ? ~64 : ~0);
            }
        },
        lower: (character: number) =>
            giveText(character < 0x110000 ? String.fromCodePoint(character).toLowerCase() : ""),
        normal: (form: number, address: number, size: number) =>
            giveText(textAt(address, size).normalize(forms[form])),
        graphemes(address: number, size: number): number {
            const text = textAt(address, size),
                place = placesIn(text),
                ends: number[] = [];
            for (const { index, segment } of new Intl.Segmenter(undefined, {
                granularity: "grapheme",
            }).segment(text))
                ends.push(place(index + segment.length));
            return giveNumbers(ends, 1);
        },
    };
}
export type ModelHost = ReturnType<typeof makeHost>;
