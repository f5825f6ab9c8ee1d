// The color scale below the matrix: its range, and how many values are where.
import type { App } from "../app/app.ts";
import type { MatrixView } from "../matrix/matrix.ts";
import { isHidden, type MatrixContent } from "../matrix/matrix_content.ts";
import { css, histogram, themeColors, type Rgb, type Scale } from "../page/colors.ts";
import { byId, choose, input, select } from "../page/dom.ts";
import { fill, number } from "../page/format.ts";

export class ColorBar {
    private drawn: Scale | null = null;
    private dragFrom: Scale | null = null;

    constructor(
        private readonly app: App,
        private readonly matrix: MatrixView,
    ) {
        for (const [id, key] of [
            ["low", "lo"],
            ["high", "hi"],
        ] as const)
            input(id).addEventListener("change", () =>
                app.change(
                    { [key]: Number.isFinite(parseFloat(input(id).value)) ? input(id).value.trim() : "" },
                    { numbers: false },
                ),
            );
        input("log").addEventListener("change", () =>
            app.change({ log: input("log").checked }, { numbers: false }),
        );
        select("colormap").addEventListener("change", () =>
            app.change({ colormap: select("colormap").value }, { numbers: false }),
        );
        this.dragRange();
    }

    show(content: MatrixContent): void {
        const { scale } = this.matrix,
            { state } = this.app;
        const canvas = byId<HTMLCanvasElement>("bar");
        if (this.drawn !== scale) {
            // one for each set of values and range
            const context = canvas.getContext("2d")!;
            this.drawn = scale;
            context.clearRect(0, 0, 256, 28);
            const bins = histogram(content.data, scale, 64),
                top = Math.log1p(bins.reduce((a, b) => Math.max(a, b), 1));
            context.fillStyle = themeColors()["strong-line"];
            bins.forEach((count, i) => {
                const tall = count ? Math.max(1, Math.round((16 * Math.log1p(count)) / top)) : 0;
                context.fillRect(4 * i, 17 - tall, 3, tall);
            });
            for (let i = 0; i < 256; ++i) {
                context.fillStyle = css([...scale.table.subarray(3 * i, 3 * i + 3)] as Rgb);
                context.fillRect(i, 18, 1, 10);
            }
            // An end beyond which there are values has a cap.
            context.fillStyle = themeColors().warm;
            for (const [id, end, beyond] of [
                ["low", 0, (x: number) => x < scale.low],
                ["high", 248, (x: number) => x > scale.high],
            ] as const) {
                const cut = content.data.some(
                    (x, n) => Number.isFinite(x) && beyond(x) && !isHidden(content, n),
                );
                if (cut) context.fillRect(end, 16, 8, 12);
                input(id).parentElement!.classList.toggle("cut", cut);
            }
        }
        // Writing what is there already would cost a layout.
        const about = fill(texts.stage.scaleOf, content.name, number(scale.low), number(scale.high));
        if (canvas.ariaLabel !== about) canvas.ariaLabel = about;
        for (const [id, value] of [
            ["low", scale.low],
            ["high", scale.high],
        ] as const) {
            const field = input(id),
                own = id === "low" ? state.lo : state.hi;
            if (field.placeholder !== number(value)) field.placeholder = number(value);
            if (field.value !== own && document.activeElement !== field) field.value = own;
        }
        input("log").checked = state.log;
        choose(select("colormap"), state.colormap);
    }

    // The nearer end of the range follows the pointer; the fields next to the bar do the same for keyboards.
    private dragRange(): void {
        const canvas = byId<HTMLCanvasElement>("bar");
        let end: "lo" | "hi" | null = null;
        const at = (event: PointerEvent) => Math.max(0, Math.min(1, event.offsetX / canvas.clientWidth));
        canvas.addEventListener("pointerdown", (event) => {
            end = at(event) < 0.5 ? "lo" : "hi";
            this.dragFrom = this.matrix.scale;
            canvas.setPointerCapture(event.pointerId);
        });
        canvas.addEventListener("pointermove", (event) => {
            if (!end || !this.dragFrom) return;
            const { low, high, log } = this.dragFrom,
                place = at(event);
            const value = log ? low * (high / low) ** place : low + (high - low) * place;
            this.app.change(
                { [end]: String(Number(value.toPrecision(3))) },
                { numbers: false, burst: `range ${end}` },
            );
        });
        for (const type of ["pointerup", "pointercancel"] as const)
            canvas.addEventListener(type, () => {
                end = null;
            });
        canvas.addEventListener("dblclick", () => this.app.change({ lo: "", hi: "" }, { numbers: false }));
    }
}
