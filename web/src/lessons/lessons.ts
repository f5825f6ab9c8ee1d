// The tutorials' tables next to the computed ones.
import type { App } from "../app/app.ts";
import { fill } from "../page/format.ts";
import { byId, input, select } from "../page/dom.ts";
import { levels } from "../page/state.ts";
import { lessonHtml, lessonOptions } from "../app/views.ts";

export function connectLessons(app: App): void {
    let shownLevel = 0,
        shown = levels[1].lessons[0],
        ownSeed = 123;
    // Without a seed: the tutorial's own.
    const show = async (name: string, seed?: number) => {
        try {
            if (!select("lesson-name").length)
                select("lesson-name").innerHTML = lessonOptions(await app.engine.ask("lessons", null));
            const lesson = await app.engine.ask("lesson", { name, seed });
            byId("lesson-body").innerHTML = lessonHtml(lesson);
            if (seed === undefined) {
                [shown, ownSeed] = [name, lesson.seed];
                input("lesson-seed").value = lesson.seed < 0 ? "" : String(lesson.seed);
            }
            byId("lesson-seed-box").hidden = ownSeed < 0;
            byId("lesson-seed-own").hidden = ownSeed < 0 || lesson.seed === ownSeed;
            byId("lesson-seed-own").textContent = fill(texts.lesson.seedBack, ownSeed);
            // An exercise without printed tables is not in the list.
            const listed = [...select("lesson-name").options].some((option) => option.value === name);
            select("lesson-name").value = listed ? name : "";
            if (!listed)
                select("lesson-name").add(
                    new Option(`${name.slice(0, 5)} ${lesson.title}`, name, true, true),
                );
        } catch (error) {
            if (app.engine.info) app.onTrouble((error as Error).message, false);
        }
    };
    select("lesson-name").addEventListener("change", () => void show(select("lesson-name").value));
    input("lesson-seed").addEventListener("input", () => {
        const seed = input("lesson-seed").valueAsNumber;
        if (Number.isInteger(seed) && seed >= 0 && seed <= 4294967295) void show(shown, seed);
    });
    byId("lesson-seed-own").addEventListener("click", () => {
        void show(shown);
        input("lesson-seed").focus();
    });
    app.onResult.add(({ state }) => {
        if (state.level === shownLevel) return;
        shownLevel = state.level;
        void show(levels[state.level - 1].lessons[0]);
    });
    byId("lesson-all").addEventListener("click", async () => {
        const score = byId("lesson-score");
        let tables = 0,
            exact = 0;
        try {
            for (const { name } of await app.engine.ask("lessons", null)) {
                const lesson = await app.engine.ask("lesson", { name });
                tables += lesson.tables;
                exact += lesson.exact;
                score.textContent = fill(texts.lesson.score, exact, tables);
            }
            score.dataset.done = "1";
        } catch (error) {
            app.onTrouble((error as Error).message, false);
        }
    });
}
