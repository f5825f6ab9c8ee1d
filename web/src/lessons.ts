// The tutorials' tables beside ours.
import type { App } from "./app.ts";
import { byId, select } from "./dom.ts";
import { levels } from "./levels.ts";
import { lessonHtml } from "./views.ts";

export function connectLessons(app: App): void {
    let shownLevel = 2;
    const show = async (name: string) => {
        try {
            const lesson = await app.engine.ask("lesson", { name });
            byId("lesson-body").innerHTML = lessonHtml(lesson);
            // An exercise without printed tables is not in the list.
            const listed = [...select("lesson-name").options].some((option) => option.value === name);
            select("lesson-name").value = listed ? name : "";
            if (!listed) select("lesson-name").add(new Option(`${name.slice(0, 5)} ${lesson.title}`, name, true, true));

        } catch (error) {
            if (app.engine.info) app.onTrouble((error as Error).message, false);
        }
    };
    select("lesson-name").addEventListener("change", () => void show(select("lesson-name").value));
    app.onResult.add(({ state }) => {
        if (state.level === shownLevel) return;
        shownLevel = state.level;

        void show(levels[state.level - 1].lessons[0]);
    });
    byId("lesson-all").addEventListener("click", async () => {
        const score = byId("lesson-score");
        let tables = 0, exact = 0;
        try {
            for (const { name } of await app.engine.ask("lessons", null)) {
                const lesson = await app.engine.ask("lesson", { name });
                tables += lesson.tables;
                exact += lesson.exact;
                score.textContent = `${exact} of ${tables} tables the same, digit for digit`;
            }
            score.dataset.done = "1";
        } catch (error) { app.onTrouble((error as Error).message, false); }
    });
}
