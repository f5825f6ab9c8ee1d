// The way into a reader's own model, whose code and engine come when one is opened.
import type { App } from "../app/app.ts";
import { pageKit, type AppKit } from "../app/kit.ts";
import { byId, input, setText } from "../page/dom.ts";
import type { Models } from "./models.ts";

declare const MODELS_FILE: string;

// Files that are a model, not tensors to be shown.
export const isModel = (files: File[]) =>
    files.some(({ name }) => /\.gguf$/i.test(name) || name === "config.json");

export class ModelDoor {
    private coming: Promise<Models> | null = null;

    constructor(private readonly app: App) {
        for (const id of ["model-files", "model-folder"])
            input(id).addEventListener("change", () => {
                const files = [...(input(id).files ?? [])];
                input(id).value = "";
                void this.open(files);
            });
    }

    open(files: File[]): Promise<void> {
        return this.app.during(this.enter(files));
    }

    private async enter(files: File[]): Promise<void> {
        if (!files.length) return;
        const note = byId("model-note");
        byId("model").scrollIntoView();
        if (!MODELS_FILE) {
            setText(note, "This page is a single file without the engine for models: the site has it.");
            return;
        }
        try {
            this.coming ??= import(new URL(MODELS_FILE, import.meta.url).href).then(
                ({ begin }: { begin: (kit: AppKit) => Models }) => begin({ ...pageKit, app: this.app }),
            );
            await (await this.coming).open(files);
        } catch (error) {
            this.coming = null;
            setText(note, `What runs models could not be loaded: ${(error as Error).message}`);
        }
    }
}
