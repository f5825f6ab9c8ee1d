// Memory of an engine's module. What it cannot give is a RangeError.
interface Module {
    stringToNewUTF8(text: string): number;
    _malloc(size: number): number;
}

function given(address: number, bytes: number): number {
    if (!address) throw new RangeError(`the browser has no memory left for ${bytes} more bytes`);
    return address >>> 0;
}

// A size that 32 bits do not hold would be cut to them.
export const allocate = (module: Module, bytes: number) =>
    given(bytes < 2 ** 32 ? module._malloc(bytes || 1) : 0, bytes);

// The engine reads a text up to its first U+0000.
export function allocateText(module: Module, text: string): number {
    if (text.includes("\0")) throw new Error("the text has the character U+0000; leave it out");
    return given(module.stringToNewUTF8(text), text.length);
}
