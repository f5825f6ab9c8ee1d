// The page's first state, computed at build time: what is readable before any script runs.
import type { EngineModule } from "../engine/engine_abi.ts";
import { EngineSession } from "../engine/engine_session.ts";
import { formula, indexed, short } from "../page/format.ts";
import { said } from "../texts/said.ts";
import { firstState, inOrder, levels, stageTexts, toHash } from "../page/state.ts";
import {
    inspectorHtml,
    learnedHtml,
    lessonHtml,
    levelsHtml,
    railHtml,
    roleHtml,
    saidHtml,
    tableHtml,
} from "../app/views.ts";

const level2Lesson = levels[1].lessons[0];

export function renderStatic(
    module: EngineModule,
    weightsOf: (task: string) => Uint8Array,
): Record<string, string> {
    const session = new EngineSession(module);
    session.start(1);
    const state = firstState();
    session.takeLearned(weightsOf(state.task));
    const {
        shared,
        head,
        steps,
        tokens: words,
        learned,
        thumbnails,
        stats,
    } = session.compute({
        address: toHash(state),
        head: state.head,
        row: state.i,
        column: state.j,
        thumbnails: 48,
        own: null,
    });
    const tokens = words.map((text) => (text === "<start>" ? "⊢" : text)),
        names = indexed(tokens),
        count = tokens.length ** 2,
        heads = {
            ...learned!,
            weights: stats.map((_, n) => thumbnails!.subarray(n * count, (n + 1) * count)),
            first: stats.map(({ first }) => first),
        };
    const stages = inOrder([...shared, ...head]);
    const weights = head.find((s) => s.id === "weights")!;
    const context = {
        tokensRow: names,
        tokensColumn: names,
        row: state.i,
        column: state.j,
        state,
        label: stageTexts.weights.label,
        value: weights.data[state.i * tokens.length + state.j],
    };
    const text = stageTexts.weights;
    return {
        levels: levelsHtml(state.task),
        intro: roleHtml(
            tokens,
            state.i,
            weights.data.subarray(state.i * tokens.length),
            state.head,
            state.task,
            learned!,
        ),
        learned: learnedHtml(heads, state.head, 0),
        said: saidHtml(tokens, learned!, state.i),
        text: state.text,
        rail: railHtml(stages, "weights", 1),
        stageName: `${text.label} <span class="formula">${formula(said(text.formula))}</span>`,
        stageAbout: "",
        table: tableHtml(
            weights,
            names,
            names,
            [state.i, state.j],
            (cell) => cell % tokens.length > cell / tokens.length,
            (x) => (x < 0.005 ? "" : short(x)),
        ),
        inspector: inspectorHtml(steps, context),
        lesson: lessonHtml(session.lesson(level2Lesson)),
    };
}
