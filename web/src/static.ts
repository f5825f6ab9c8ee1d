// The page's first state, computed at build time: what is readable before any script runs.
import type { EngineModule } from "./engine_abi.ts";
import { EngineSession } from "./engine_session.ts";
import { formula } from "./format.ts";
import { inOrder, levels, presetState, stageTexts, toHash } from "./state.ts";
import {
    inspectorHtml,
    introHtml,
    lessonHtml,
    lessonOptions,
    levelsHtml,
    railHtml,
    tableHtml,
} from "./views.ts";

const level2Lesson = levels[1].lessons[0];

export function renderStatic(module: EngineModule): Record<string, string> {
    const session = new EngineSession(module);
    session.start(1);
    const state = presetState(2);
    const { shared, head, steps, tokens } = session.compute({
        address: toHash(state),
        head: 0,
        row: state.i,
        column: state.j,
        thumbnails: 0,
        own: null,
    });
    const stages = inOrder([...shared, ...head]);
    const weights = head.find((s) => s.id === "weights")!;
    const context = {
        tokensRow: tokens,
        tokensColumn: tokens,
        row: state.i,
        column: state.j,
        divisor: "√2",
        dividend: true,
        softcap: 0,
        p: 0,
        alibi: false,
        label: stageTexts.weights.label,
        value: weights.data[state.i * tokens.length + state.j],
    };
    const text = stageTexts.weights;
    return {
        levels: levelsHtml(2),
        intro: introHtml(2),
        rail: railHtml(stages, "weights", 1),
        stageName: `${text.label} <span class="formula">${formula(text.formula)}</span>`,
        stageAbout: text.about,
        table: tableHtml(weights, tokens, tokens, [state.i, state.j]),
        inspector: inspectorHtml(steps, context),
        lessonNames: lessonOptions(session.lessons(), level2Lesson),
        lesson: lessonHtml(session.lesson(level2Lesson)),
    };
}
