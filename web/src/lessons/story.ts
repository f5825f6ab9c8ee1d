// The walk through a level: a step says one thing, marks the cells it is about, asks for one thing to be done, and sees
// whether it was. The steps are data (lens/model/tables/stories.json) that comes when it is first wanted.
import type { App, Result } from "../app/app.ts";
import { byId, setHtml } from "../page/dom.ts";
import { fill, formula } from "../page/format.ts";
import type { Step, stories } from "./model_stories.ts";
import { levels, presetState, tasks, type State } from "../page/state.ts";
import { ownIntroHtml, introHtml, roleHtml } from "../app/views.ts";
import type { Workbench } from "../layer/stage.ts";

const keyNames: Record<string, string> = {
    ArrowUp: "↑",
    ArrowDown: "↓",
    ArrowLeft: "←",
    ArrowRight: "→",
    PageUp: texts.lesson.pageUp,
    PageDown: texts.lesson.pageDown,
    s: "S",
    d: "D",
};

export class Story {
    private stories: typeof stories | null = null;
    private before: State | null = null; // the reader's state before the walk
    private told = ""; // the step that was last announced, and whether it was done
    private reading = false;
    private subject = ""; // the task or level that the words above the matrix are about

    constructor(
        private readonly app: App,
        private readonly workbench: Workbench,
    ) {
        byId("walk").addEventListener("click", () => {
            byId("intro").focus({ preventScroll: true });
            void this.go(app.state.step || 1);
        });
        byId("intro").addEventListener("click", (event) => {
            const target = event.target as Element,
                to = target.closest<HTMLElement>("[data-step]")?.dataset.step,
                row = target.closest<SVGElement>("[data-row]")?.dataset.row;
            if (row) workbench.pickMost(Number(row));
            if (to === "show") this.showIt();
            else if (to === "leave") this.leave();
            else if (to === "next") this.next();
            else if (to) void this.go(Number(to));
            if (to) byId("intro").focus({ preventScroll: true });
        });
        byId("intro").addEventListener("keydown", (event) => {
            if (!app.state.step || event.ctrlKey || event.metaKey || event.altKey) return;
            const onButton = event.target !== byId("intro");
            if (event.key === "Escape") this.leave();
            else if (event.key === "ArrowRight" || (event.key === " " && !onButton)) this.turn(1);
            else if (event.key === "ArrowLeft") this.turn(-1);
            else return;
            event.preventDefault();
        });
        app.onShow.add(() => this.show());
    }

    // By keys of the matrix, which keeps the focus.
    turn(by: number): void {
        if (this.app.state.step) void this.go(this.app.state.step + by);
    }

    private async load(): Promise<void> {
        this.stories ??= (await this.app.during(import("./model_stories.ts"))).stories;
    }

    // The story of the task in view, or of the level.
    private get steps(): Step[] {
        const { level, task } = this.app.state;
        return (task ? this.stories?.tasks[task] : this.stories?.levels[level - 1]) ?? [];
    }
    private get step(): Step | null {
        return this.steps[this.app.state.step - 1] ?? null;
    }

    private stateOf(number: number): State {
        const { level, task } = this.app.state;
        return { ...presetState(level, task), ...this.steps[number - 1].show, step: number };
    }

    // The next walk: the next level, the next task, and after the last task level 1.
    private get following(): { name: string; go: () => void } | null {
        const { app } = this,
            { level, task } = app.state,
            after = tasks[tasks.findIndex((one) => one.task === task) + 1];
        if (task)
            return after
                ? { name: after.name, go: () => app.setTask(after.task, 1) }
                : { name: fill(texts.lesson.level, 1), go: () => app.setLevel(1, 1) };
        return level < levels.length
            ? { name: fill(texts.lesson.level, level + 1), go: () => app.setLevel(level + 1, 1) }
            : null;
    }
    private next(): void {
        this.following?.go();
    }

    async go(number: number): Promise<void> {
        await this.load();
        const { app } = this,
            count = this.steps.length;
        if (number > count || number < 1) return;
        if (!app.state.step) this.before = app.own ? null : app.state;
        app.own = null;
        app.change(this.stateOf(number));
    }

    private leave(): void {
        const { before } = this,
            { state } = this.app;
        this.app.change(
            before?.level === state.level && before.task === state.task
                ? { ...before, step: 0 }
                : { step: 0 },
        );
        byId("walk").focus({ preventScroll: true });
    }

    // Does for the reader what the step asks for.
    private showIt(): void {
        const { step } = this;
        if (!step) return;
        const { is, least, most, not } = step.done,
            [key] = Object.keys(not ?? {});
        this.app.change({
            ...is,
            ...least,
            ...most,
            ...(key ? { [key]: key === "text" ? step.type : Number(step.type) } : {}),
        });
    }

    private isDone(step: Step): boolean {
        const { state } = this.app,
            { is = {}, not = {}, least = {}, most = {} } = step.done;
        const every = (given: Partial<State>, holds: (a: never, b: never) => boolean) =>
            Object.entries(given).every(([key, value]) =>
                holds(state[key as keyof State] as never, value as never),
            );
        return (
            every(is, (a, b) => a === b) &&
            every(not, (a, b) => a !== b) &&
            every(least, (a, b) => a >= b) &&
            every(most, (a, b) => a <= b)
        );
    }

    private show(): void {
        const { app } = this,
            { result } = app;
        if (!result || (app.stale && app.engine.info)) return;
        const { level, task } = result.state,
            number = app.own ? 0 : app.state.step;
        if (number && !this.stories) {
            if (!this.reading) {
                this.reading = true;
                void this.load().then(() => this.begin());
            }
            return;
        }
        const step = number ? this.step : null;
        byId("intro").classList.toggle("walking", step !== null);
        byId("walk").setAttribute("aria-pressed", String(step !== null));
        this.workbench.matrix.mark(step && app.state.stage === step.show.stage ? step.mark : null);
        if (!step) {
            const changed = setHtml(
                byId("intro"),
                result.own
                    ? ownIntroHtml(app.ownName, result.own.shape)
                    : result.learned
                      ? this.roleHtml(result)
                      : introHtml(level),
            );
            // Another subject's words above the matrix have another height.
            const subject = result.own ? "own" : task || String(level);
            if (subject !== this.subject) requestAnimationFrame(() => this.workbench.matrix.findRoom());
            this.subject = subject;
            const row = byId("intro").querySelector(".wide");
            if (changed && row) this.workbench.toScroll.add(row);
            this.told = "";
            return;
        }
        const done = this.isDone(step);
        setHtml(byId("intro"), this.html(step, number, done));
        const place = `${task || level} ${number}`,
            told = `${place} ${done}`;
        if (told === this.told) return;
        const isNew = !this.told.startsWith(`${place} `);
        this.told = told;
        // Added to the announcement of the picked number, without replacing it.
        if (isNew) this.workbench.say(fill(texts.lesson.announce, step.title, step.text, step.try));
        else if (done)
            this.workbench.say(fill(texts.lesson.announceDone, step.see, this.workbench.cellText()));
    }

    private roleHtml({ tokens, stages, headIndex, learned, state }: Result): string {
        const row = Math.min(this.app.state.i, tokens.length - 1),
            weights = ["dropped", "weights"].map((id) => stages.find((s) => s.id === id)).find(Boolean)!.data;
        return roleHtml(
            tokens,
            row,
            weights.subarray(row * tokens.length, (row + 1) * tokens.length),
            headIndex,
            state.task,
            learned!,
        );
    }

    // A link with only a step shows the step's state. A longer link shows its own state.
    private begin(): void {
        const { app } = this,
            { level, task, step } = app.state;
        const bare = JSON.stringify({ ...app.state, step: 0 }) === JSON.stringify(presetState(level, task));
        if (bare && this.step) app.change(this.stateOf(step));
        else app.showSoon();
    }

    private html(step: Step, number: number, done: boolean): string {
        const count = this.steps.length,
            { following } = this,
            last = number === count;
        const keys = (step.keys ?? []).map((key) => `<kbd>${keyNames[key] ?? key}</kbd>`).join(" ");
        const how = step.on
            ? ""
            : ` <span class="by-key">${step.keys ? fill(texts.lesson.inMatrix, keys) : ""}</span>`;
        const next = last
            ? following
                ? `<button type="button" class="primary" data-step="next">${following.name}</button>`
                : ""
            : `<button type="button" class="${done ? "primary" : "quiet"}" data-step="${number + 1}">${texts.lesson.next}</button>`;
        return (
            `<div class="where"><p class="label">${fill(texts.lesson.step, number, count)}</p><h2>${formula(step.title)}</h2></div>` +
            `<div class="says"><p class="prose">${formula(step.text)}</p>` +
            (done
                ? `<p class="done"><b>✓ ${texts.lesson.see}</b> ${formula(step.see)}</p>`
                : `<p class="try"><b>${texts.lesson.tryIt}</b> ${formula(step.try)}${how}</p>`) +
            `</div><div class="buttons"><button type="button" class="quiet" data-step="${number - 1}"${number === 1 ? " disabled" : ""}>${texts.lesson.back}</button>${next}` +
            (done
                ? ""
                : `<button type="button" class="quiet" data-step="show">${texts.lesson.showMe}</button>`) +
            `<button type="button" class="quiet" data-step="leave" aria-label="${texts.lesson.leave}">✕</button></div>`
        );
    }
}
