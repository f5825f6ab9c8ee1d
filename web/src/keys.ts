// One table binds the keys and documents them. Letters act while the matrix or nothing that takes text has the focus.
import type { App } from "./app/app.ts";
import { fill } from "./page/format.ts";
import { byId, input } from "./page/dom.ts";
import type { MaskDoor } from "./layer/mask_door.ts";
import type { Workbench } from "./layer/stage.ts";
import type { Story } from "./lessons/story.ts";

interface Binding {
    keys: string[];
    shown: string;
    does: string;
    run(event: KeyboardEvent): void;
}

export function connectKeys(app: App, workbench: Workbench, editor: MaskDoor, story: Story): void {
    const matrix = workbench.matrix;
    const heads = () => app.result?.heads ?? 1;
    const head = (by: number) => app.change({ head: (app.state.head + by + heads()) % heads() });
    const bindings: Binding[] = [
        {
            keys: ["PageDown"],
            shown: texts.lesson.pageDown,
            does: texts.keys.nextStage,
            run: () => workbench.stepStage(1),
        },
        {
            keys: ["PageUp"],
            shown: texts.lesson.pageUp,
            does: texts.keys.previousStage,
            run: () => workbench.stepStage(-1),
        },
        { keys: ["]"], shown: "]", does: texts.keys.nextHead, run: () => head(1) },
        { keys: ["["], shown: "[", does: texts.keys.previousHead, run: () => head(-1) },
        {
            keys: [" ", "m"],
            shown: texts.keys.space,
            does: texts.keys.causal,
            run: () => app.change({ mask: app.state.mask === "causal" ? "none" : "causal" }),
        },
        {
            keys: ["d"],
            shown: "D",
            does: texts.keys.dropout,
            run: () => app.change({ p: app.state.p > 0 ? 0 : 0.5 }),
        },
        {
            keys: ["s"],
            shown: "S",
            does: texts.keys.scaling,
            run: () => app.change({ scale: app.state.scale === "none" ? "auto" : "none" }),
        },
        {
            keys: ["l"],
            shown: "L",
            does: texts.keys.log,
            run: () => app.change({ log: !app.state.log }, { numbers: false }),
        },
        {
            keys: ["r"],
            shown: "R",
            does: texts.keys.range,
            run: () => app.change({ lo: "", hi: "" }, { numbers: false }),
        },
        {
            keys: ["n"],
            shown: "N",
            does: texts.keys.narrow,
            run: () => narrowRange(app, workbench),
        },
        {
            keys: ["b"],
            shown: "B",
            does: texts.keys.editor,
            run: () => editor.open((opened) => opened.toggle()),
        },
        {
            keys: ["x"],
            shown: "X",
            does: texts.keys.swap,
            run: () => {
                if (app.state.cmp >= 0) app.change({ head: app.state.cmp, cmp: app.state.head });
            },
        },
        { keys: ["."], shown: ".", does: texts.keys.nextStep, run: () => story.turn(1) },
        { keys: [","], shown: ",", does: texts.keys.previousStep, run: () => story.turn(-1) },
        { keys: ["f"], shown: "F", does: texts.keys.fit, run: () => matrix.fit() },
        {
            keys: ["t"],
            shown: "T",
            does: texts.keys.table,
            run: () => app.change({ table: !app.state.table }, { numbers: false }),
        },
        { keys: ["g"], shown: "G", does: texts.keys.goTo, run: () => openGoTo(app) },
        {
            keys: ["?"],
            shown: "?",
            does: texts.keys.help,
            run: () => byId<HTMLDialogElement>("help").showModal(),
        },
    ];
    const fixed: [string, string][] = [
        [texts.keys.arrows, texts.keys.move],
        [texts.keys.ends, texts.keys.corners],
        ["+ −", texts.keys.zoom],
        ["Alt + 1–7", texts.keys.level],
        ["C", texts.keys.compare],
    ];
    byId("help-body").innerHTML =
        `<dl>${[...fixed, ...bindings.map((b): [string, string] => [b.shown, b.does])].map(([k, d]) => `<dt><kbd>${k}</kbd></dt><dd>${d}</dd>`).join("")}</dl>`;
    connectGoTo(app, workbench);
    byId("keys").addEventListener("click", () => byId<HTMLDialogElement>("help").showModal());
    addEventListener("keydown", (event) => {
        if (event.defaultPrevented || event.isComposing) return;
        if (event.altKey && /^[1-7]$/.test(event.key)) {
            event.preventDefault();
            app.setLevel(Number(event.key));
            return;
        }
        const target = event.target as HTMLElement;
        const inMatrix = target.closest(".matrix") !== null;
        if (inMatrix && event.ctrlKey && event.key.toLowerCase() === "g") {
            event.preventDefault();
            openGoTo(app);
            return;
        }
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (!inMatrix && event.key !== "?") return; // plain letters belong to whoever types elsewhere
        if (target.matches("input, select, textarea")) return;
        const binding = bindings.find(
            (b) => b.keys.includes(event.key) || b.keys.includes(event.key.toLowerCase()),
        );
        if (!binding) return;
        event.preventDefault();
        binding.run(event);
    });
}

function openGoTo(app: App): void {
    input("goto-query").value = String(app.state.i);
    input("goto-key").value = String(app.state.j);
    byId("goto-note").textContent = "";
    byId<HTMLDialogElement>("goto").showModal();
    input("goto-query").select();
}

// Numbers or words.
function connectGoTo(app: App, workbench: Workbench): void {
    const dialog = byId<HTMLDialogElement>("goto");
    byId("goto-form").addEventListener("submit", (event) => {
        event.preventDefault();
        if (!app.result) return;
        const lists = [app.result.tokens, app.result.keyTokens];
        const [row, column] = ["goto-query", "goto-key"].map((id, axis) => {
            const text = input(id).value.trim(),
                index = lists[axis].findIndex((t) => t.toLowerCase() === text.toLowerCase());
            return index >= 0 ? index : text === "" ? NaN : Number(text);
        });
        const wrong = [row, column].findIndex(
            (at, axis) => !Number.isInteger(at) || at < 0 || at >= lists[axis].length,
        );
        if (wrong >= 0) {
            byId("goto-note").textContent = fill(
                wrong ? texts.keys.noKey : texts.keys.noQuery,
                input(wrong ? "goto-key" : "goto-query").value,
                lists[wrong].length - 1,
            );
            return;
        }
        dialog.close();
        workbench.pick(row, column);
        workbench.matrix.focus();
    });
    byId("goto-cancel").addEventListener("click", () => dialog.close());
}

function narrowRange(app: App, workbench: Workbench): void {
    const data = workbench.matrix.content?.data.filter((x) => Number.isFinite(x)).sort();
    if (!data || data.length < 2) return;
    const cut = Math.floor(data.length / 100),
        text = (x: number) => String(Number(x.toPrecision(4)));
    app.change({ lo: text(data[cut]), hi: text(data[data.length - 1 - cut]) }, { numbers: false });
}
