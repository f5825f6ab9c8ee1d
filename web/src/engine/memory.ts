// Memory of an engine's module. What it cannot give is a RangeError: 0 would be an address like any other.
interface Module {
    stringToNewUTF8(text: string): number;
    _malloc(size: number): number;
}

const none = (bytes: number) => new RangeError(`the browser has no memory for ${bytes} more bytes`);

// A size that 32 bits do not hold would be cut to them.
export function allocate(module: Module, bytes: number): number {
    const address = bytes < 2 ** 32 ? module._malloc(bytes || 1) >>> 0 : 0;
    if (!address) throw none(bytes);
    return address;
}

// The engine reads a text up to its first U+0000.
export function allocateText(module: Module, text: string): number {
    if (text.includes("\0"))
        throw new Error("the text has the character U+0000, which no text here may have");
    const address = module.stringToNewUTF8(text) >>> 0;
    if (!address) throw none(text.length);
    return address;
}
