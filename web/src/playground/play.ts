// The way into the playground, whose code and engine come when a reader, or a link, asks for them.
import type { App } from "../app/app.ts";
import { colorAt, colorTable } from "../page/colors.ts";
import { byId, setText } from "../page/dom.ts";
import type { Kit } from "./playground.ts";

declare const PLAYGROUND_FILE: string;

export function connectPlayground(app: App): void {
    let begun = false;
    const begin = async () => {
        if (begun) return;
        begun = true;
        const note = byId("play-open-note");
        if (!PLAYGROUND_FILE) {
            setText(note, "This page is a single file without the trainer: the site has it.");
            return;
        }
        try {
            setText(note, "Loading the trainer …");
            const { begin: open } = (await app.during(
                import(new URL(PLAYGROUND_FILE, import.meta.url).href),
            )) as { begin: (kit: Kit) => void };
            byId("play-begin").hidden = true;
            byId("play-body").hidden = false;
            open({ app, colorAt, colorTable });
        } catch (error) {
            begun = false;
            setText(note, `The trainer could not be loaded: ${(error as Error).message}`);
        }
    };
    byId("play-open").addEventListener("click", () => void begin());
    app.onShow.add(() => {
        if (!app.state.train || begun) return;
        void begin();
        byId("play").scrollIntoView(); // a link into a run should show it
    });
}
