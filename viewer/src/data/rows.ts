// A table as plain values: sorted by any column, copied as text, or saved as CSV.
import { formatCounted } from "./format";

export type Cell = string | number | null;

export interface TableColumn {
    name: string;
    // how a number is displayed; copies and files have the plain number
    show?: (value: number) => string;
    adds?: boolean; // whether a sum of the numbers makes sense
    bar?: boolean; // whether each number has a bar; the largest number of the column fills the cell
    names?: boolean; // names the row: in a narrow window it is above the other cells
}

export interface TableData {
    title: string;
    columns: TableColumn[];
    rows: Cell[][];
    ofAll?: boolean; // about all processes or both runs, not about the open one
}

/** Rows sorted by a column: numbers before text, empty cells last. Equal rows keep their order. */
export function sortedRows(rows: Cell[][], column: number, descending: boolean): Cell[][] {
    const rank = (value: Cell): number =>
        value === null || value === "" ? 2 : typeof value === "number" ? 0 : 1;
    const order = rows.map((_, at) => at);
    order.sort((a, b) => {
        const [x, y] = [rows[a][column], rows[b][column]];
        if (rank(x) !== rank(y)) return rank(x) - rank(y);
        const difference =
            typeof x === "number" && typeof y === "number"
                ? x - y
                : String(x ?? "").localeCompare(String(y ?? ""), "en", { numeric: true });
        return (descending ? -difference : difference) || a - b;
    });
    return order.map((at) => rows[at]);
}

export function shownCell(data: TableData, column: number, value: Cell): string {
    if (value === null) return "";
    return typeof value === "number"
        ? (data.columns[column].show?.(value) ?? String(value))
        : value;
}

/** Says how many rows there are, and the sum of the rows that are not among the first `shown`. */
export function rowsText(data: TableData, rows: Cell[][], shown: number): string {
    const all = formatCounted(rows.length, "row", "rows");
    if (rows.length <= shown) return all;
    const column = data.columns.findIndex((one) => one.adds);
    const sum = rows
        .slice(shown)
        .reduce((bytes, row) => bytes + (typeof row[column] === "number" ? row[column] : 0), 0);
    return (
        `${all}, the first ${shown} shown` +
        (column < 0 ? "" : `; sum of the others: ${shownCell(data, column, sum)}`)
    );
}

// A name from a trace must not become a formula in a spreadsheet.
function csvCell(value: Cell): string {
    if (value === null) return "";
    if (typeof value === "number") return String(value);
    // quoted, because some spreadsheets separate columns by semicolons
    return `"${harmless(value).replace(/"/g, '""')}"`;
}

function harmless(text: string): string {
    return /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text;
}

/** CSV after RFC 4180, with exact numbers. */
export function csvText(data: TableData, rows: Cell[][]): string {
    return (
        [data.columns.map((column) => column.name), ...rows]
            .map((row) => row.map(csvCell).join(","))
            .join("\r\n") + "\r\n"
    );
}

/** Text separated by tabs, as spreadsheets expect it in the clipboard. */
export function copyText(data: TableData, rows: Cell[][]): string {
    const plain = (value: Cell): string =>
        typeof value === "string"
            ? harmless(value.replace(/[\t\r\n]+/g, " "))
            : String(value ?? "");
    return [data.columns.map((column) => column.name), ...rows]
        .map((row) => row.map(plain).join("\t"))
        .join("\n");
}
