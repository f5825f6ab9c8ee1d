// A page for each level and each task that needs no script: what it is about, its weights, and its exercises, each a link into
// the live page with its answer folded away. Made when the page is built, from the texts that every program shows.
import type { EngineModule } from "../engine/engine_abi.ts";
import { allTables, colorAt, type Rgb } from "../page/colors.ts";
import { EngineSession } from "../engine/engine_session.ts";
import { fill, formula, indexed, short } from "../page/format.ts";
import { stories, type Step } from "../lessons/model_stories.ts";
import { levels, presetState, tasks, toHash, type State } from "../page/state.ts";
import { tableHtml } from "../app/views.ts";

export interface ClassPage {
    path: string; // "level/3"
    title: string;
    about: string; // one sentence, as text
    html: string; // HTML of the body
    picture: { width: number; height: number; rgb: Uint8Array };
}

const pictureWidth = 1200,
    pictureHeight = 630,
    mostInTable = 24;
const paper: Rgb = [251, 250, 247],
    hiddenCell: Rgb = [244, 243, 238];

// Squares of weights side by side, many of them in three rows, as previews of links are cut.
const mostInRow = 6;
function picture(maps: Float32Array[], side: number, table: Uint8Array): ClassPage["picture"] {
    const rgb = new Uint8Array(3 * pictureWidth * pictureHeight),
        gap = 40,
        lines = maps.length > mostInRow ? 3 : 1,
        inRow = Math.ceil(maps.length / lines),
        size = Math.min(
            (pictureHeight - (lines + 1) * gap) / lines,
            (pictureWidth - (inRow + 1) * gap) / inRow,
        ),
        left = (pictureWidth - inRow * size - (inRow - 1) * gap) / 2,
        top = (pictureHeight - lines * size - (lines - 1) * gap) / 2;
    for (let pixel = 0; pixel < pictureWidth * pictureHeight; ++pixel) rgb.set(paper, 3 * pixel);
    const cell = size / side,
        line = cell >= 8 ? 1 : 0;
    maps.forEach((weights, n) => {
        const high = weights.reduce((a, b) => Math.max(a, b), 0),
            scale = { table, low: 0, high, log: false };
        for (let y = 0; y < Math.floor(size); ++y)
            for (let x = 0; x < Math.floor(size); ++x) {
                const [i, j] = [Math.floor(y / cell), Math.floor(x / cell)];
                if (y - i * cell < line || x - j * cell < line) continue;
                const weight = weights[i * side + j],
                    row = Math.round(top + Math.floor(n / inRow) * (size + gap) + y),
                    at = row * pictureWidth + Math.round(left + (n % inRow) * (size + gap) + x);
                rgb.set(weight > 0 ? colorAt(scale, weight) : hiddenCell, 3 * at);
            }
    });
    return { width: pictureWidth, height: pictureHeight, rgb };
}

const plain = (html: string) => html.replace(/<[^>]+>/g, "").replace(/\s+/g, " ");

function exercises(steps: Step[], address: string): string {
    const items = steps.map(
        (step, n) =>
            `<li id="exercise-${n + 1}"><h3>${formula(step.title)}</h3><p class="prose">${formula(step.text)}</p><p><a href="../../${texts.page.self}${address}&amp;step=${n + 1}">${formula(step.try)}</a></p><details><summary>${texts.lesson.answer}</summary><p>${formula(step.see)}</p></details></li>`,
    );
    return `<ol class="exercises">${items.join("")}</ol>`;
}

export function renderClassPages(module: EngineModule, weightsOf: (task: string) => Uint8Array): ClassPage[] {
    const session = new EngineSession(module);
    session.start(1);
    const ink = session.colorTables()[allTables.find(({ name, dark }) => name === "ink" && !dark)!.key],
        page = (path: string, state: State, title: string, lead: string, steps: Step[]): ClassPage => {
            if (state.task) session.takeLearned(weightsOf(state.task));
            const { shared, head, tokens, heads, learned, rows } = session.compute({
                    address: toHash(state),
                    head: state.head,
                    row: state.i,
                    column: state.j,
                    thumbnails: 0,
                    own: null,
                }),
                names = indexed(tokens),
                stage = [...shared, ...head].find(({ id }) => id === (state.p > 0 ? "dropped" : "weights"))!,
                shownHeads = learned ? heads : Math.min(heads, 2),
                maps = Array.from(
                    { length: shownHeads },
                    (_, n) => session.stages(n).find(({ id }) => id === stage.id)!.data,
                ),
                table =
                    rows <= mostInTable
                        ? `<div class="table-box scroll" tabindex="0" role="region" aria-label="${texts.lesson.weights}">${tableHtml(
                              stage,
                              names,
                              names,
                              null,
                              (cell) => state.mask === "causal" && cell % rows > cell / rows,
                              (x) => (rows > 12 ? (x < 0.005 ? "" : short(x)) : x.toFixed(4)),
                          )}</div>`
                        : "",
                address = state.task ? `#v=1&amp;task=${state.task}` : `#v=1&amp;level=${state.level}`;
            return {
                path,
                title,
                about: plain(lead),
                picture: picture(maps, rows, ink),
                html: `<p class="label">${state.task ? texts.lesson.aModel : fill(texts.spoken.level, state.level, levels[state.level - 1].term)}</p><h1>${title}</h1><p class="prose">${lead}</p><p class="buttons"><a class="button" href="../../${texts.page.self}${address}">${texts.lesson.openLive}</a><a class="button" href="../../${texts.page.self}${address}&amp;big=1">${texts.lesson.projector}</a></p><figure><img src="preview.png" width="${pictureWidth}" height="${pictureHeight}" alt="${fill(shownHeads > 1 ? texts.lesson.ofHeads : texts.lesson.ofHead, shownHeads)}"></figure>${table}<h2>${texts.lesson.exercises}</h2>${exercises(steps, address)}`,
            };
        };
    return [
        ...levels.map((level, n) =>
            page(`level/${n + 1}`, presetState(n + 1), level.title, level.lead, stories.levels[n]),
        ),
        ...tasks.map(({ task, name, lead }) =>
            page(`task/${task}`, presetState(2, task), name, lead, stories.tasks[task]),
        ),
    ];
}
