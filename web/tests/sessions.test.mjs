// Session files as the page's engine computes them: the same text as `fovea session`. And addresses, which TypeScript writes
// while the reader types, as the model writes them.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { before, test } from "node:test";
import { join } from "node:path";
import { askText, openEngine } from "../tools/engine.mjs";
import { pageModules } from "./page_modules.mjs";
import { root } from "./support.mjs";

const folder = join(root, "tests", "sessions"),
    files = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".fovea")) : [];
let engine, toHash;

before(async () => {
    engine = await openEngine();
    ({ toHash } = await pageModules("page/state.ts"));
});

const read = (name) => readFileSync(join(folder, name), "utf8");
test("there are session files to read", () => assert.ok(files.length >= 40, `${files.length} files`));

test("each file's stages are those of every other program: the same letters", { timeout: 600_000 }, () => {
    execFileSync(
        "python3",
        [
            ...[join(folder, "run.py"), "--resident", process.execPath],
            ...[join(root, "web", "tools", "session.mjs"), "--resident"],
        ],
        { stdio: ["ignore", "pipe", "inherit"] },
    );
});

test("an address is written as the model writes it, and read back says the same", () => {
    let count = 0;
    for (const name of files) {
        let answer;
        try {
            answer = JSON.parse(askText(engine, "webReadSession", read(name), 1));
        } catch {
            continue; // rejected: the files of tests/sessions say so
        }
        ++count;
        const { state, desktop } = answer.session,
            ours = toHash({ ...state, ...desktop });
        assert.equal(ours, `#${askText(engine, "webWriteAddress", ours)}`, name);
        const again = JSON.parse(askText(engine, "webReadSession", ours, 0)).session;
        assert.deepEqual([again.state, again.desktop], [state, desktop], name);
    }
    assert.ok(count >= 30, `${count} files`);
});
