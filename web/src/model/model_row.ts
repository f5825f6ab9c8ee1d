// One token's values of one stage of a layer, and the arithmetic of one of them.
import type { AppKit } from "../app/kit.ts";
import { sumHtml } from "./model_html.ts";
import type { ModelRow, ModelRun } from "./model_protocol.ts";
import type { Runner } from "./model_runner.ts";

// Numbers of a token's row in a line of its picture.
const acrossMost = (length: number) =>
    matchMedia("(max-width: 759px)").matches ? 16 : length > 1024 ? 128 : 32;

// The layer, head and token that the row is of.
interface Looked {
    readonly run: ModelRun | null;
    readonly layer: number;
    readonly head: number;
    readonly token: number;
    readonly names: string[];
}

export class TokenRow {
    private stage = "ff_hidden";
    private unit = -1; // the largest, when it is known
    private row: ModelRow | null = null;
    private readonly matrix: InstanceType<AppKit["MatrixView"]>;
    private across = 1; // values in a line of the picture

    constructor(
        private readonly kit: AppKit,
        private readonly runner: Runner,
        private readonly of: Looked,
        private readonly say: (text: string) => void,
    ) {
        const { byId, input } = kit;
        this.matrix = new kit.MatrixView(
            byId("model-row"),
            {
                pick: (row, column) => {
                    const unit = row * this.across + column;
                    if (this.row && unit < this.row.row.length) this.goTo(this.stage, unit);
                },
            },
            "Numbers of the token",
        );
        input("model-stage").addEventListener("change", () => this.goTo(input("model-stage").value, -1));
        byId("model-sum").addEventListener("click", (event) => {
            const { stage, unit } =
                (event.target as Element).closest<HTMLElement>("[data-unit]")?.dataset ?? {};
            if (stage) this.goTo(stage, Number(unit));
        });
    }

    forgetUnit(): void {
        this.unit = -1;
    }
    private goTo(stage: string, unit: number): void {
        [this.stage, this.unit] = [stage, unit];
        void this.kit.app.during(this.fetch()).catch((error: Error) => this.say(error.message));
    }

    // Nothing is shown where another row was asked for meanwhile.
    async fetch(): Promise<void> {
        const { of, stage } = this,
            { run, layer, head, token } = of;
        if (!run) return;
        const isNewest = () =>
            run === of.run &&
            layer === of.layer &&
            head === of.head &&
            token === of.token &&
            stage === this.stage;
        const row = await this.runner.ask("row", { layer, stage, head, row: token });
        if (!isNewest()) return;
        const { length } = row.row;
        if (!(this.unit >= 0 && this.unit < length))
            this.unit = row.row.reduce((most, x, i) => (Math.abs(x) > Math.abs(row.row[most]) ? i : most), 0);
        const { unit } = this,
            found = await this.runner.ask("sum", { layer, stage: row.stage, head, row: token, column: unit });
        if (!isNewest() || unit !== this.unit) return;
        this.row = row;
        this.stage = row.stage;
        this.show(row);
        this.kit.setHtml(this.kit.byId("model-sum"), sumHtml(this.kit, row, unit, found));
    }

    private show({ stage, stages, row }: ModelRow): void {
        const { byId, setHtml, setText, escape, stageTexts } = this.kit,
            text = stageTexts[stage as keyof typeof stageTexts];
        setHtml(
            byId("model-stage"),
            stages
                .map(
                    ({ id }) =>
                        `<option value="${id}"${id === stage ? " selected" : ""}>${escape(stageTexts[id as keyof typeof stageTexts].label)}</option>`,
                )
                .join(""),
        );
        this.kit.input("model-stage").value = stage;
        setText(
            byId("model-row-name"),
            `Layer ${this.of.layer}: ${text.label} of “${this.of.names[this.of.token]}”`,
        );
        const { formula, heads } = stages.find(({ id }) => id === stage)!;
        setText(
            byId("model-row-about"),
            `${formula}: ${text.about}; ${row.length.toLocaleString("en")} numbers${heads > 1 ? " of this head" : ""}, in lines.`,
        );
        this.across = Math.min(row.length, acrossMost(row.length));
        while (row.length % this.across) --this.across;
        const down = row.length / this.across;
        this.matrix.set({
            data: row,
            rows: down,
            columns: this.across,
            rowLabels: Array.from({ length: down }, (_, i) => String(i * this.across)),
            columnLabels: Array.from({ length: this.across }, (_, i) => String(i)),
            name: text.label,
            map: "auto",
            signed: true,
            sums: false,
            log: false,
            low: null,
            high: null,
        });
        this.matrix.pick(Math.floor(this.unit / this.across), this.unit % this.across);
        this.matrix.show();
    }
}
