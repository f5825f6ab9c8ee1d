// The way to timings, threads by service worker, offline use.
import type { App } from "./app.ts";
import { byId } from "../page/dom.ts";
import { timingsKit } from "./kit.ts";

// From a disk there is nothing to keep, and no header to add.
const canServe = () => "serviceWorker" in navigator && location.protocol !== "file:";

export function connectSpeed(app: App): void {
    byId("bench").addEventListener("click", async () => {
        const button = byId<HTMLButtonElement>("bench");
        button.disabled = true;
        try {
            const { measure } = await app.during(import("./timings.ts"));
            await measure(app, timingsKit);
        } catch (error) {
            app.onTrouble((error as Error).message, false);
        } finally {
            button.disabled = false;
        }
    });
    byId("offline").addEventListener("click", () => void keepOffline(app, false));
    byId("cores").addEventListener("click", () => void keepOffline(app, true));
    if (!canServe()) byId("offline").hidden = true;
    else if (navigator.serviceWorker.controller) {
        byId("offline").textContent = "Kept offline";
        byId<HTMLButtonElement>("offline").disabled = true;
    }
}

export function showCores(app: App): void {
    const info = app.engine.info;
    const canIsolate = !crossOriginIsolated && canServe() && (navigator.hardwareConcurrency || 1) > 1;
    byId("cores").hidden = !canIsolate;
    byId("cores-note").textContent =
        !info || info.threads > 1 || !info.reason
            ? ""
            : canIsolate
              ? `1 thread: ${info.reason}. “Use all cores” lets a small script of this page add what is missing, and loads the page once more.`
              : `1 thread: ${info.reason}.`;
}

async function keepOffline(app: App, isolate: boolean): Promise<void> {
    try {
        await navigator.serviceWorker.register(isolate ? "sw.js?isolate=1" : "sw.js");
        await navigator.serviceWorker.ready;
        if (isolate) {
            location.reload();
            return;
        }
        // The engine in use belongs to the page's offline copy too.
        const variant = app.engine.info?.variant;
        await new Promise<void>((resolve) =>
            navigator.serviceWorker.controller
                ? resolve()
                : navigator.serviceWorker.addEventListener("controllerchange", () => resolve(), {
                      once: true,
                  }),
        );
        await app.engine.start(variant ?? "", app.state.task);
        app.recompute();
        byId("offline").textContent = "Kept offline";
        byId<HTMLButtonElement>("offline").disabled = true;
    } catch (error) {
        app.onTrouble(`This browser did not keep the page: ${(error as Error).message}`, false);
    }
}
