// Makes the TypeScript declarations of the engine's C functions from their headers, so that both cannot drift apart.
import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const types = { int32_t: "number", uint32_t: "number", double: "number", void: "void" };

function typeOf(text) {
    const name = text.replace(/\bconst\b/g, "").trim();
    if (name.endsWith("*")) return "Pointer";
    if (!(name in types)) throw new Error(`web_engine.h: no TypeScript type for '${text}'`);
    return types[name];
}

// [{ name, result, parameters: [{ name, type }] }]
export function functionsOf(headerPath) {
    const header = readFileSync(headerPath, "utf8").replace(/\/\*[\s\S]*?\*\//g, "");
    const found = [...header.matchAll(/WEB_API\s+([\w\s*]+?)\s*\b(web\w+)\(([^)]*)\);/g)];
    return found.map(([, result, name, parameters]) => ({
        name,
        result: typeOf(result),
        parameters:
            parameters.trim() === "void"
                ? []
                : parameters.split(",").map((parameter) => {
                      const [, type, id] = parameter.trim().match(/^(.*?[\s*])(\w+)$/);
                      return { name: id, type: typeOf(type) };
                  }),
    }));
}

export function declarationsOf(headerPath, name) {
    const lines = functionsOf(headerPath).map(
        ({ name, result, parameters }) =>
            `    _${name}(${parameters.map((p) => `${p.name}: ${p.type}`).join(", ")}): ${result};`,
    );
    return `// Made from web/engine/${basename(headerPath)} by web/tools/abi.mjs.
/** An address in the engine's memory; 0 is null. */
export type Pointer = number;

export interface ${name} {
    HEAPU8: Uint8Array;
    HEAPF32: Float32Array;
    stringToNewUTF8(text: string): Pointer;
    UTF8ToString(address: Pointer): string;
    _malloc(size: number): Pointer;
    _free(address: Pointer): void;
${lines.join("\n")}
}
`;
}

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
// Numbers of the C boundary that scripts compare with.
const constants = ["FOVEA_BIND_WORKSPACE"];

/** Writes web/src/engine/fovea_abi.ts, which whoever bundles web/src/gpu/gpu.ts needs. */
export function writeConstants() {
    const header = readFileSync(join(root, "engine/include/fovea/fovea.h"), "utf8");
    const lines = constants.map((name) => {
        const value = new RegExp(`^\\s*${name} = (\\d+)`, "m").exec(header)?.[1];
        if (!value) throw new Error(`fovea.h: nothing gives ${name} a number`);
        return `export const ${name} = ${value};\n`;
    });
    writeFileSync(
        join(root, "web/src/engine/fovea_abi.ts"),
        `// Made from engine/include/fovea/fovea.h by web/tools/abi.mjs.\n${lines.join("")}`,
    );
}
