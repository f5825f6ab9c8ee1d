// Updates HTML with new HTML of the same structure, as each key press makes for the inspector: if only text and
// attribute values differ, they are written in place. Parsing HTML would take longer.
import { attribute, setHtml, written } from "../page/dom.ts";

export function rewriteHtml(element: Element, html: string): void {
    const before = written.get(element);
    if (before && before !== html && rewrite(element, before, html)) written.set(element, html);
    else setHtml(element, html);
}

// False if more differs, or if the element has other contents; then nothing is written.
const partsOf = (html: string) => html.split(/(<[^>]*>)/);
function rewrite(element: Element, before: string, html: string): boolean {
    const old = partsOf(before),
        parts = partsOf(html),
        walk = document.createTreeWalker(element, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT),
        writes: (() => void)[] = [],
        bones = (tag: string) => tag.replace(/(?<! data-\w+)="[^"]*"/g, ""); // a different element has other data-
    const same = parts.every((now, i) => {
        const was = old[i];
        if (!now || now.startsWith("</")) return now === was;
        const node = walk.nextNode();
        if (now === was) return node;
        if (!was || !node || (was + now).includes("&")) return false;
        if (now[0] !== "<") {
            writes.push(() => (node.nodeValue = now));
            return node.nodeValue === was;
        }
        for (const [, name, value] of now.matchAll(/ ([\w-]+)="([^"]*)"/g))
            writes.push(() => attribute(node as Element, name, value));
        return bones(now) === bones(was) && now.startsWith(`<${node.nodeName.toLowerCase()}`);
    });
    if (!same || parts.length !== old.length) return false;
    for (const write of writes) write();
    return true;
}
