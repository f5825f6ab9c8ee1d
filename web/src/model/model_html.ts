// The markup of a reader's own model, from its values.
import type { AppKit } from "../app/kit.ts";
import type {
    HeadFigures,
    Likely,
    ModelConfig,
    ModelRequests,
    ModelRow,
    ModelRun,
    ModelSum,
} from "./model_protocol.ts";

export const shownAs = {
    weights: "Weights",
    valued: "Weights × length of the value",
    masked: "Masked scores",
} as const;
export type Shown = keyof typeof shownAs;
export const figures: [keyof HeadFigures, string][] = [
    ["previous", "previous token"],
    ["induction", "induction"],
    ["first", "first token"],
    ["same", "same token"],
];
const namedHeads = 4; // heads to name for each figure
const percent = (share: number) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`;
export const nameOf = (layer: number, head: number) => `L${layer}H${head}`;

export function bodyHtml({ escape, megabytes }: AppKit, files: File[], config: ModelConfig): string {
    const name =
            files.find(({ name: one }) => /\.gguf$/i.test(one))?.name ??
            (files[0].webkitRelativePath.split("/")[0] || "a model of files"),
        types = config.types.map(({ name: type, bytes }) => `${type} ${megabytes(bytes)}`).join(", "),
        grouped = config.kvHeads === config.heads ? "" : ` over ${config.kvHeads} of keys and values`,
        reads = config.held
            ? "The model’s files are in this tab’s memory."
            : `The model is too large for this tab’s memory: layers are read from the disk for every run, ${megabytes(config.layerBytes)} at a time.`;
    return (
        `<div class="model-config"><h3><bdi>${escape(name)}</bdi></h3><p class="note">${escape(config.family)}: ${config.layers} layers, ${config.heads} heads${grouped}, ${config.width.toLocaleString("en")} wide, ${config.vocabulary.toLocaleString("en")} tokens${config.context ? `, reads ${config.context.toLocaleString("en")}` : ""}. ${escape(types)}. ${reads}</p></div>` +
        `<label class="field"><span>${config.whyNoText === null ? "Your text" : "Token IDs, separated by spaces"}</span><input id="model-text" type="text" dir="auto" autocomplete="off" autocapitalize="off" spellcheck="false" maxlength="400000" aria-describedby="model-text-note"></label>` +
        `<p class="note" id="model-text-note">${config.whyNoText === null ? "" : escape(config.whyNoText)}</p>` +
        `<p class="buttons"><button type="button" id="model-stop" class="quiet" hidden>Stop</button></p>` +
        `<h3 class="label">Tokens: choose one to see what comes after it</h3><div class="model-tokens" id="model-tokens" role="group" aria-label="Tokens"></div>` +
        `<p class="buttons"><button type="button" id="model-hide" class="quiet" aria-pressed="false">Mask this token for all queries</button><button type="button" id="model-reset" class="quiet" hidden>Undo all changes</button></p>` +
        `<div class="two"><div><h3 class="label" id="model-next-title">What comes next</h3><div id="model-next"></div></div><div><h3 class="label">If the model stopped after a layer</h3><div class="scroll" id="model-lens" tabindex="0" role="region" aria-label="What the model would say after each layer"></div></div></div>` +
        `<h3 class="label">Every head on this text: a row for each layer</h3><div class="model-grid-box scroll"><canvas id="model-grid" tabindex="0" role="img"></canvas></div><p class="note" id="model-hover" role="status"></p><div id="model-jobs"></div>` +
        `<div class="model-tools"><h3 id="model-head-name"></h3><div class="segmented" role="radiogroup" aria-label="What is shown">${Object.entries(
            shownAs,
        )
            .map(
                ([id, label], i) =>
                    `<label><input type="radio" name="model-as" value="${id}"${i ? "" : " checked"}><span>${label}</span></label>`,
            )
            .join(
                "",
            )}</div><button type="button" id="model-off" class="quiet" aria-pressed="false">Switch this head off</button><button type="button" id="model-map" class="quiet">Deep zoom of this head</button></div>` +
        `<div class="model-tools"><label class="field slide"><span>Scale of the head <output id="model-scale-out"></output></span><input id="model-scale" type="range" min="0" max="2" step="0.05" value="1"></label><label class="field model-patch"><span>Context from another text with as many tokens (activation patching)</span><input id="model-patch" type="text" dir="auto" autocomplete="off" autocapitalize="off" spellcheck="false"></label></div>` +
        `<div class="model-work"><div class="matrix" id="model-matrix"></div><aside id="model-cell" aria-label="The arithmetic of one weight"></aside></div>` +
        `<div class="model-tools"><h3 id="model-row-name"></h3><label class="field"><span>One number of the layer, down to the files</span><select id="model-stage"></select></label></div><p class="note" id="model-row-about"></p>` +
        `<div class="matrix" id="model-row"></div><section id="model-sum" aria-label="The arithmetic of one number"></section>`
    );
}

export function tokensHtml({ escape }: AppKit, run: ModelRun, chosen: number, hidden: Set<number>): string {
    return run.tokens
        .map(
            ({ text, id }, n) =>
                `<button type="button" data-token="${n}" aria-pressed="${n === chosen}"${hidden.has(n) ? ' class="off"' : ""} title="token ${id}"><bdi>${escape(text)}</bdi></button>`,
        )
        .join("");
}

// `said`: what the model says without the changes.
export function nextHtml({ escape }: AppKit, next: Likely[], said: Likely[] | null): string {
    const bar = ({ probability }: Likely) =>
        `<meter min="0" max="1" value="${probability}" aria-hidden="true"></meter>`;
    const rows = next.map(
        (one, n) =>
            `<tr><th scope="row"><bdi>${escape(one.text)}</bdi></th><td>${bar(one)}</td><td>${percent(one.probability)}</td>${said ? `<td>${percent(one.unchanged!)}</td><td><bdi>${escape(said[n]?.text ?? "")}</bdi></td>` : ""}</tr>`,
    );
    return `<table class="plain model-next"><thead><tr><th scope="col">token</th><th scope="col" colspan="2">${said ? "with the changes" : "probability"}</th>${said ? '<th scope="col">without</th><th scope="col">said without</th>' : ""}</tr></thead><tbody>${rows.join("")}</tbody></table>`;
}

export function lensHtml({ escape }: AppKit, lens: Likely[][], last: string): string {
    return `<table class="plain model-lens"><thead><tr><th scope="col">after</th><th scope="col" colspan="${lens[0].length}">likeliest tokens</th></tr></thead><tbody>${lens
        .map(
            (row, n) =>
                `<tr><th scope="row">${n ? `layer ${n - 1}` : "the embedding"}</th>${row.map((one) => `<td${one.text === last ? ' class="hit"' : ""}><bdi>${escape(one.text)}</bdi> ${percent(one.probability)}</td>`).join("")}</tr>`,
        )
        .reverse()
        .join("")}</tbody></table>`;
}

export function jobsHtml({ short }: AppKit, run: ModelRun): string {
    const all = run.heads.flatMap((heads, layer) => heads.map((of, head) => ({ layer, head, of })));
    const lines = figures.map(([key, label]) => {
        const best = all
            .filter(({ of }) => of[key] !== null)
            .sort((a, b) => (b.of[key] as number) - (a.of[key] as number))
            .slice(0, namedHeads);
        if (!best.length)
            return `<p><b>${label}</b> <span class="note">no such token in this text</span></p>`;
        return `<p><b>${label}</b> ${best.map(({ layer, head, of }) => `<button type="button" class="quiet" data-layer="${layer}" data-head="${head}">${nameOf(layer, head)} ${short(of[key] as number)}</button>`).join(" ")}</p>`;
    });
    return `<h3 class="label">Heads that look most at</h3>${lines.join("")}`;
}

// The arithmetic of number `unit` of a row.
export function sumHtml(
    { escape, number, stageTexts }: AppKit,
    { stages, stage }: ModelRow,
    unit: number,
    { value, sum }: ModelRequests["sum"]["answer"],
): string {
    const isStage = (id: string) => stages.some((one) => one.id === id),
        labelOf = (id: string) => (isStage(id) ? stageTexts[id as keyof typeof stageTexts].label : id);
    // The next click goes to the source of an operand.
    const named = ({ a }: ModelSum, name: string) => {
        const [to, at] = isStage(name) ? [name, unit] : isStage(a) && /^\d+$/.test(name) ? [a, name] : [];
        return to === undefined
            ? `<bdi>${escape(name)}</bdi>`
            : `<button type="button" class="quiet" data-stage="${to}" data-unit="${at}">${escape(labelOf(name))}</button>`;
    };
    const line = (name: string, last: number | string) =>
        `<tr><th scope="row" colspan="3">${escape(name)}</th><td>${number(last)}</td></tr>`;
    const ending = (of: ModelSum) =>
        of.ending
            ? `<p class="model-ending"><span>${escape(of.ending)}</span> <b>${number(of.result)}</b></p>`
            : "";
    const tableOf = (of: ModelSum) =>
        `<div><p class="note">${escape(of.how)}</p><table class="plain model-sum"><thead><tr><td></td><th scope="col">${escape(labelOf(of.a))}</th><th scope="col">${escape(of.b)}</th><th scope="col">${of.b ? "product" : ""}</th></tr></thead><tbody>${of.terms
            .map(
                (term) =>
                    `<tr><th scope="row">${named(of, term.name)}</th>${of.b ? `<td>${number(term.a)}</td><td>${number(term.b)}</td>` : "<td></td><td></td>"}<td>${number(term.product)}</td></tr>`,
            )
            .join(
                "",
            )}${of.left ? line(`${of.left.toLocaleString("en")} smaller ones`, of.leftSum) : ""}${of.addedName ? line(of.addedName, of.added) : ""}${line("sum", of.sum)}</tbody></table>${of === sum ? "" : ending(of)}</div>`;
    return `<div><p class="label">${escape(labelOf(stage))}, number <b>${unit}</b></p><p class="big">${number(value)}</p>${sum ? ending(sum) : `<p class="note">${stage === "inputs" ? "What enters the layer: the layer before gave it, and before the first layer the embedding." : "Given: it is no sum."}</p>`}</div>${sum ? [sum, ...sum.factors].map(tableOf).join("") : ""}`;
}
