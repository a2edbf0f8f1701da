// Tables in the dialog. They can be sorted, copied and saved as CSV. A long table shows its first
// rows and says how many there are. Copies and files contain all rows.
import {
    type Cell,
    copyText,
    csvText,
    rowsText,
    shownCell,
    sortedRows,
    type TableData,
} from "../data/rows";
import { copy } from "./copy";
import { el, showDialog } from "./dom";
import { formatButtons } from "./image";
import { saveText } from "./save";
import type { PageView } from "./view";

const mostShown = 500;
// A narrow window has room for more columns only if all are figures (page.css).
const mostNarrow = 4;

function amountBar(share: number): HTMLElement {
    const bar = el("i", { class: "amount-bar" });
    bar.style.width = `${100 * share}%`;
    return bar;
}

export function dataTable(page: PageView, data: TableData): HTMLElement {
    let rows = data.rows;
    let sorted = -1;
    let descending = false;
    const body = el("tbody");
    const said = el("span", { class: "faint", role: "status" });
    let count = "";
    const heads = data.columns.map((column, at) => {
        const button = el("button", { type: "button", class: "sort" }, column.name);
        const head = el("th", { scope: "col" }, button);
        button.addEventListener("click", () => {
            // The first click sorts numbers with the largest first, names from A.
            descending =
                sorted === at
                    ? !descending
                    : typeof data.rows.find((row) => row[at] !== null)?.[at] === "number";
            sorted = at;
            rows = sortedRows(data.rows, at, descending);
            heads.forEach((other) => other.removeAttribute("aria-sort"));
            head.setAttribute("aria-sort", descending ? "descending" : "ascending");
            fill();
        });
        return head;
    });
    const largest = data.columns.map(({ bar }, at) =>
        bar ? data.rows.reduce((most, row) => Math.max(most, Number(row[at])), 0) : 0,
    );
    const fill = (): void => {
        const cell = (value: Cell, at: number): HTMLElement =>
            el(
                "td",
                {
                    "data-label": data.columns[at].name,
                    ...(typeof value === "number"
                        ? { class: "amount", title: String(value) }
                        : { class: data.columns[at].names ? "wrap names" : "wrap" }),
                },
                shownCell(data, at, value),
                largest[at] > 0 && amountBar(Number(value) / largest[at]),
            );
        body.replaceChildren(
            ...rows.slice(0, mostShown).map((row) => el("tr", {}, ...row.map(cell))),
        );
        said.textContent = count = rowsText(data, rows, mostShown);
    };
    fill();
    const copying = el("button", { type: "button" }, "copy");
    copying.addEventListener(
        "click",
        () =>
            void copy(copyText(data, rows)).then((done) => {
                said.textContent = done
                    ? `${count}, copied`
                    : `${count}; the browser does not allow copying here: save the CSV`;
            }),
    );
    const save = el("button", { type: "button" }, "CSV");
    save.addEventListener("click", () =>
        saveText(
            csvText(data, rows),
            "text/csv",
            `fragtrace-${data.title
                .toLowerCase()
                .replace(/[^a-z0-9]+/g, "-")
                .slice(0, 40)}.csv`,
        ),
    );
    const head = el(
        "div",
        { class: "headline" },
        el("h2", {}, data.title),
        said,
        el("span", { class: "grow" }),
        copying,
        save,
    );
    const look = [
        "datatable",
        data.columns.length > mostNarrow && data.columns.some(({ show }) => !show) && "many",
        data.ofAll && "of-all",
    ].filter(Boolean);
    const panel = el(
        "section",
        { class: look.join(" ") },
        head,
        el("table", {}, el("thead", {}, el("tr", {}, ...heads)), body),
    );
    head.append(...formatButtons(page, panel, data.title));
    return panel;
}

export function showTables(page: PageView, ...tables: TableData[]): void {
    showDialog(...tables.map((data) => dataTable(page, data)));
}
