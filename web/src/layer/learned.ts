// Heads that learned: a small picture of each by name, which one is off, and what the model says comes next.
import type { App, Result } from "../app/app.ts";
import { byId, hide, input, setHtml, setText } from "../page/dom.ts";
import type { Workbench } from "./stage.ts";
import { learnedHtml, readsOf, saidHtml } from "../app/views.ts";

export function connectLearned(app: App, workbench: Workbench): void {
    let head = ""; // in sight
    byId("learned").addEventListener("click", (event) => {
        const head = (event.target as Element).closest<HTMLElement>("[data-head]")?.dataset.head;
        if (head !== undefined) app.change({ head: Number(head) });
    });
    byId("head-off").addEventListener("click", () =>
        app.change({ off: (app.state.off ^ (1 << app.state.head)) >>> 0 }),
    );
    document.addEventListener("click", (event) => {
        const task = (event.target as Element).closest<HTMLElement>("a[data-task]")?.dataset.task;
        if (!task) return;
        event.preventDefault();
        app.setTask(task);
    });
    // Typed text is looked at from its last token.
    app.onResult.add(({ learned, state, tokens }) => {
        if (learned && app.isTyping && !state.step) workbench.pickMost(tokens.length - 1, "text");
    });
    app.onShow.add(() => {
        const { result } = app;
        if (!result || (app.stale && app.engine.info)) return;
        show(result);
        const now = `${result.state.task} ${result.headIndex}`;
        if (now !== head && result.learned)
            workbench.toScroll.add(byId("learned").querySelector(".learned-heads")!);
        head = now;
    });
}

function show(result: Result): void {
    const { learned, state } = result;
    for (const id of ["learned", "said", "head-off"]) hide(id, !learned);
    const root = document.documentElement.classList;
    root.toggle("is-learned", learned !== null);
    setText(byId("text-label"), learned ? texts.page.sequence : texts.stage.sentence);
    input("text").placeholder = learned ? readsOf(learned) : "";
    if (!learned) return;
    const count = result.thumbnailSize ** 2,
        weights = learned.labels.map((_, head) =>
            result.thumbnails
                ? result.thumbnails.subarray(head * count, (head + 1) * count)
                : result.stages.find(({ id }) => id === "weights")!.data,
        );
    setHtml(
        byId("learned"),
        learnedHtml(
            { ...learned, weights, first: result.stats.map(({ first }) => first) },
            result.headIndex,
            state.off,
        ),
    );
    const off = ((state.off >>> result.headIndex) & 1) === 1;
    setText(byId("head-off"), off ? texts.stage.headOn : texts.page.headOff);
    byId("head-off").setAttribute("aria-pressed", String(off));
    setHtml(byId("said"), saidHtml(result.tokens, learned, Math.min(state.i, result.tokens.length - 1)));
}
