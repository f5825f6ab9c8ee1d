// New HTML over old of the same shape, as each key makes for the inspector: where only words and values of attributes differ,
// they are written where they stand. To read HTML takes longer.
import { attribute, setHtml, written } from "../page/dom.ts";

export function rewriteHtml(element: Element, html: string): void {
    const before = written.get(element);
    if (before && before !== html && rewrite(element, before, html)) written.set(element, html);
    else setHtml(element, html);
}

// False where more differs, or where something else stands there; nothing is written then.
const partsOf = (html: string) => html.split(/(<[^>]*>)/);
function rewrite(element: Element, before: string, html: string): boolean {
    const old = partsOf(before),
        parts = partsOf(html),
        walk = document.createTreeWalker(element, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT),
        writes: (() => void)[] = [],
        bones = (tag: string) => tag.replace(/(?<! data-\w+)="[^"]*"/g, ""); // what is another thing has other data
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
