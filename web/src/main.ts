// Brings the static page to life.
import { App, type Held } from "./app/app.ts";
import { reshapeKit } from "./app/kit.ts";
import { byId, hide, setHtml, setText, taskEnds } from "./page/dom.ts";
import { duration, fill, withCommas } from "./page/format.ts";
import { connectExport, sessionText } from "./files/exporting.ts";
import { connectFiles } from "./files/files.ts";
import { Flow } from "./layer/flow.ts";
import { Heads } from "./layer/heads.ts";
import { connectKeys } from "./keys.ts";
import { connectKnobs } from "./knobs.ts";
import { connectLearned } from "./layer/learned.ts";
import { connectLessons } from "./lessons/lessons.ts";
import { MaskDoor } from "./layer/mask_door.ts";
import { connectSpeed, showCores } from "./app/speed.ts";
import { Workbench } from "./layer/stage.ts";
import { Story } from "./lessons/story.ts";
import { ModelDoor } from "./model/model_door.ts";
import { connectPlayground } from "./playground/play.ts";
import { addressOf, isWhole, longestAddress, toHash } from "./page/state.ts";
import { ZoomDoor } from "./zoom/zoom_door.ts";

const app = new App();
let door: ZoomDoor | undefined;
let restarts = 0,
    refusals = 0; // failures to allocate memory

function connectTheme(): void {
    const root = document.documentElement,
        system = matchMedia("(prefers-color-scheme: dark)");
    let unkept: string | null = null; // chosen in a browser that keeps nothing
    const kept = () => {
        try {
            return localStorage.getItem("fovea-theme");
        } catch {
            return unkept;
        }
    };
    const apply = () => {
        root.dataset.theme = kept() ?? (system.matches ? "dark" : "light");
        app.showSoon();
    };
    system.addEventListener("change", apply);
    byId("theme").addEventListener("click", () => {
        const next = root.dataset.theme === "dark" ? "light" : "dark";
        try {
            if ((next === "dark") === system.matches) localStorage.removeItem("fovea-theme");
            else localStorage.setItem("fovea-theme", next);
        } catch {
            unkept = next;
        }
        apply();
    });
    addEventListener("beforeprint", () => {
        root.dataset.theme = "light"; // pictures too
        app.show();
    });
    addEventListener("afterprint", apply);
    apply();
}

function connectTrouble(): void {
    const box = byId("notice");
    app.onTrouble = (text, canRetry, lasting = canRetry) => {
        if (!text && box.dataset.lasting) return;
        hide("notice", text === "");
        setText(box, text);
        delete box.dataset.lasting;
        if (lasting) box.dataset.lasting = "1";
        if (!canRetry) return;
        const retry = document.createElement("button");
        retry.className = "primary";
        retry.textContent = texts.app.tryAgain;
        retry.addEventListener("click", () => {
            delete box.dataset.lasting;
            box.hidden = true;
            void startEngine();
        });
        box.append(retry);
    };
}

const engineNames: Record<string, string> = {
    simd: "WASM SIMD",
    "simd-threads": "WASM SIMD",
    relaxed: "WASM relaxed SIMD",
    "relaxed-threads": "WASM relaxed SIMD",
};

function showBadge(): void {
    const info = app.engine.info;
    const root = document.documentElement;
    root.classList.toggle("is-live", info !== null);
    if (!info) {
        setHtml(byId("badge-text"), texts.page.still);
        return;
    }
    const threads = fill(info.threads > 1 ? texts.app.threads : texts.app.oneThread, info.threads),
        gpu = info.gpu.name
            ? ", WebGPU"
            : /^(the results of this GPU|the GPU was)/.test(info.gpu.reason)
              ? `, ${texts.app.noGpu}`
              : "";
    setHtml(
        byId("badge-text"),
        `${texts.app.live}<span class="more">: ${engineNames[info.variant]}, ${threads}${gpu}</span>`,
    );
    byId("badge").title = [
        info.reason,
        info.gpu.name
            ? fill(texts.app.zoomOn, info.gpu.name)
            : info.gpu.reason && `${texts.app.noGpu}: ${info.gpu.reason}`,
        app.result ? fill(texts.app.lastResult, duration(app.result.ms)) : "",
    ]
        .filter(Boolean)
        .join("; ");
}

// While nothing can compute, disables controls that would change text but not values.
function withoutEngine(failed: boolean): void {
    app.failed = failed;
    document.documentElement.classList.toggle("no-engine", failed);
    for (const part of document.querySelectorAll<HTMLElement>(
        "#sentence, #knobs, #rail, .levels li:not(.more)",
    ))
        part.inert = failed;
    for (const part of document.querySelectorAll<HTMLElement>(".live")) part.inert = !app.engine.info;
    showBadge();
    app.showSoon();
}

// A session embedded in the file (Python's fovea.view) is shown first, unless the address names another.
async function openWithin(): Promise<void> {
    const within = document.getElementById("session");
    if (!within) return;
    within.remove();
    if (!location.hash.includes("=")) await app.open(within.textContent ?? "", "this file");
}

async function startEngine(): Promise<void> {
    const wanted = new URLSearchParams(location.search).get("engine") ?? "";
    if (wanted === "static") {
        await connected;
        withoutEngine(true);
        app.onTrouble(texts.app.noEngine, false, true);
        return;
    }
    try {
        await app.engine.start(wanted, app.state.task || (/[#&]task=(\w+)/.exec(location.hash)?.[1] ?? ""));
        await connected;
        withoutEngine(false);
        showCores(app);
        await app.begin();
        await openWithin();
    } catch (error) {
        await connected;
        app.engine.stop("not started");
        withoutEngine(true);
        app.onTrouble(fill(texts.app.notStarted, (error as Error).message), true);
    }
}

app.engine.onGpu = () => showBadge();
app.engine.onDeath = (reason) => {
    showBadge();
    door?.zoom?.restart(); // and its tiles are free
    if (/memory/.test(reason) && ++refusals > 1) {
        if (app.state.level !== 7 || app.state.len <= 16) {
            withoutEngine(true);
            app.onTrouble(fill(texts.app.shorter, reason), true);
            return;
        }
        app.change({ len: Math.floor(app.state.len / 2) });
        app.onTrouble(fill(texts.app.fewer, reason, withCommas(app.state.len)), false, true);
        void startEngine();
        return;
    }
    if (restarts++ < 2) {
        void startEngine().then(() => {
            byId("announce").textContent = texts.app.restarted;
        });
        return;
    }
    withoutEngine(true);
    app.onTrouble(fill(texts.app.stopped, reason), true);
};

// Classes of the root by the address: what a page within another keeps, and larger type.
function connectFrame(): void {
    const keys = new URLSearchParams(app.framing),
        bare = keys.get("bare"),
        root = document.documentElement.classList;
    if (bare !== null && bare !== "0")
        root.add(
            "bare",
            ...["text", "stages", "tools", "knobs", "walk"]
                .filter((part) => bare.split(",").includes(part))
                .map((part) => `with-${part}`),
        );
    root.toggle("projector", (keys.get("big") ?? "0") !== "0");
}

// The engine is on its way while the page's parts are connected, which takes a phone several tasks.
let allConnected = () => {};
const connected = new Promise<void>((resolve) => (allConnected = resolve));
connectFrame();
await taskEnds();
void startEngine();
connectTheme();
connectTrouble();
await taskEnds();
const workbench = new Workbench(app);
const editor = new MaskDoor(app, workbench);
await taskEnds();
connectKnobs(app, editor);
connectLearned(app, workbench);
await taskEnds();
const story = new Story(app, workbench);
new Flow(app, workbench);
new Heads(app, workbench);
await taskEnds();
door = new ZoomDoor(app);
connectExport(app, workbench);
connectLessons(app);
connectSpeed(app);
connectPlayground(app);
await taskEnds();
connectFiles(app, new ModelDoor(app));
connectKeys(app, workbench, editor, story);
byId("badge").addEventListener("pointerenter", showBadge);
// The other language shows the same; a single file has one.
document.getElementById("language")?.addEventListener("click", (event) => {
    (event.target as HTMLAnchorElement).hash = location.hash;
});
byId("share").addEventListener("click", async () => {
    if (app.own) {
        app.onTrouble(fill(texts.app.tensorsInLink, app.ownName), false);
        return;
    }
    if (!isWhole(app.state)) {
        app.onTrouble(
            fill(texts.app.longLink, withCommas(toHash(app.state).length), withCommas(longestAddress)),
            false,
        );
        return;
    }
    const url = new URL(toHash(app.state), location.href).href;
    try {
        await navigator.clipboard.writeText(url);
        byId("share").textContent = texts.app.copied;
    } catch {
        location.hash = toHash(app.state);
        byId("share").textContent = texts.app.inAddress;
    }
    setTimeout(() => {
        byId("share").textContent = texts.page.copyLink;
    }, 2500);
});
app.onShow.add(() =>
    setText(
        byId("embed-code"),
        app.own
            ? texts.app.tensorsInFrame
            : `<iframe src="${location.origin}${location.pathname}${addressOf(app.state)}&bare=1" width="640" height="480"></iframe>`,
    ),
);
// Tensors do not outlive the page that read them.
const lost = (history.state as Held | null)?.own;
if (lost)
    app.onResult.add(function tell() {
        app.onResult.delete(tell);
        app.onTrouble(fill(texts.app.lost, lost), false);
    });
// For tests and the curious: what the page knows.
Object.assign(globalThis, {
    fovea: {
        app,
        workbench,
        get zoom() {
            return door?.zoom;
        },
        sessionText: () => sessionText(app),
        toHash,
    },
});
// The plane of queries and keys is loaded after the first values. The single-file page does not have it.
declare const VECTORS_FILE: string;
if (VECTORS_FILE)
    app.onResult.add(function load() {
        app.onResult.delete(load);
        void app.during(
            import(new URL(VECTORS_FILE, import.meta.url).href).then(({ begin }) => begin(app, workbench)),
        );
    });
app.onResult.add(function load() {
    if (app.state.task || app.state.level < 6) return;
    app.onResult.delete(load);
    void app.during(
        import("./layer/reshape.ts").then(({ Reshape }) => {
            new Reshape(app, reshapeKit);
            app.showSoon();
        }),
    );
});
allConnected();
