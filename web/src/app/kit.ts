// Hands what the page has already to the scripts of the deep zoom and of a reader's own model: two scripts that import it
// would make a third, which the first view waits for.
import { MatrixView } from "../matrix/matrix.ts";
import { autoRange, colorAt, colorTable, css, inkOn, isDark, logFloor } from "../page/colors.ts";
import { byId, hide, input, select, setHtml, setText } from "../page/dom.ts";
import { duration, escape, fill, fixed, indexed, number, rate, short, valueOf } from "../page/format.ts";
import { decodeBits, encodeBits, presetState, stageTexts, toHash } from "../page/state.ts";
import { shownTokens, type App } from "./app.ts";
import { inspectorHtml, megabytes, scoreSteps } from "./views.ts";

export const pageKit = {
    byId,
    colorAt,
    colorTable,
    css,
    duration,
    escape,
    fill,
    fixed,
    hide,
    indexed,
    inkOn,
    input,
    inspectorHtml,
    isDark,
    logFloor,
    MatrixView,
    megabytes,
    number,
    presetState,
    scoreSteps,
    select,
    setHtml,
    setText,
    short,
    shownTokens,
    stageTexts,
    toHash,
    valueOf,
    why: () => import("./why.ts"),
    whyButton: `<p class="copies"><button type="button" class="quiet" data-why>${texts.why.button}</button></p>`,
};
export type PageKit = typeof pageKit;
export const reshapeKit = { autoRange, byId, colorAt, colorTable, css, fill, hide, setText };
export type ReshapeKit = typeof reshapeKit;
export const maskKit = { byId, decodeBits, encodeBits, fill, hide, setText, stageTexts };
export type MaskKit = typeof maskKit;
export const timingsKit = { byId, duration, rate };
export type TimingsKit = typeof timingsKit;
export type AppKit = PageKit & { app: App };
