// Every head of every layer as a thumbnail, a row for each layer, on one canvas.
import type { AppKit } from "../app/kit.ts";
import { figures, nameOf } from "./model_html.ts";
import type { ModelConfig, ModelRun } from "./model_protocol.ts";

export class HeadGrid {
    private hovered: [number, number] | null = null;

    constructor(
        private readonly kit: AppKit,
        private readonly canvas: HTMLCanvasElement,
        private readonly shown: {
            readonly config: ModelConfig;
            readonly run: ModelRun | null;
            readonly layer: number;
            readonly head: number;
            readonly scales: Map<string, number>; // by "layer,head"
        },
        private readonly look: (layer: number, head: number) => void,
    ) {
        canvas.addEventListener("pointermove", (event) => {
            this.hovered = this.headAt(event.offsetX, event.offsetY);
            this.showHover();
        });
        canvas.addEventListener("pointerleave", () => {
            this.hovered = null;
            this.showHover();
        });
        canvas.addEventListener("click", (event) => {
            const at = this.headAt(event.offsetX, event.offsetY);
            if (at) this.look(...at);
        });
        canvas.addEventListener("keydown", (event) => {
            const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[
                event.key
            ];
            if (!step) return;
            event.preventDefault();
            const { config, layer, head } = this.shown;
            this.look(
                Math.min(config.layers - 1, Math.max(0, layer + step[0])),
                Math.min(config.heads - 1, Math.max(0, head + step[1])),
            );
        });
        new ResizeObserver(() => this.draw()).observe(canvas.parentElement!);
    }

    // Pixels of a thumbnail and of the room around it.
    private sizes(): { cell: number; label: number } {
        const label = 30,
            width = this.canvas.parentElement!.clientWidth - label;
        return { cell: Math.max(18, Math.min(64, Math.floor(width / this.shown.config.heads))), label };
    }

    private headAt(x: number, y: number): [number, number] | null {
        const { cell, label } = this.sizes(),
            layer = Math.floor(y / cell),
            head = Math.floor((x - label) / cell);
        return layer >= 0 && layer < this.shown.config.layers && head >= 0 && head < this.shown.config.heads
            ? [layer, head]
            : null;
    }

    draw(): void {
        const { canvas } = this,
            { run, config, scales } = this.shown;
        if (!run) return;
        const { cell, label } = this.sizes(),
            ratio = Math.min(2, devicePixelRatio || 1),
            width = label + config.heads * cell,
            height = config.layers * cell;
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
        canvas.style.width = `${width}px`;
        canvas.style.height = `${height}px`;
        const context = canvas.getContext("2d")!,
            style = getComputedStyle(canvas),
            { side, pictures } = run,
            table = this.kit.colorTable("ink"),
            small = document.createElement("canvas");
        small.width = small.height = side;
        const pixels = new ImageData(side, side);
        context.scale(ratio, ratio);
        context.imageSmoothingEnabled = side > cell;
        context.font = `450 11px ${style.fontFamily}`;
        context.textAlign = "right";
        context.textBaseline = "middle";
        for (let layer = 0; layer < config.layers; ++layer) {
            context.fillStyle = style.getPropertyValue("--soft");
            context.fillText(`L${layer}`, label - 6, (layer + 0.5) * cell);
            for (let head = 0; head < config.heads; ++head) {
                const first = (layer * config.heads + head) * side * side;
                for (let i = 0; i < side * side; ++i) {
                    // A square root: most weights are small, and where they are is what tells heads apart.
                    const weight = pictures[first + i],
                        color = 3 * Math.round(255 * Math.sqrt(Math.min(1, Math.max(0, weight || 0))));
                    for (let c = 0; c < 3; ++c) pixels.data[4 * i + c] = table[color + c];
                    pixels.data[4 * i + 3] = 255;
                }
                small.getContext("2d")!.putImageData(pixels, 0, 0);
                const [x, y] = [label + head * cell, layer * cell];
                context.globalAlpha = scales.get(`${layer},${head}`) === 0 ? 0.25 : 1;
                context.drawImage(small, x + 1, y + 1, cell - 3, cell - 3);
                context.globalAlpha = 1;
                if (layer !== this.shown.layer || head !== this.shown.head) continue;
                context.strokeStyle = style.getPropertyValue("--warm");
                context.lineWidth = 2;
                context.strokeRect(x, y, cell - 1, cell - 1);
            }
        }
        this.showHover();
    }

    private showHover(): void {
        const { byId, setText, short } = this.kit,
            { config, run } = this.shown,
            [layer, head] = this.hovered ?? [this.shown.layer, this.shown.head],
            of = run?.heads[layer]?.[head];
        if (!of) return;
        const said = figures
            .filter(([key]) => of[key] !== null)
            .map(([key, label]) => `${label} ${short(of[key] as number)}`);
        const text = `${nameOf(layer, head)}${of.job ? `, ${of.job}` : ""}: ${said.join(", ")}; entropy ${short(of.entropy)} nats`;
        setText(byId("model-hover"), text);
        this.canvas.setAttribute(
            "aria-label",
            `Weights of ${config.layers} layers of ${config.heads} heads; arrows choose one. ${text}`,
        );
    }
}
