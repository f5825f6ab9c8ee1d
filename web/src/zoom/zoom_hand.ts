// The reader's hand on a map: pointers, the wheel and keys.
type Cell = [row: number, key: number];

interface Movable {
    readonly canvas: HTMLCanvasElement;
    readonly size: [width: number, height: number];
    readonly picked: Cell | null;
    cellAt(x: number, y: number): Cell | null;
    describe(cell: Cell): Promise<void>;
    pick(cell: Cell | null): void;
    pan(dx: number, dy: number): void;
    zoom(factor: number, x?: number, y?: number): void;
    fit(): void;
}

export function listen(map: Movable): void {
    const pointers = new Map<number, PointerEvent>();
    const { canvas } = map;
    let dragged = 0;
    canvas.addEventListener("pointerdown", (event) => {
        pointers.set(event.pointerId, event);
        canvas.setPointerCapture(event.pointerId);
        dragged = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
        const last = pointers.get(event.pointerId);
        if (!last) {
            const cell = map.cellAt(event.offsetX, event.offsetY);
            if (cell && !map.picked) void map.describe(cell);
            return;
        }
        const other = [...pointers.values()].find((p) => p.pointerId !== event.pointerId);
        dragged += Math.hypot(event.clientX - last.clientX, event.clientY - last.clientY);
        if (other) {
            const box = canvas.getBoundingClientRect();
            const distance = (p: PointerEvent) =>
                Math.max(1, Math.hypot(p.clientX - other.clientX, p.clientY - other.clientY));
            map.zoom(
                distance(last) / distance(event),
                (event.clientX + other.clientX) / 2 - box.left,
                (event.clientY + other.clientY) / 2 - box.top,
            );
        } else map.pan(event.clientX - last.clientX, event.clientY - last.clientY);
        pointers.set(event.pointerId, event);
    });
    canvas.addEventListener("pointerup", (event) => {
        if (pointers.size === 1 && dragged < 4) map.pick(map.cellAt(event.offsetX, event.offsetY));
        pointers.delete(event.pointerId);
    });
    canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
    canvas.addEventListener(
        "wheel",
        (event) => {
            if (document.activeElement !== canvas && !event.ctrlKey && !event.metaKey) return; // click it first
            event.preventDefault();
            map.zoom(Math.exp(event.deltaY / 400), event.offsetX, event.offsetY);
        },
        { passive: false },
    );
    canvas.addEventListener("keydown", (event) => {
        const moves: Record<string, () => void> = {
            ArrowUp: () => map.pan(0, 60),
            ArrowDown: () => map.pan(0, -60),
            ArrowLeft: () => map.pan(60, 0),
            ArrowRight: () => map.pan(-60, 0),
            "+": () => map.zoom(0.5),
            "=": () => map.zoom(0.5),
            "-": () => map.zoom(2),
            f: () => map.fit(),
            Home: () => map.fit(),
            Enter: () => map.pick(map.cellAt(map.size[0] / 2, map.size[1] / 2)),
            Escape: () => map.pick(null),
        };
        if (!moves[event.key] || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        moves[event.key]();
    });
}
