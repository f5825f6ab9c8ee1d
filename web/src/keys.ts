// One table binds the keys and documents them. Letters act while the matrix or nothing that takes text has the focus.
import type { App } from "./app.ts";
import { byId } from "./dom.ts";
import type { Workbench } from "./stage.ts";

interface Binding { keys: string[]; shown: string; does: string; run(event: KeyboardEvent): void }

export function connectKeys(app: App, workbench: Workbench): void {
    const matrix = workbench.matrix;
    const head = (by: number) => app.change({ head: (app.state.head + by + app.headCount) % app.headCount });
    const bindings: Binding[] = [
        { keys: ["PageDown"], shown: "Page down", does: "next stage", run: () => workbench.stepStage(1) },
        { keys: ["PageUp"], shown: "Page up", does: "previous stage", run: () => workbench.stepStage(-1) },
        { keys: ["]"], shown: "]", does: "next head", run: () => head(1) },
        { keys: ["["], shown: "[", does: "previous head", run: () => head(-1) },
        { keys: ["m"], shown: "M", does: "causal mask on or off", run: () => app.change({ mask: app.state.mask === "causal" ? "none" : "causal" }) },
        { keys: ["d"], shown: "D", does: "dropout on or off", run: () => app.change({ p: app.state.p > 0 ? 0 : 0.5 }) },
        { keys: ["s"], shown: "S", does: "scaling on or off", run: () => app.change({ scale: app.state.scale === "none" ? "auto" : "none" }) },
        { keys: ["l"], shown: "L", does: "logarithmic colours", run: () => app.change({ log: !app.state.log }, { numbers: false }) },
        { keys: ["r"], shown: "R", does: "automatic colour range", run: () => app.change({ low: "", high: "" }, { numbers: false }) },
        { keys: ["f"], shown: "F", does: "fit the matrix", run: () => matrix.fit() },
        { keys: ["t"], shown: "T", does: "table or picture", run: () => app.change({ table: !app.state.table }, { numbers: false }) },
        { keys: ["g"], shown: "G", does: "go to a cell", run: () => goTo(app, workbench) },
        { keys: ["?"], shown: "?", does: "this list", run: () => byId<HTMLDialogElement>("help").showModal() },
    ];
    const fixed: [string, string][] = [["Arrows", "move the picked cell; with Shift by 16"], ["Home, End", "first and last key; with Ctrl the corners"], ["+ −", "zoom the matrix"], ["1–7 with Alt", "choose a level"]];
    byId("help-body").innerHTML = `<dl>${[...fixed, ...bindings.map((b): [string, string] => [b.shown, b.does])].map(([k, d]) => `<dt><kbd>${k}</kbd></dt><dd>${d}</dd>`).join("")}</dl>`;
    byId("keys").addEventListener("click", () => byId<HTMLDialogElement>("help").showModal());
    addEventListener("keydown", (event) => {
        if (event.defaultPrevented || event.isComposing) return;
        if (event.altKey && /^[1-7]$/.test(event.key)) { event.preventDefault(); app.setLevel(Number(event.key)); return; }
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const target = event.target as HTMLElement;
        const inMatrix = target.closest(".matrix") !== null;
        if (!inMatrix && event.key !== "?") return; // plain letters belong to whoever types elsewhere
        if (target.matches("input, select, textarea")) return;
        const binding = bindings.find((b) => b.keys.includes(event.key) || b.keys.includes(event.key.toLowerCase()));
        if (!binding) return;
        event.preventDefault();
        binding.run(event);
    });
}

function goTo(app: App, workbench: Workbench): void {
    const answer = prompt("Go to query, key (numbers or words)", `${app.state.row}, ${app.state.column}`);
    if (!answer || !app.result) return;
    const labelsOf = [app.result.tokens, workbench.keyLabels(app.result)];
    const [row, column] = answer.split(",").map((part, axis) => {
        const text = part.trim(), index = labelsOf[axis]?.findIndex((t) => t.toLowerCase() === text.toLowerCase()) ?? -1;
        return index >= 0 ? index : Number(text);
    });
    const inside = (at: number, count: number) => Number.isInteger(at) && at >= 0 && at < count;
    if (inside(row, labelsOf[0].length) && inside(column, labelsOf[1].length)) workbench.pick(row, column);
}
