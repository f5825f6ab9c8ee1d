// The words' own vectors as points in a plane; loaded with the plane of queries and keys.
import type { App, Result } from "../app/app.ts";
import { byId, drawnInSight, setHtml, setText } from "../page/dom.ts";
import { escape, fill } from "../page/format.ts";
import { planeOf } from "./principal.ts";
import type { Workbench } from "./stage.ts";

const mostWords = 64,
    letter = 7, // width of a letter of a label, in pixels
    side = 320,
    margin = 30;

// The words' vectors as they enter the layer, along the two directions in which they differ most: near words are alike.
export function connectWords(app: App, workbench: Workbench): void {
    const panel = document.createElement("section");
    panel.className = "wrap panel";
    panel.id = "words";
    panel.setAttribute("aria-labelledby", "words-title");
    panel.hidden = true;
    panel.innerHTML = `<h2 id="words-title">${texts.vectors.wordsTitle}</h2><p class="prose" id="words-about"></p><svg id="words-plot" class="plane" role="group" aria-label="${texts.vectors.wordsPlot}"></svg>`;
    byId("vectors").after(panel);
    const inputsOf = (result: Result) =>
        result.stages.find(({ id }) => id === "inputs") ?? result.stages.find(({ id }) => id === "normed");
    // The plane of the newest vectors; a pick only draws it again.
    let vectors: Float32Array | null = null,
        plane = { points: [] as [number, number][], share: 1 };
    const draw = () => {
        const { result, state } = app,
            inputs = result && inputsOf(result);
        if (!result || !inputs) return;
        const picked = Math.min(state.i, result.tokens.length - 1),
            wide = Math.min(960, Math.max(280, panel.clientWidth)); // a pixel is a pixel, so that words can be read
        if (inputs.data !== vectors) {
            vectors = inputs.data;
            plane = planeOf(vectors, inputs.shape.at(-1)!);
        }
        const { points, share } = plane,
            most = (axis: 0 | 1) => Math.max(1e-6, ...points.map((point) => Math.abs(point[axis]))),
            unit = Math.max(most(0) / (wide / 2 - 90), most(1) / (side / 2 - margin)),
            taken: { x: number; y: number; long: number }[] = [],
            seen = new Set<string>(); // tokens, and with their places
        const dots = points.map(([right, up], n) => {
            const x = wide / 2 + right / unit,
                y = side / 2 - up / unit,
                token = result.tokens[n],
                name = `${token} ${x.toFixed()} ${y.toFixed()}`,
                circle = `<circle class="${n === picked ? "query" : "key"}" cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${n === picked ? 6 : 4}"/>`;
            if (seen.has(name)) return n === picked ? circle : "";
            seen.add(name);
            // The first place next to its point where a label overlaps no other. A word that already has a label gets
            // another only if the first place is free, because equal words form clusters.
            const label = { x: x + 9, y: 0, long: token.length * letter },
                free = (at: number) =>
                    taken.every(
                        (other) =>
                            Math.abs(other.y - at) > 13 ||
                            other.x > label.x + label.long ||
                            label.x > other.x + other.long,
                    );
            const again = seen.has(token) && !free(y + 4);
            seen.add(token);
            label.y = [4, -9, 17, -22, 30].map((by) => y + by).find(free) ?? y + 4;
            if (!again) taken.push(label);
            return `<g data-word="${n}">${circle}${again ? "" : `<text x="${label.x.toFixed(1)}" y="${label.y.toFixed(1)}">${escape(token)}</text>`}</g>`;
        });
        byId("words-plot").setAttribute("viewBox", `0 0 ${wide} ${side}`);
        setHtml(byId("words-plot"), dots.join(""));
        setText(
            byId("words-about"),
            fill(texts.vectors.wordsAbout, inputs.shape.at(-1)!, (100 * share).toFixed(0)),
        );
    };
    const wish = drawnInSight(panel, draw);
    byId("words-plot").addEventListener("click", (event) => {
        const word = (event.target as Element).closest<SVGElement>("[data-word]")?.dataset.word;
        if (word) workbench.pick(Number(word), app.state.j);
    });
    app.onShow.add(() => {
        const { result } = app;
        if (!result || (app.stale && app.engine.info)) return;
        panel.hidden = result.tokens.length < 3 || result.tokens.length > mostWords || !inputsOf(result);
        if (!panel.hidden) wish();
    });
}
