// Controls on one side, the state on the other.
import type { App } from "./app/app.ts";
import { fill } from "./page/format.ts";
import { byId, fillOptions, hide, input, select, setText } from "./page/dom.ts";
import { firstState, levels, limits, presetState, type State } from "./page/state.ts";
import type { MaskDoor } from "./layer/mask_door.ts";

const temperatureOf = (slider: number) => Number((10 ** (slider / 100)).toFixed(2));
const sliderOf = (temperature: number) => Math.round(Math.log10(temperature) * 100);

function radios(name: string, set: (value: string) => void): void {
    for (const radio of document.querySelectorAll<HTMLInputElement>(`input[name="${name}"]`))
        radio.addEventListener("change", () => {
            if (radio.checked) set(radio.value);
        });
}
const check = (name: string, value: string) => {
    for (const radio of document.querySelectorAll<HTMLInputElement>(`input[name="${name}"]`))
        radio.checked = radio.value === value;
};

// Integer fields, and the keys that they set.
const seeds = [
    ["seed", "seed"],
    ["dropSeed", "dseed"],
] as const;

export function connectKnobs(app: App, editor: MaskDoor): void {
    const slide = (id: string, field: keyof State, of: (value: number) => number = (v) => v) =>
        input(id).addEventListener("input", () =>
            app.change({ [field]: of(input(id).valueAsNumber) }, { burst: field }),
        );
    for (const [id, key] of seeds)
        input(id).addEventListener("input", () => {
            const value = input(id).valueAsNumber,
                [low, high] = limits[key]!;
            if (Number.isInteger(value) && value >= low && value <= high)
                app.change({ [key]: value }, { burst: id });
        });
    input("text").addEventListener("input", () => {
        hide("invite", true);
        app.change({ text: input("text").value }, { burst: "text" });
    });
    radios("init", (init) => app.change({ init }));
    radios("route", (route) => app.change({ route }));
    slide("temperature", "temp", temperatureOf);
    slide("softcap", "cap");
    slide("window", "win");
    slide("p", "p");
    select("scale").addEventListener("change", () => app.change({ scale: select("scale").value }));
    select("variant").addEventListener("change", () => app.change({ rng: select("variant").value }));
    select("mask").addEventListener("change", () => {
        if (select("mask").value === "painted") editor.open((opened) => opened.adopt());
        else app.change({ mask: select("mask").value });
    });
    for (const id of ["heads", "kv", "length"] as const)
        select(id).addEventListener("change", () => {
            const value = Number(select(id).value);
            if (id !== "heads") {
                app.change(id === "kv" ? { kv: value } : { len: value });
                return;
            }
            app.change({
                heads: value,
                kv: value % app.state.kv ? value : Math.min(app.state.kv, value),
                head: Math.min(app.state.head, value - 1),
                cmp: -1,
            });
        });
    input("alibi").addEventListener("change", () => app.change({ alibi: input("alibi").checked }));
    byId("reset").addEventListener("click", () =>
        app.change({ ...presetState(app.state.level, app.state.task), text: app.state.text }),
    );
    document.querySelector(".levels")!.addEventListener("click", (event) => {
        const link = (event.target as Element).closest<HTMLElement>("[data-level]");
        if (!link) return;
        event.preventDefault();
        app.setLevel(Number(link.dataset.level));
    });
    byId("intro").addEventListener("click", (event) => {
        if ((event.target as Element).closest("[data-back]")) app.setLevel(app.state.level);
    });
    app.onShow.add(() => show(app));
    show(app);
}

function options(list: HTMLSelectElement, values: number[], current: number): void {
    fillOptions(list, (values.includes(current) ? values : [...values, current]).map(String));
    list.value = String(current);
}

let shown = "";
function show(app: App): void {
    const { state } = app.engine.info || !app.failed ? app : (app.result ?? { state: firstState() }),
        preset = presetState(state.level, state.task),
        { shape } = levels[state.level - 1],
        own = app.own !== null,
        given = own || state.task !== ""; // no weights are drawn
    const free = (field: HTMLInputElement) => app.following || document.activeElement !== field;
    if (free(input("text")) && input("text").value !== state.text) input("text").value = state.text;
    // A letter and a pick change none of the rest.
    const now = JSON.stringify([
        { ...state, text: "", i: 0, j: 0 },
        own,
        app.following,
        document.activeElement?.id,
    ]);
    if (now === shown) return;
    shown = now;
    for (const [id, key] of seeds) if (free(input(id))) input(id).value = String(state[key]);
    input("temperature").value = String(sliderOf(state.temp));
    setText(byId("temperature-out"), state.temp.toFixed(2));
    input("softcap").value = String(state.cap);
    setText(byId("softcap-out"), state.cap ? state.cap.toFixed(2) : texts.page.off);
    input("window").value = String(state.win);
    setText(byId("window-out"), fill(texts.spoken.back, state.win));
    hide("window-box", state.mask !== "window");
    input("p").value = String(state.p);
    setText(byId("p-out"), state.p.toFixed(2));
    input("alibi").checked = state.alibi;
    select("scale").value = state.scale;
    select("mask").value = state.mask;
    select("variant").value = state.rng;
    if (select("scale").selectedIndex < 0) {
        select("scale").add(new Option(state.scale, state.scale));
        select("scale").value = state.scale;
    }
    check("init", state.init);
    check("route", state.route);
    for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="init"]'))
        radio.disabled = given || preset.init === "none" || shape.spread !== undefined;
    input("seed").disabled = given || preset.init === "none";
    for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="route"]'))
        radio.disabled = state.mask === "none" && !state.alibi;
    const many = shape.heads > 1 && !given;
    hide("head-knobs", !many);
    hide("weight-knobs", state.task !== "");
    hide("length-box", state.level !== 7);
    select("length").value = String(state.len);
    const heads = [1, 2, 3, 4, 6, 8, 12].filter(
        (n) => n <= shape.heads && (shape.all_heads_width ?? n) % n === 0,
    );
    options(select("heads"), heads, state.heads);
    options(
        select("kv"),
        Array.from({ length: state.heads }, (_, i) => i + 1).filter((n) => state.heads % n === 0),
        state.kv,
    );
}
