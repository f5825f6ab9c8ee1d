// For esbuild: a script that imports a .css file has its text, minified.
import { transformSync } from "esbuild";
import { readFileSync } from "node:fs";

export const cssAsText = {
    name: "css as text",
    setup(builder) {
        builder.onLoad({ filter: /\.css$/ }, ({ path }) => ({
            contents: transformSync(readFileSync(path, "utf8"), { loader: "css", minify: true }).code.trim(),
            loader: "text",
        }));
    },
};
