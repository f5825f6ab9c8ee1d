// The contents of a matrix, and the listeners for its events.
export interface MatrixContent {
    data: Float32Array;
    rows: number;
    columns: number;
    rowLabels: string[];
    columnLabels: string[];
    name: string;
    map: string;
    signed: boolean;
    sums: boolean; // the row sums at the right edge
    log: boolean;
    low: number | null;
    high: number | null;
    // Cells below the diagonal from `data`, above it from this (head A against head B).
    upper?: Float32Array;
    // The scores as the softmax saw them: minus infinity where a mask hides the cell, whose 0 is then no weight.
    masked?: Float32Array;
    // Cells that are framed: first row and column, how many, columns to the right for each row; and what they say.
    stripe?: { run: number[]; text: string };
    edited?: Set<number>; // cells with the reader's own values
}

export const isHidden = (content: MatrixContent, cell: number): boolean =>
    content.masked?.[cell] === -Infinity;

// A pick shows the same values again: a million of them need no second look.
export function sameNumbers(a: MatrixContent, b: MatrixContent): boolean {
    const same = (x?: Float32Array, y?: Float32Array) =>
        x?.buffer === y?.buffer && x?.byteOffset === y?.byteOffset && x?.length === y?.length;
    return (
        same(a.data, b.data) &&
        same(a.upper, b.upper) &&
        same(a.masked, b.masked) &&
        a.rows === b.rows &&
        a.columns === b.columns &&
        a.map === b.map &&
        a.signed === b.signed &&
        a.log === b.log &&
        a.low === b.low &&
        a.high === b.high
    );
}

export interface MatrixHandlers {
    pick(row: number, column: number): void;
    hover?(row: number, column: number): void;
    moved?(view: string): void; // zoomed or panned by the reader
    open?(row: number, column: number): void; // a double click, or Enter
}

// The events for the mask editor while it is open: a pointer's stroke, and the same by keyboard.
export interface Brush {
    down(cell: [number, number]): void;
    over(cell: [number, number]): void;
    up(cell: [number, number] | null): void;
    press(cell: [number, number]): void; // Space or Enter
    along(from: [number, number], to: [number, number]): void; // Shift and an arrow
    moved(cell: [number, number]): void;
    cancel(): void;
}
