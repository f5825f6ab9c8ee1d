// The code that runs a reader's own model: loaded when one is opened.
import type { AppKit } from "../app/kit.ts";
import { adoptStyle } from "../page/style_text.ts";
import { Runner, stopped } from "./model_runner.ts";
import { OpenModel } from "./open_model.ts";
import style from "./models.css";

export class Models {
    private readonly runner: Runner;
    private model: OpenModel | null = null;

    constructor(private readonly kit: AppKit) {
        adoptStyle(style);
        this.runner = new Runner(kit.app);
        this.runner.onProgress = (share) => this.say(`${(100 * share).toFixed(0)}%`, true);
        kit.app.onShow.add(() => this.model?.draw()); // colors may have changed
    }

    private say(text: string, canStop = false): void {
        this.kit.setText(this.kit.byId("model-note"), text);
        const stop = document.getElementById("model-stop");
        if (stop) stop.hidden = !canStop;
    }

    async open(files: File[]): Promise<void> {
        this.model?.close();
        this.model = null;
        const opened = this.runner.open(files);
        this.kit.byId("model-body").hidden = true;
        const size = files.reduce((sum, file) => sum + file.size, 0);
        this.say(`Reading ${this.kit.megabytes(size)} …`);
        try {
            const config = await opened;
            this.model = new OpenModel(this.kit, this.runner, files, config, (text, canStop) =>
                this.say(text, canStop),
            );
            await this.model.compute(true);
        } catch (error) {
            if ((error as Error).message !== stopped)
                this.say(`The model could not be opened: ${(error as Error).message}`);
        }
    }
}

export const begin = (kit: AppKit) => new Models(kit);
