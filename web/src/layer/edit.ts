// Edits a number in a cell of X or of a weight matrix in a field over the cell. Loaded when the first cell is opened.
// It imports only types: code shared with the page would become its own file that the first view waits for.
import type { App, Result } from "../app/app.ts";
import type { Stage } from "../engine/protocol.ts";
import type { MatrixView } from "../matrix/matrix.ts";
import type { MatrixContent } from "../matrix/matrix_content.ts";

// The part of the workbench that a cell needs.
interface Workbench {
    readonly matrix: MatrixView;
    stage(): Stage | null;
    content(stage: Stage, result: Result): MatrixContent;
    say(text: string): void;
}
export interface EditLimits {
    least: number; // least value of a number
    most: number;
    cells: number; // cells that the reader can edit
    fill: (text: string, ...values: number[]) => string; // `fill` of page/format.ts
}

// Sets the cell's number to that of the field; an empty field restores the first number. Null if the text is not a
// valid number.
function withEdit(
    edits: string,
    { least, most, cells }: EditLimits,
    [stage, row, column]: [string, number, number],
    typed: string,
): string | null {
    const text = typed.trim().replace("−", "-").replace(",", "."),
        value = Number(text),
        cell = `${stage} ${row} ${column} `,
        all = edits.split(",").filter((edit) => edit && !edit.startsWith(cell));
    if (text && !(value >= least && value <= most)) return null;
    if (text) all.push(cell + value);
    return all.length > cells ? null : all.join(",");
}

// Returns the place in the window of a cell of the picture or of the table.
function boxOf(workbench: Workbench, host: HTMLElement, row: number, column: number): DOMRect | undefined {
    if (!workbench.matrix.element.hidden) return workbench.matrix.cellBox(row, column);
    return host.querySelector("table")?.rows[row + 1]?.cells[column + 1]?.getBoundingClientRect();
}

export function openCell(
    app: App,
    workbench: Workbench,
    limits: EditLimits,
    row: number,
    column: number,
): void {
    const stage = workbench.stage(),
        content = stage && app.result && workbench.content(stage, app.result),
        host = document.getElementById("matrix")!;
    if (!content || host.querySelector(".cell-field")) return;
    row = Math.min(row, content.rows - 1);
    column = Math.min(column, content.columns - 1);
    const box = boxOf(workbench, host, row, column);
    if (!box) return;
    const field = document.createElement("input"),
        outer = host.getBoundingClientRect(),
        wide = Math.max(88, box.width),
        left = box.left - outer.left + (box.width - wide) / 2;
    field.className = "cell-field";
    field.inputMode = "decimal";
    field.autocomplete = "off";
    field.ariaLabel = limits.fill(texts.stage.newNumber, row, column);
    field.value = String(Number(content.data[row * content.columns + column].toPrecision(7)));
    const style = {
        left: Math.max(0, Math.min(left, outer.width - wide)) + host.scrollLeft,
        top: box.top - outer.top + host.scrollTop,
        width: wide,
        height: Math.max(24, box.height),
    };
    for (const [name, value] of Object.entries(style)) field.style.setProperty(name, `${value}px`);
    const before = field.value;
    let open = true;
    const close = (focus: boolean) => {
        open = false;
        field.remove();
        if (focus) workbench.matrix.focus();
    };
    // False if the text is not a valid number.
    const take = (focus: boolean): boolean => {
        const edits =
            field.value === before
                ? app.state.edits
                : withEdit(app.state.edits, limits, [stage.id, row, column], field.value);
        if (edits === null) {
            field.ariaInvalid = "true";
            workbench.say(limits.fill(texts.stage.badNumber, limits.least, limits.most, limits.cells));
            return false;
        }
        close(focus);
        if (edits !== app.state.edits) app.change({ edits });
        return true;
    };
    field.addEventListener("keydown", (event) => {
        event.stopPropagation();
        if (event.key === "Enter") take(true);
        else if (event.key === "Escape") close(true);
    });
    field.addEventListener("blur", () => {
        if (open && !take(false)) close(false);
    });
    host.append(field);
    field.focus({ preventScroll: true });
    field.select();
}
