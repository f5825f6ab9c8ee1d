// The page's languages. A bundle has the texts of one language: the text itself replaces `texts.part.key`. So a text
// is in the script that shows it, and the tables of lessons are read in that language.
import { transformSync } from "esbuild";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { storiesOf, tablesOf } from "./tables.mjs";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url)))),
    tables = join(root, "lens/model/tables");

const fileOf = (language) => join(root, `web/src/texts/${language}.ts`);
export const languages = ["en", "de"];

/** Returns the texts of web/src/texts/LANGUAGE.ts. */
export async function textsOf(language) {
    const source = readFileSync(fileOf(language), "utf8"),
        { code } = transformSync(source, { loader: "ts", format: "esm" });
    return (await import(`data:text/javascript;base64,${Buffer.from(code).toString("base64")}`)).texts;
}

/** Returns esbuild's `define` and `plugins` for a bundle in this language. */
export async function bundleIn(language) {
    const define = {};
    for (const [part, rows] of Object.entries(await textsOf(language)))
        for (const [key, text] of Object.entries(rows)) define[`texts.${part}.${key}`] = JSON.stringify(text);
    const inLanguage = (make) => () => ({ contents: make(tables, language), loader: "ts" });
    const lessons = {
        name: "lessons in this language",
        setup(builder) {
            if (language !== "en")
                builder.onResolve({ filter: /texts\/said\.ts$/ }, () => ({ path: fileOf(language) }));
            builder.onLoad({ filter: /model_tables\.ts$/ }, inLanguage(tablesOf));
            builder.onLoad({ filter: /model_stories\.ts$/ }, inLanguage(storiesOf));
        },
    };
    return { define, plugins: [lessons] };
}
