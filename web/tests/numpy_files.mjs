// npy files, and npz files: npy files deflated in a zip archive.
import { crc32, deflateRawSync } from "node:zlib";

export const npyOf = (shape, values, descr = "<f4") => {
    let header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape.join(", ")},), }`;
    header = header.padEnd(64 * Math.ceil((header.length + 11) / 64) - 11) + "\n";
    return Buffer.concat([
        Buffer.from([0x93, 78, 85, 77, 80, 89, 1, 0, header.length & 255, header.length >> 8]),
        Buffer.from(header, "latin1"),
        Buffer.from(Float32Array.from(values).buffer),
    ]);
};

// `files`: the bytes of each npy file by the name of its array.
export function npzOf(files) {
    const locals = [],
        centrals = [];
    let at = 0;
    for (const [name, data] of Object.entries(files)) {
        const packed = deflateRawSync(data),
            file = Buffer.from(`${name}.npy`);
        const local = Buffer.alloc(30),
            central = Buffer.alloc(46);
        local.writeUInt32LE(0x04034b50, 0);
        local.writeUInt16LE(8, 8);
        local.writeUInt32LE(crc32(data), 14);
        local.writeUInt32LE(packed.length, 18);
        local.writeUInt32LE(data.length, 22);
        local.writeUInt16LE(file.length, 26);
        central.writeUInt32LE(0x02014b50, 0);
        central.writeUInt16LE(8, 10);
        central.writeUInt32LE(crc32(data), 16);
        central.writeUInt32LE(packed.length, 20);
        central.writeUInt32LE(data.length, 24);
        central.writeUInt16LE(file.length, 28);
        central.writeUInt32LE(at, 42);
        locals.push(local, file, packed);
        centrals.push(central, file);
        at += 30 + file.length + packed.length;
    }
    const directory = Buffer.concat(centrals),
        end = Buffer.alloc(22);
    end.writeUInt32LE(0x06054b50, 0);
    end.writeUInt16LE(Object.keys(files).length, 8);
    end.writeUInt16LE(Object.keys(files).length, 10);
    end.writeUInt32LE(directory.length, 12);
    end.writeUInt32LE(at, 16);
    return Buffer.concat([...locals, directory, end]);
}
