// Controls on one side, the state on the other.
import type { App } from "./app.ts";
import { byId, input, select, setText } from "./dom.ts";
import { presetState, type State } from "./state.ts";
import type { MaskEditor } from "./mask.ts";

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

export function connectKnobs(app: App, editor: MaskEditor): void {
    const slide = (id: string, field: keyof State, of: (value: number) => number = (v) => v) =>
        input(id).addEventListener("input", () =>
            app.change({ [field]: of(input(id).valueAsNumber) }, { burst: field }),
        );
    const whole = (id: "seed" | "dropSeed") =>
        input(id).addEventListener("input", () => {
            const value = input(id).valueAsNumber;
            if (Number.isInteger(value) && value >= 0 && value <= 4294967295)
                app.change({ [id]: value }, { burst: id });
        });
    input("text").addEventListener("input", () => {
        byId("invite").hidden = true;
        app.change({ text: input("text").value }, { burst: "text" });
    });
    radios("init", (init) => app.change({ init }));
    radios("route", (route) => app.change({ route }));
    whole("seed");
    whole("dropSeed");
    slide("temperature", "temperature", temperatureOf);
    slide("softcap", "softcap");
    slide("window", "window");
    slide("p", "p");
    for (const id of ["scale", "variant"] as const)
        select(id).addEventListener("change", () => app.change({ [id]: select(id).value }));
    select("mask").addEventListener("change", () => {
        if (select("mask").value === "painted") editor.adopt();
        else app.change({ mask: select("mask").value });
    });
    for (const id of ["heads", "kv", "length"] as const)
        select(id).addEventListener("change", () => {
            const value = Number(select(id).value);
            if (id !== "heads") {
                app.change({ [id]: value });
                return;
            }
            app.change({
                heads: value,
                kv: value % app.state.kv ? value : Math.min(app.state.kv, value),
                head: Math.min(app.state.head, value - 1),
                compare: -1,
            });
        });
    input("alibi").addEventListener("change", () => app.change({ alibi: input("alibi").checked }));
    byId("reset").addEventListener("click", () =>
        app.change({ ...presetState(app.state.level), text: app.state.text }),
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
    if ([...list.options].map((o) => o.value).join() !== values.join())
        list.replaceChildren(...values.map((v) => new Option(String(v), String(v))));
    list.value = String(current);
    if (list.selectedIndex < 0) list.add(new Option(String(current), String(current), true, true));
}

function show(app: App): void {
    const { state } = app.engine.info || !app.failed ? app : (app.result ?? { state: presetState(2) }),
        preset = presetState(state.level),
        own = app.own !== null;
    const free = (field: HTMLInputElement) => app.following || document.activeElement !== field;
    if (free(input("text")) && input("text").value !== state.text) input("text").value = state.text;
    for (const id of ["seed", "dropSeed"] as const) if (free(input(id))) input(id).value = String(state[id]);
    input("temperature").value = String(sliderOf(state.temperature));
    setText(byId("temperature-out"), state.temperature.toFixed(2));
    input("softcap").value = String(state.softcap);
    setText(byId("softcap-out"), state.softcap ? state.softcap.toFixed(2) : "off");
    input("window").value = String(state.window);
    setText(byId("window-out"), `${state.window} back`);
    byId("window-box").hidden = state.mask !== "window";
    input("p").value = String(state.p);
    setText(byId("p-out"), state.p.toFixed(2));
    input("alibi").checked = state.alibi;
    for (const id of ["scale", "mask", "variant"] as const) select(id).value = state[id];
    if (select("scale").selectedIndex < 0) {
        select("scale").add(new Option(state.scale, state.scale));
        select("scale").value = state.scale;
    }
    check("init", state.init);
    check("route", state.route);
    for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="init"]'))
        radio.disabled = own || preset.init === "none" || state.level === 7;
    input("seed").disabled = own || preset.init === "none";
    for (const radio of document.querySelectorAll<HTMLInputElement>('input[name="route"]'))
        radio.disabled = state.mask === "none" && !state.alibi;
    const many = state.level >= 5 && !own;
    byId("head-knobs").hidden = !many;
    byId("length-box").hidden = state.level !== 7;
    select("length").value = String(state.length);
    const heads = state.level === 7 ? [1, 2, 3, 4, 6, 12] : state.level === 5 ? [1, 2, 3, 4, 6, 8] : [1, 2];
    options(select("heads"), heads, state.heads);
    options(
        select("kv"),
        Array.from({ length: state.heads }, (_, i) => i + 1).filter((n) => state.heads % n === 0),
        state.kv,
    );
}
