// Elements by id, with their types.
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
    const element = document.getElementById(id);
    if (!element) throw new Error(`no element #${id}`);
    return element as T;
}
export const input = (id: string) => byId<HTMLInputElement>(id);
export const select = (id: string) => byId<HTMLSelectElement>(id);

export function saveFile(name: string, type: string, content: BlobPart): void {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
