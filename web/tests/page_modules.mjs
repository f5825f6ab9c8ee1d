// Modules of the page, by their paths below web/src, as one module for node.
import { build } from "esbuild";
import { join } from "node:path";
import { bundleIn } from "../tools/texts.mjs";
import { root } from "./support.mjs";

export async function pageModules(...paths) {
    const { outputFiles } = await build({
        ...(await bundleIn("en")),
        stdin: {
            contents: paths.map((path) => `export * from "./${path}";`).join(""),
            resolveDir: join(root, "web", "src"),
            loader: "ts",
        },
        bundle: true,
        format: "esm",
        write: false,
        logLevel: "error",
    });
    return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}
