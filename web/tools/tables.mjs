// Makes web/src/page/model_tables.ts from the tables of lens/model/tables: what a session is, the levels and the stages, for
// TypeScript. C++ reads the same files.
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const types = { integer: "number", number: "number", boolean: "boolean", list: "number[]" };

// Reads a table. The texts in folder/LANGUAGE/name.json replace its own at the same places.
const reader = (folder, language) => (name) => {
    const read = (...path) => JSON.parse(readFileSync(join(folder, ...path), "utf8")),
        words = join(language, `${name}.json`);
    return existsSync(join(folder, words))
        ? over(read(`${name}.json`), read(words), words)
        : read(`${name}.json`);
};
// Throws an error for an entry that the table lacks.
function over(table, words, where) {
    if (typeof words === "string") return words;
    for (const [key, text] of Object.entries(words)) {
        if (!(key in table)) throw new Error(`${where}: there is no ${key} to translate`);
        table[key] = over(table[key], text, `${where}, ${key}`);
    }
    return table;
}

/** web/src/lessons/model_stories.ts, loaded when a reader asks to be walked through a level. */
export function storiesOf(folder, language = "en") {
    return `// Made from lens/model/tables by web/tools/tables.mjs.
import type { State } from "../page/model_tables.ts";

export interface Step {
    title: string;
    text: string;
    show: Partial<State>; // over the level's own
    mark: [number, number, number, number]; // first row, first column, last row, last column
    try: string;
    keys?: string[]; // that do it in the matrix, or in the control \`on\`
    on?: string;
    type?: string; // into that control
    done: Partial<Record<"is" | "not" | "least" | "most", Partial<State>>>;
    see: string;
}
/** Of each level in its order, and of each task by name. */
export const stories = ${JSON.stringify(reader(folder, language)("stories"))} as {
    levels: Step[][];
    tasks: Record<string, Step[]>;
};
`;
}

export function tablesOf(folder, language = "en") {
    const read = reader(folder, language);
    const { version, keys } = read("session"),
        stages = read("stages"),
        levels = read("levels"),
        tasks = read("learned")
            .filter(({ lead }) => lead) // levels that the page has text for
            .map(({ task, name, title, lead, session }) => ({
                ...{ task, name, title, lead, session },
                bytes: statSync(join(folder, "..", "learned", `${task}.safetensors`)).size,
            }));
    const fields = keys.map(
        ({ key, type, about }) => `    /** ${about} */\n    ${key}: ${types[type] ?? "string"};`,
    );
    const shown = (value) => JSON.stringify(value, null, 4);
    return `// Made from lens/model/tables by web/tools/tables.mjs.

/** A session without its tensors. */
export interface State {
${fields.join("\n")}
}
export const version = ${version};
export const defaults: State = ${shown(Object.fromEntries(keys.map((row) => [row.key, row.default])))};
/** Numbers in an address. */
export const limits: Partial<Record<keyof State, [number, number]>> = ${shown(
        Object.fromEntries(keys.filter((row) => "low" in row).map((row) => [row.key, [row.low, row.high]])),
    )};
/** What a reader chooses from. */
export const choices: Partial<Record<keyof State, string[]>> = ${shown(
        Object.fromEntries(keys.filter((row) => row.choices).map((row) => [row.key, row.choices])),
    )};
export interface Level {
    name: string;
    term: string;
    title: string;
    lead: string; // HTML
    lessons: string[]; // worked examples with these numbers
    shape: { heads: number; all_heads_width?: number; spread?: number };
    session: Partial<State>; // what differs from the defaults
}
export const levels: Level[] = ${shown(levels.map(({ shape: { heads, all_heads_width, spread }, ...row }) => ({ ...row, shape: { heads, all_heads_width, spread } })))};
export interface Task {
    task: string;
    name: string;
    title: string;
    lead: string; // HTML
    session: Partial<State>; // what differs from the level's own
    bytes: number; // of its weights
}
/** What the library has a trained model for; the first is what a new reader sees. */
export const tasks: Task[] = ${shown(tasks)};
export interface StageText {
    id: string;
    label: string;
    formula: string;
    about: string;
    signed: boolean; // values on both sides of 0: a diverging colormap
    pairs?: boolean; // rows are queries, columns keys
    sums?: boolean; // sums of rows mean something
    nearest?: string[]; // shown where a model has no such stage: the first that it has
}
/** In the order of the computation. */
export const stageTable: StageText[] = ${shown(stages.map(({ transposed: _, ...row }) => row))};
`;
}
