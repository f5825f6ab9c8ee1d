// Elements by id, with their types.
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
    const element = document.getElementById(id);
    if (!element) throw new Error(`no element #${id}`);
    return element as T;
}
export const input = (id: string) => byId<HTMLInputElement>(id);
export const select = (id: string) => byId<HTMLSelectElement>(id);

// Writing what is there already would cost a layout, and another text node one more than other words in the one there.
export function setText(element: Element, text: string): void {
    const part = element.childElementCount ? element : (element.firstChild ?? element);
    if (part.textContent !== text) part.textContent = text;
}
// Setting an unchanged value would also trigger the browser's autofill for a millisecond.
export function choose(list: HTMLSelectElement, value: string): void {
    if (list.value !== value) list.value = value;
}
// An attribute that is set to what it was has its styles computed again.
export function hide(id: string, on: boolean): void {
    const element = byId(id);
    if (element.hidden !== on) element.hidden = on;
}
export function attribute(element: Element, name: string, value: number | boolean | string): void {
    if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
}
export const written = new WeakMap<Element, string>();
// True where it was another text before. What is there is changed in place: a part that were replaced between a press and its
// release would lose the click, and a button its focus.
export function setHtml(element: Element, html: string): boolean {
    if (written.get(element) === html) return false;
    const wanted = element.cloneNode(false) as Element;
    wanted.innerHTML = html;
    become(element, wanted);
    written.set(element, html);
    return true;
}
// A press on one thing must not end as a click on another.
function whatIs(node: Node): string {
    let what = node.nodeName;
    if (node instanceof HTMLElement && node.hasAttributes())
        for (const name in node.dataset) what += ` ${name} ${node.dataset[name]}`;
    return what;
}
function become(there: Element, wanted: Element): void {
    if (there.isEqualNode(wanted)) return;
    const children = [...wanted.childNodes];
    children.forEach((next, i) => {
        const now = there.childNodes[i];
        if (!now) there.append(next);
        else if (whatIs(now) !== whatIs(next)) now.replaceWith(next);
        else if (now instanceof Element && next instanceof Element) {
            for (const { name } of [...now.attributes])
                if (!next.hasAttribute(name)) now.removeAttribute(name);
            for (const { name, value } of next.attributes)
                if (now.getAttribute(name) !== value) now.setAttribute(name, value);
            become(now, next);
        } else if (now.nodeValue !== next.nodeValue) now.nodeValue = next.nodeValue;
    });
    while (there.childNodes.length > children.length) there.lastChild!.remove();
}

const filled = new WeakMap<HTMLSelectElement, string>(); // asking the options is slow
export function fillOptions(
    list: HTMLSelectElement,
    names: string[],
    valueOf = (i: number) => names[i],
): void {
    const wanted = names.join("\n");
    if (filled.get(list) === wanted) return;
    filled.set(list, wanted);
    list.replaceChildren(...names.map((name, i) => new Option(name, valueOf(i))));
}

// The end of this task: what follows is another, and a touch comes between.
export const taskEnds = () => new Promise((resolve) => setTimeout(resolve));

// Drawing that waits until its part of the page is about to be seen: what is returned asks for it, at once where it is, and
// paper shows all.
export function drawnInSight(part: Element, draw: () => void): () => void {
    let inSight = false,
        wanted = false;
    const come = (seen: boolean) => {
        inSight = seen;
        if (!seen || !wanted) return;
        wanted = false;
        draw();
    };
    new IntersectionObserver(([entry]) => come(entry.isIntersecting), { rootMargin: "50%" }).observe(part);
    addEventListener("beforeprint", () => come(true));
    return () => {
        wanted = true;
        come(inSight);
    };
}

export function saveFile(name: string, type: string, content: BlobPart): void {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
