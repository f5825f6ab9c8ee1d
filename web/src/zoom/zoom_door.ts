// The way into the deep zoom, whose code comes when a reader, or a link, asks for it.
import type { App } from "../app/app.ts";
import { pageKit } from "../app/kit.ts";
import { byId, select } from "../page/dom.ts";
import type { DeepZoom } from "./zoom.ts";

export class ZoomDoor {
    zoom: DeepZoom | null = null;
    private coming: Promise<DeepZoom> | null = null;
    private opened = false;

    constructor(private readonly app: App) {
        byId("zoom-start").addEventListener("click", () => void this.enter((zoom) => zoom.begin()));
        app.onResult.add(() => {
            if (this.opened) return;
            this.opened = true;
            if (!app.state.zoom) return;
            this.goThere();
            // A link into the map should show it, even while content above it is still loading.
            const stay = new ResizeObserver(() => byId("zoom").scrollIntoView());
            stay.observe(document.body);
            for (const act of ["wheel", "touchstart", "pointerdown", "keydown"])
                addEventListener(act, () => stay.disconnect(), { once: true });
        });
        app.onShow.add(() => {
            if (app.following && this.opened) this.goThere();
            this.zoom?.follow();
            this.zoom?.draw();
        });
        app.showLong = (own, name, rules) => {
            void this.enter((zoom) => zoom.openFile(own, name, rules));
            byId("zoom").scrollIntoView();
        };
        // "Deep zoom shows all of them", next to a cut text.
        byId("stage-about").addEventListener("click", (event) => {
            if (!(event.target as Element).closest('[href="#zoom"]')) return;
            select("zoom-tokens").value = "own";
            void this.enter((zoom) => zoom.begin());
        });
    }

    private goThere(): void {
        if (this.app.state.zoom) void this.enter((zoom) => zoom.goTo(this.app.state.zoom));
    }

    private async enter(then: (zoom: DeepZoom) => unknown): Promise<void> {
        try {
            this.coming ??= this.app
                .during(import("./zoom.ts"))
                .then(({ DeepZoom }) => (this.zoom = new DeepZoom(this.app, pageKit)));
            then(await this.coming);
        } catch (error) {
            this.coming = null;
            this.app.onTrouble(`Deep zoom could not be loaded: ${(error as Error).message}`, false);
        }
    }
}
