// Pieces of the page as HTML text. The build draws the first state with them, the live page every other.
import {
    column,
    escape,
    fill,
    fixed,
    formula,
    indexed,
    number,
    place,
    shapeText,
    short,
    valueOf,
    withCommas,
} from "../page/format.ts";
import { said as saidBy } from "../texts/said.ts";
import type { Arithmetic } from "./arithmetic.ts";
import type { Learned, LessonName, LessonResult, ScoreSteps, Stage, Steps } from "../engine/protocol.ts";
import { levels, stageTexts, tasks, type State, type TensorShape } from "../page/state.ts";

// `current`: a level, 0 for none of them; or a task.
export function levelsHtml(current: number | string): string {
    const isTask = typeof current === "string",
        first = `<li><a href="#v=1&amp;task=${tasks[0].task}" data-task="${tasks[0].task}"${isTask ? ' aria-current="true"' : ""}><b>0</b> <span>${texts.lesson.learned}</span></a></li>`;
    const items = levels.map(
        (level, i) =>
            `<li><a href="#v=1&amp;level=${i + 1}" data-level="${i + 1}"${i + 1 === current ? ' aria-current="true"' : ""}><b>${i + 1}</b> <span>${level.name}</span></a></li>`,
    );
    const more = [
        ["play", texts.lesson.training],
        ["zoom", texts.page.zoomTitle],
        ["own", texts.lesson.tensors],
        ["model", texts.lesson.model],
    ].map(
        ([id, name], i) =>
            `<li class="more"><a href="#${id}" data-section="${id}"><b>${i + 8}</b> <span>${name}</span></a></li>`,
    );
    return `<ol>${first}${items.join("")}${more.join("")}</ol>`;
}

// A model that a reader is told the size of before it is fetched.
export const largeModel = 200_000;
export const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

export function introHtml(level: number): string {
    const { title, lead } = levels[level - 1];
    return `<h2>${title}</h2><p class="prose">${lead.replace(/\s+/g, " ")}</p>`;
}

// In place of a level's words for a task: the job of the head in view, and the sequence in large type. Arcs lead from the
// picked token to those that it looks at; `weights` is its row.
const letterStep = 11,
    foot = 62,
    leastArc = 0.03, // weights that have an arc, and a number on it
    leastShare = 0.1,
    mostInWidth = 700; // a longer sequence scrolls
export function roleHtml(
    tokens: string[],
    row: number,
    weights: Float32Array,
    head: number,
    task: string,
    learned: Learned,
): string {
    const { name, lead } = tasks.find((one) => one.task === task)!;
    const others = tasks.map(({ task: other, name, bytes }) =>
        other === task
            ? `<b aria-current="true">${name}</b>`
            : `<a href="#v=1&amp;task=${other}" data-task="${other}">${name}${bytes >= largeModel ? ` (${megabytes(bytes)})` : ""}</a>`,
    );
    let width = 0;
    const middles = tokens.map((token, n) => {
        const own = 9 + letterStep * [...token].length;
        width += own + (learned.starts.includes(n) ? 14 : n === 1 && tokens[0] === "⊢" ? 7 : 0);
        return width - own / 2;
    });
    const names = indexed(tokens),
        from = middles[row];
    let arcs = "",
        most = 0;
    tokens.forEach((_, n) => {
        const weight = weights[n],
            to = middles[n],
            tall = Math.min(44, 12 + 0.3 * Math.abs(to - from));
        if (weight > weights[most]) most = n;
        if (!(weight >= leastArc)) return;
        arcs += `<path d="M${from} ${foot}${n === row ? "c-16-36 16-36 0 0" : `Q${(from + to) / 2} ${foot - 2 * tall} ${to} ${foot}`}" stroke-width="${(0.6 + 2.4 * weight).toFixed(1)}" opacity="${(0.3 + 0.7 * weight).toFixed(2)}"/>`;
        if (weight >= leastShare)
            arcs += `<text class="share" x="${(from + to) / 2}" y="${foot - tall - 5}">${percent(weight)}</text>`;
    });
    const letters = tokens
        .map(
            (token, n) =>
                `<text data-row="${n}"${n === row ? ' class="here" aria-current="true"' : n > row ? ' class="later"' : weights[n] >= leastShare ? ' class="seen"' : ""} x="${middles[n]}" y="80">${escape(token)}</text>`,
        )
        .join("");
    const wide = width > mostInWidth;
    return (
        `<h2>${escape(saidBy(learned.role) || texts.lesson.unclear)}</h2><p class="note of-head">${fill(texts.lesson.isHead, headPlace(head, learned))} <span class="tasks">${others.join(" ")}</span></p>` +
        `<div class="arcs${wide ? " wide" : ""}"${wide ? ` tabindex="0" role="region" aria-label="${name}"` : ""}><svg viewBox="0 0 ${width} 88" preserveAspectRatio="xMinYMid"${wide ? ` width="${width}"` : ""} role="img" aria-label="${escape(fill(texts.stage.looksAt, names[row], `${names[most]} ${percent(weights[most])}`))}">${arcs}${letters}</svg></div>` +
        `<div class="reads"><p class="says-next">${fill(texts.stage.said, escape(names[row]), escape(learned.said[row][0]), percent(learned.sure[row][0]))}</p><p class="note">${lead}</p></div>`
    );
}

// In place of a level's words while the reader's own tensors are shown.
export const ownIntroHtml = (name: string, { heads, kv, rows, keys, dim }: TensorShape) =>
    `<h2>${texts.lesson.ownTensors}</h2><p class="prose">${fill(texts.lesson.ownAbout, `<em>${escape(name)}</em>`, heads, kv, withCommas(rows), withCommas(keys), withCommas(dim))} <button type="button" class="quiet" data-back>${texts.lesson.toSentence}</button></p>`;

// Where a stage has a matrix for each head, the one in view is shown; the rail tells of all.
export function railHtml(stages: Stage[], current: string, heads: number): string {
    return `<ol class="rail">${stages
        .map((stage) => {
            const text = stageTexts[stage.id],
                shape =
                    heads > 1 && stageTexts[stage.id].pairs && stage.shape.length === 2
                        ? [heads, ...stage.shape]
                        : stage.shape;
            return `<li><button type="button" data-stage="${stage.id}"${stage.id === current ? ' aria-current="true"' : ""}><span class="rail-name">${text.label}</span><span class="rail-shape">${shapeText(shape)}</span><span class="rail-formula">${formula(saidBy(stage.formula))}</span></button></li>`;
        })
        .join("")}</ol>`;
}

function headPlace(index: number, { labels, layers }: Pick<Learned, "labels" | "layers">): string {
    const each = labels.length / layers;
    return fill(
        each > 1 ? texts.stage.placeOfMany : texts.stage.place,
        Math.floor(index / each),
        index % each,
    );
}
export const headName = (index: number, learned: Learned | null = null) => {
    if (!learned) return fill(texts.stage.head, index);
    return `${saidBy(learned.labels[index])} (${headPlace(index, learned)})`;
};

// A head's weights as shades of a drawing, a path for each shade: most cells of a head that learned are empty.
function weightsSvg(weights: Float32Array): string {
    const side = Math.round(Math.sqrt(weights.length)),
        paths = Array.from({ length: 11 }, () => "");
    weights.forEach((weight, cell) => {
        const shade = Math.min(10, Math.round(weight * 10));
        if (shade > 0) paths[shade] += `M${cell % side} ${Math.floor(cell / side)}h1v1h-1z`;
    });
    const stairs = Array.from({ length: side }, (_, row) => `M0 ${row}h${row + 1}v1H0z`).join("");
    return `<svg viewBox="0 0 ${side} ${side}" aria-hidden="true" shape-rendering="crispEdges"><path d="${stairs}"/>${paths.map((d, shade) => (d ? `<path class="s${shade}" d="${d}"/>` : "")).join("")}</svg>`;
}

export interface NamedHeads extends Pick<Learned, "layers" | "labels"> {
    weights: Float32Array[]; // weights of each head, [side, side]
    first: number[]; // the mean weight on the first token
}
const leastRest = 0.25;
export function learnedHtml(heads: NamedHeads, current: number, off: number): string {
    const list = heads.labels.map((label, n) => {
        const rests = heads.first[n] >= leastRest && label !== "first token",
            isOff = ((off >>> n) & 1) === 1;
        return `<button type="button" data-head="${n}" aria-pressed="${n === current}"${isOff ? ' class="off"' : ""}>${weightsSvg(heads.weights[n])}<b>${saidBy(label)}</b>${rests ? `<span>${texts.stage.elseFirst}</span>` : ""}<small>${headPlace(n, heads)}${isOff ? texts.stage.isOff : ""}</small></button>`;
    });
    return `<h2 class="label">${texts.stage.byRole}</h2><div class="learned-heads n${heads.labels.length}">${list.join("")}</div>`;
}

// Names what a model of a few tokens reads; "" for one that knows many words.
export const readsOf = ({ vocabulary }: Pick<Learned, "vocabulary">): string =>
    vocabulary.length > fewWords
        ? ""
        : vocabulary.includes("a") && vocabulary.includes("z")
          ? texts.stage.letters
          : `${vocabulary
                .filter((token) => token[0] !== "<")
                .slice(0, 4)
                .join(" ")} …`;

const percent = (share: number) => `${(100 * share).toFixed(0)}%`;

// The sequence, and below each token what the model says comes next; of a model that knows many words, the likeliest.
const fewWords = 100;
export function saidHtml(
    tokens: string[],
    { said, sure, vocabulary }: Pick<Learned, "said" | "sure" | "vocabulary">,
    row: number,
): string {
    const cell = (text: string, n: number, more = "") =>
            `<td class="${n === row ? "here" : ""}${more}">${escape(text)}</td>`,
        others = said[row]
            .map(
                (text, n) =>
                    `<li><b><bdi>${escape(text)}</bdi></b> <meter min="0" max="1" value="${sure[row][n]}" aria-label="${escape(text)}"></meter> ${percent(sure[row][n])}</li>`,
            )
            .join("");
    return (
        `<p class="note">${fill(texts.stage.said, escape(indexed(tokens)[row]), escape(said[row][0]), percent(sure[row][0]))}</p>` +
        (vocabulary.length > fewWords ? `<ol class="next">${others}</ol>` : "") +
        `<div class="said-scroll" tabindex="0" role="region" aria-label="${texts.stage.saidLabel}"><table class="said"><tbody><tr><th scope="row">${texts.stage.sequence}</th>${tokens.map((t, n) => cell(t, n)).join("")}</tr>` +
        `<tr><th scope="row">${texts.stage.saysNext}</th>${said.map(([t], n) => cell(t, n, tokens[n + 1] === t ? " hit" : sure[n][0] < 0.5 ? " unsure" : "")).join("")}</tr></tbody></table></div>`
    );
}

// A matrix as a table. Shades are classes, so that no inline style is needed.
export function tableHtml(
    stage: Stage,
    rows: string[],
    columns: string[],
    picked: [number, number] | null,
    hidden: (cell: number) => boolean = () => false,
    text: (value: number) => string = fixed,
): string {
    const [height, width] = [stage.shape.at(-2) ?? 1, stage.shape.at(-1) ?? 1];
    const signed = stageTexts[stage.id].signed;
    let extent = 0;
    for (const x of stage.data) if (Number.isFinite(x)) extent = Math.max(extent, Math.abs(x));
    const sums = stageTexts[stage.id].sums;
    const shade = (x: number, cell: number) =>
        !Number.isFinite(x) || hidden(cell)
            ? "hidden"
            : `${x < 0 && signed ? "n" : "s"}${Math.round((Math.abs(x) / (extent || 1)) * 10)}`;
    const head = columns.map((c) => `<th scope="col"><bdi>${escape(c)}</bdi></th>`).join("");
    const body = Array.from({ length: height }, (_, i) => {
        const cells = stage.data.subarray(i * width, (i + 1) * width);
        const sum = cells.reduce((a, b) => a + b, 0);
        return `<tr><th scope="row"><bdi>${escape(rows[i])}</bdi></th>${Array.from(cells, (x, j) => `<td class="${shade(x, i * width + j)}${picked && picked[0] === i && picked[1] === j ? " picked" : ""}">${text(x)}</td>`).join("")}${sums ? `<td class="sum">${fixed(sum)}</td>` : ""}</tr>`;
    });
    const about = stageTexts[stage.id];
    const corner = stageTexts[stage.id].pairs ? texts.stage.pairs : texts.stage.token;
    return `<table class="numbers"><caption class="unseen">${about.label}: ${about.about}</caption><thead><tr><th scope="col" class="corner">${corner}</th>${head}${sums ? `<th scope="col" class="sum">${texts.stage.sum}</th>` : ""}</tr></thead><tbody>${body.join("")}</tbody></table>`;
}

export interface InspectorContext {
    state: ScoreRules;
    tokensRow: string[];
    tokensColumn: string[];
    row: number;
    column: number;
    label: string; // label of the stage, and its value
    value: number;
}

const step = (title: string, value: string, body = "") =>
    `<li><div class="step"><span>${title}</span><output>${value}</output></div>${body}</li>`;

const columnsOf = (all: number[][]) => all.map((values) => values.map(column(values)));
function productTable(steps: ScoreSteps): string {
    const order = steps.products.map((_, d) => d);
    const many = order.length > 8;
    if (many) order.sort((a, b) => Math.abs(steps.products[b]) - Math.abs(steps.products[a]));
    const shown = order.slice(0, 8),
        columns = columnsOf(
            [steps.q, steps.k, steps.products, ...(many ? [] : [steps.running])].map((all) =>
                shown.map((d) => all[d]),
            ),
        ),
        rows = shown.map(
            (d, n) =>
                `<tr><th scope="row">${d}</th>${columns.map((cells) => `<td>${cells[n]}</td>`).join("")}</tr>`,
        );
    const note = many ? `<p class="note">${fill(texts.steps.largest, 8, order.length)}</p>` : "";
    return `<table class="products"><thead><tr><th scope="col">d</th><th scope="col">q</th><th scope="col">k</th><th scope="col">q·k</th>${many ? "" : `<th scope="col">${texts.stage.sum}</th>`}</tr></thead><tbody>${rows.join("")}</tbody></table>${note}`;
}

// A table of terms: the largest of many, in their order, and what they come to.
const mostTerms = 12;
export function arithmeticHtml({ what, names, terms, steps, value }: Arithmetic): string {
    const [a, b, product] = names,
        many = terms.length > mostTerms,
        single = b === "" || b === product;
    const order = terms.map((_, n) => n);
    if (many) order.sort((m, n) => Math.abs(terms[n].product) - Math.abs(terms[m].product));
    const shown = order.slice(0, mostTerms).sort((m, n) => m - n),
        fields = [
            "a",
            ...(single ? [] : ["b"]),
            ...(b === "" ? [] : ["product"]),
            ...(many ? [] : ["running"]),
        ],
        columns = columnsOf(fields.map((field) => shown.map((n) => terms[n][field as "a"]))),
        rows = shown.map(
            (n, at) =>
                `<tr><th scope="row"><bdi>${escape(String(terms[n].label))}</bdi></th>${columns.map((cells) => `<td>${cells[at]}</td>`).join("")}</tr>`,
        );
    const heads = [
        a,
        ...(single ? [] : [b]),
        ...(b === "" ? [] : [product]),
        ...(many ? [] : [texts.stage.sum]),
    ];
    const table = `<table class="products"><thead><tr><th scope="col"></th>${heads.map((name) => `<th scope="col">${name}</th>`).join("")}</tr></thead><tbody>${rows.join("")}</tbody></table>${many ? `<p class="note">${fill(texts.steps.largestTerms, mostTerms, terms.length)}</p>` : ""}`;
    const sum = terms.at(-1)?.running ?? 0;
    const list = [
        step(formula(what), "", table),
        step(fill(texts.steps.sumOf, terms.length), number(sum)),
        ...steps.map(([name, x]) => step(name, number(x))),
        step(texts.steps.comesTo, `<b>${number(value)}</b>`),
    ];
    return `<ol class="steps">${list.join("")}</ol>`;
}

function barsHtml(steps: Steps, context: InspectorContext): string {
    const weights = steps.rowWeights;
    const top = Math.max(...weights, 1e-30);
    let shown = weights.map((_, j) => j);
    if (shown.length > 12) {
        shown = shown.filter((j) => weights[j] > 0).sort((a, b) => weights[b] - weights[a]);
        shown = [...new Set([...shown.slice(0, 11), context.column])].sort((a, b) => a - b);
    }
    const bars = shown.map(
        (j) =>
            `<li${j === context.column ? ' class="here"' : ""}><button type="button" data-column="${j}"><bdi>${escape(context.tokensColumn[j])}</bdi><meter min="0" max="1000" value="${Math.round((weights[j] / top) * 1000)}">${number(weights[j])}</meter><span>${short(weights[j])}</span></button></li>`,
    );
    // The shares of the sum, which dropout takes from 1.
    const sum = weights.reduce((a, w) => a + w, 0),
        entropy = sum > 0 ? -weights.reduce((a, w) => a + (w > 0 ? (w / sum) * Math.log(w / sum) : 0), 0) : 0;
    return `<h3 class="label">${texts.steps.wholeRow}</h3><p class="row-facts">${fill(texts.steps.rowFacts, fixed(sum, 3), fixed(Math.abs(entropy), 2), fixed(Math.log(Math.max(1, steps.visibleKeys)), 2))}</p><ol class="bars">${bars.join("")}</ol>`;
}

// Every step from a query and a key to their weight.
export type ScoreRules = Pick<State, "scale" | "temp" | "cap" | "p" | "alibi">;
export function scoreSteps(steps: ScoreSteps, { scale, temp, cap, p, alibi }: ScoreRules): string[] {
    const root = scale === "auto" ? `√${steps.q.length}` : scale === "none" ? "1" : scale,
        divisor = temp === 1 ? root : `(${root} × ${temp.toFixed(2)})`;
    const list = [step(`q · k`, number(steps.dot), productTable(steps))];
    if (divisor !== "1") list.push(step(`÷ ${divisor}`, number(steps.score)));
    if (cap > 0) list.push(step(`softcap ${cap}`, number(steps.capped)));
    if (alibi)
        list.push(step(fill(texts.steps.bias, number(steps.alibi)), number(steps.capped + steps.alibi)));
    if (steps.hiddenBy) list.push(step(fill(texts.steps.masked, escape(saidBy(steps.hiddenBy))), "−∞"));
    const empty = steps.visibleKeys === 0;
    if (!empty) {
        list.push(
            step(
                fill(texts.steps.lessMost, number(steps.rowMax)),
                number(valueOf(steps.masked) - valueOf(steps.rowMax)),
            ),
        );
        list.push(step("exp", number(steps.exponential)));
        list.push(step(fill(texts.steps.overSum, number(steps.denominator)), number(steps.weight)));
    }
    if (steps.hasDropout)
        list.push(
            step(steps.kept ? fill(texts.steps.kept, p) : texts.steps.dropped, number(steps.finalWeight)),
        );
    return list;
}

export function inspectorHtml(steps: Steps, c: InspectorContext): string {
    const query = `<bdi>${escape(c.tokensRow[c.row])}</bdi>`,
        key = `<bdi>${escape(c.tokensColumn[c.column])}</bdi>`;
    const list = scoreSteps(steps, c.state),
        empty = steps.visibleKeys === 0;
    const share = steps.contributions
        .slice(0, 3)
        .map((v) => number(v))
        .join("  ");
    const whole = steps.context
        .slice(0, 3)
        .map((v) => number(v))
        .join("  ");
    const more = steps.v.length > 3 ? " …" : "";
    list.push(step(fill(texts.steps.timesValue, key), `<span class="vector">${share}${more}</span>`));
    list.push(step(fill(texts.steps.ofContext, query), `<span class="vector">${whole}${more}</span>`));
    const isWeight = c.label === stageTexts.weights.label || c.label === stageTexts.dropped.label;
    const rank = empty
        ? texts.steps.emptyRow
        : steps.hiddenBy
          ? texts.steps.hidden
          : steps.hasDropout && !steps.kept
            ? texts.steps.dropped
            : place(steps.rank, steps.visibleKeys);
    const what = isWeight
        ? texts.steps.weight
        : fill(texts.steps.alsoWeight, c.label.toLowerCase(), number(steps.finalWeight));
    return `<div><p class="label">${fill(texts.steps.pair, query, key)}</p><p class="big">${number(c.value)}</p><p class="note">${what}${rank}</p><ol class="steps">${list.join("")}</ol></div><div>${barsHtml(steps, c)}</div>`;
}

// Prints the tutorial's tables next to the computed ones and marks differences.
export function lessonHtml(lesson: LessonResult): string {
    const tables = lesson.list.map((table) => {
        const columns = table.shape.at(-1) ?? 1,
            rows = Math.max(1, table.theirs.length / columns);
        const grid = (list: string[], other: string[]) =>
            `<table class="printed"><tbody>${Array.from(
                { length: rows },
                (_, i) =>
                    `<tr>${list
                        .slice(i * columns, (i + 1) * columns)
                        .map(
                            (text, j) =>
                                `<td${text === other[i * columns + j] ? "" : ' class="differs"'}>${escape(text.replace("-", "−"))}</td>`,
                        )
                        .join("")}</tr>`,
            ).join("")}</tbody></table>`;
        const name = escape(table.label || table.tensor);
        return `<section class="lesson-table"><h3>${name} <span class="${table.exact ? "same" : "other"}">${table.exact ? texts.lesson.same : texts.lesson.differs}</span></h3>${table.note ? `<p class="note">${escape(table.note)}</p>` : ""}<div class="beside scroll" tabindex="0" role="region" aria-label="${name}"><figure><figcaption>${texts.lesson.theirs}</figcaption>${grid(table.theirs, table.ours)}</figure><figure><figcaption>${texts.lesson.ours}</figcaption>${grid(table.ours, table.theirs)}</figure></div></section>`;
    });
    const about = escape(lesson.about.replaceAll("-inf", "−∞"));
    return `<p class="note">${about} ${lesson.tables ? fill(texts.lesson.exact, lesson.exact, lesson.tables) : texts.lesson.noTables}</p>${tables.join("")}`;
}

export function lessonOptions(lessons: LessonName[]): string {
    const tutorials = [...new Set(lessons.filter((l) => l.tables > 0).map((l) => l.tutorial))];
    return tutorials
        .map(
            (tutorial) =>
                `<optgroup label="${escape(tutorial)}">${lessons
                    .filter((l) => l.tutorial === tutorial && l.tables > 0)
                    .map(
                        (l) =>
                            `<option value="${l.name}">${escape(l.name.slice(0, 5))} ${escape(l.title)}</option>`,
                    )
                    .join("")}</optgroup>`,
        )
        .join("");
}
