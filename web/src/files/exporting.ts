// The shown matrix as a picture, a drawing, values or an array, and the state as a session file.
import type { App } from "../app/app.ts";
import { colorAt, css, inkOn } from "../page/colors.ts";
import { byId, saveFile } from "../page/dom.ts";
import { escape, fixed, withCommas } from "../page/format.ts";
import { isHidden } from "../matrix/matrix_content.ts";
import { toHash, withVisible } from "../page/state.ts";
import type { Workbench } from "../layer/stage.ts";

const largestEmbedded = 64 * 1024 * 1024;

// The page's whole state with the reader's tensors, as a .fovea file.
export async function sessionText(app: App): Promise<string> {
    const { own, state } = app,
        size = own ? own.q.byteLength + own.k.byteLength + (own.v?.byteLength ?? 0) : 0;
    if (size > largestEmbedded)
        throw new Error(
            `the tensors have ${withCommas(size)} bytes; the limit of a session is ${withCommas(largestEmbedded)}`,
        );
    return app.engine.ask("writeSession", { address: toHash(state) });
}

export function connectExport(app: App, workbench: Workbench): void {
    const menu = byId<HTMLDetailsElement>("export");
    const save = async (kind: string) => {
        const stage = workbench.stage();
        if (!stage || !app.result) return;
        const content = workbench.content(stage, app.result),
            name = `fovea-level${app.state.level}-${stage.id}`;
        if (kind === "session") return saveFile("session.fovea", "application/json", await sessionText(app));
        if (kind === "png")
            return workbench.matrix.element.toBlob((blob) => {
                if (blob) saveFile(`${name}.png`, "image/png", blob);
            });
        const saving = await app.during(import("./saving.ts"));
        if (kind === "csv") saveFile(`${name}.csv`, "text/csv", saving.csvOf(content));
        if (kind === "npy")
            saveFile(
                `${name}.npy`,
                "application/octet-stream",
                saving.npyOf(content.data, [content.rows, content.columns]),
            );
        if (kind === "svg")
            saveFile(
                `${name}.svg`,
                "image/svg+xml",
                saving.svgOf(content, workbench.matrix, { escape, fixed, colorAt, css, inkOn, isHidden }),
            );
        if (kind === "ipynb")
            saveFile(`${name}.ipynb`, "application/json", saving.notebookOf(withVisible(app.result)));
    };
    menu.addEventListener("click", (event) => {
        const kind = (event.target as Element).closest<HTMLElement>("[data-export]")?.dataset.export;
        if (!kind) return;
        menu.open = false;
        save(kind).catch((error: Error) => app.onTrouble(error.message, false));
    });
    addEventListener("click", (event) => {
        if (!menu.contains(event.target as Node)) menu.open = false;
    });
    menu.addEventListener("keydown", (event) => {
        if (event.key === "Escape") {
            menu.open = false;
            menu.querySelector("summary")!.focus();
        }
    });
}
