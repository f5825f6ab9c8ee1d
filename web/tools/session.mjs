// Prints one stage of what a session file shows, as `fovea session` does, computed by the page's engine in node:
//   node web/tools/session.mjs FILE.fovea [--stage NAME] [--head N]
//   node web/tools/session.mjs --resident      each line of input is such words as a JSON list, each answer a line
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { askText, giveLearned, openEngine } from "./engine.mjs";

const learned = join(dirname(fileURLToPath(import.meta.url)), "../../lens/model/learned");

// The task that a session file names, "" where it names none, or is none: the engine says what is wrong with it.
function taskOf(session) {
    try {
        const { task } = JSON.parse(session).state;
        return /^\w+$/.test(task) ? task : "";
    } catch {
        return "";
    }
}

// Runs the command with these words: its standard output, standard error and exit code.
async function answer(args) {
    let err = "";
    try {
        const { values, positionals } = parseArgs({
            args,
            allowPositionals: true,
            options: { stage: { type: "string", default: "" }, head: { type: "string", default: "0" } },
        });
        if (positionals.length !== 1) throw new Error("FILE: give one session file (.fovea)");
        if (!/^\d{1,9}$/.test(values.head)) throw new Error(`--head: ${values.head} is no whole number`);
        const session = readFileSync(positionals[0]),
            engine = await openEngine();
        const weights = join(learned, `${taskOf(session)}.safetensors`);
        if (existsSync(weights)) giveLearned(engine, readFileSync(weights)); // the page fetches them
        const { text, notes } = JSON.parse(
            askText(engine, "webSessionStage", session, values.stage, Number(values.head)),
        );
        for (const note of notes) err += `fovea: note: ${note.text}\n`;
        return { code: 0, out: text, err };
    } catch (error) {
        return { code: 2, out: "", err: `${err}fovea: error: ${error.message}\n` };
    }
}

if (process.argv[2] === "--resident") {
    for await (const line of createInterface({ input: process.stdin }))
        console.log(JSON.stringify(await answer(JSON.parse(line))));
} else {
    const { code, out, err } = await answer(process.argv.slice(2));
    process.stderr.write(err);
    process.stdout.write(out);
    process.exitCode = code;
}
