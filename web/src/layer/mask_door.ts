// Loads the mask editor when it is first wanted.
import type { App } from "../app/app.ts";
import { maskKit } from "../app/kit.ts";
import { byId } from "../page/dom.ts";
import type { MaskEditor } from "./mask.ts";
import type { Workbench } from "./stage.ts";

export class MaskDoor {
    private editor: MaskEditor | null = null;

    constructor(
        private readonly app: App,
        private readonly workbench: Workbench,
    ) {
        byId("paint").addEventListener("click", () => this.open((editor) => editor.toggle()));
    }

    open(use: (editor: MaskEditor) => void): void {
        const loaded = import("./mask.ts").then(({ MaskEditor: Editor }) =>
            use((this.editor ??= new Editor(this.app, this.workbench, maskKit))),
        );
        this.app.during(loaded).catch((error: Error) => {
            this.app.onTrouble(`The mask editor could not be loaded: ${error.message}`, false);
            this.app.showSoon(); // the list of masks has the mask that is used
        });
    }
}
