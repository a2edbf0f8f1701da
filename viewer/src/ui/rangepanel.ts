// The panel of the selected ranges of time: their figures, and their lines by the change of
// allocated memory or by the bytes that they allocated. Two ranges stand side by side.
import {
    formatBlocks,
    formatBytes,
    formatChange,
    formatCount,
    formatCounted,
    formatTime,
    momentsApart,
} from "../data/format";
import type { RangeFigures } from "../data/eventindex";
import { amount, type LineChange, type LineRow, lineRows } from "../data/rangelines";
import { laterOf, phaseOf, type Range } from "../data/ranges";
import type { Cell, TableColumn, TableData } from "../data/rows";
import { rangeColour, rangeNames } from "../draw/ranges";
import { clearRanges, compareRange, zoomToRanges } from "./actions";
import { choosable, heads } from "./cards";
import { showTables } from "./datatable";
import { button, byId, el, keepFocus } from "./dom";
import { saveButton } from "./image";
import type { MeasuredRange } from "./rangework";
import type { PageView } from "./view";

const mostLines = 10;

/** "step 4" if the range is exactly this step or phase, otherwise "". */
function phaseName({ model }: PageView, range: Range): string {
    const phase = phaseOf(model, range);
    return phase < 0 ? "" : model.head.phase_names[model.phases.name[phase]];
}

// Edges and peaks of the ranges, told apart.
function moments({ model, ranges }: PageView): (tick: number) => string {
    const { tick_ns } = model.head;
    const ticks = ranges.flatMap(({ range, figures }) => [
        ...range,
        ...(figures ? [figures.peakTick] : []),
    ]);
    const moment = momentsApart(ticks.map((tick) => tick * tick_ns));
    return (tick) => moment(tick * tick_ns);
}

function timesText(page: PageView, [from, to]: Range): string {
    const { tick_ns } = page.model.head;
    const moment = moments(page);
    return `${moment(from)} to ${moment(to)} (${formatTime((to - from) * tick_ns)})`;
}

/** One line about each range, for the status line and the label in the pictures. */
export function rangeText(figures: RangeFigures): string {
    return `${formatChange(figures.after - figures.before)}, peak ${formatBytes(figures.peak)}`;
}

/** The ranges with their labels in the pictures. */
export function rangeLabels({ ranges }: PageView): { range: Range; text: string }[] {
    return ranges.map(({ range, figures }) => ({
        range,
        text: figures ? `: ${rangeText(figures)}` : "",
    }));
}

type FigureRow = [
    name: string,
    of: (figures: RangeFigures) => number,
    show: (of: RangeFigures) => string,
];

const figureRows: FigureRow[] = [
    [
        "change of allocated memory",
        ({ before, after }) => after - before,
        ({ before, after }) => formatChange(after - before),
    ],
    [
        "allocated",
        ({ allocatedBytes }) => allocatedBytes,
        ({ allocatedBytes, allocations }) =>
            `${formatBytes(allocatedBytes)} in ${formatBlocks(allocations)}`,
    ],
    [
        "freed",
        ({ freedBytes }) => freedBytes,
        ({ freedBytes, frees }) => `${formatBytes(freedBytes)} in ${formatBlocks(frees)}`,
    ],
    ["peak allocated", ({ peak }) => peak, ({ peak }) => formatBytes(peak)],
];

// The moment of the peak is a button: it moves the cursor there.
function figureCell(
    page: PageView,
    name: string,
    figures: RangeFigures,
    text: string,
): HTMLElement {
    const cell = el("td", {}, text);
    if (name !== "peak allocated") return cell;
    cell.append(
        " at ",
        button(moments(page)(figures.peakTick), "move the cursor to this peak", () =>
            page.change({ cursor: figures.peakTick }),
        ),
    );
    return cell;
}

const later = (ranges: readonly MeasuredRange[]): number =>
    laterOf(ranges.map(({ range }) => range));

/** "A − B": how two ranges are compared. */
function differenceName(ranges: readonly MeasuredRange[]): string {
    const at = later(ranges);
    return `${rangeNames[at]} − ${rangeNames[1 - at]}`;
}

function figureTable(page: PageView, ranges: readonly MeasuredRange[]): HTMLElement {
    const known = ranges.map(({ figures }) => figures!);
    const two = known.length > 1;
    const last = later(ranges);
    return el(
        "table",
        { class: "figures" },
        el(
            "thead",
            {},
            el(
                "tr",
                {},
                el("td"),
                ...ranges.map(({ range }, at) => {
                    const letter = el("b", { class: "letter" }, rangeNames[at]);
                    letter.style.background = rangeColour(page.colours, at);
                    const name = phaseName(page, range);
                    return el(
                        "th",
                        { scope: "col" },
                        letter,
                        name && el("b", {}, `${name}: `),
                        timesText(page, range),
                    );
                }),
                two && el("th", { scope: "col" }, differenceName(ranges)),
            ),
        ),
        el(
            "tbody",
            {},
            ...figureRows.map(([name, of, show]) =>
                el(
                    "tr",
                    {},
                    el("th", { scope: "row" }, name),
                    ...known.map((figures) => figureCell(page, name, figures, show(figures))),
                    two && el("td", {}, formatChange(of(known[last]) - of(known[1 - last]))),
                ),
            ),
        ),
    );
}

// ---- the lines ----------------------------------------------------------------------------------

interface LineCell {
    text: string;
    orders: boolean; // whether the rows are sorted by this figure
}

/** The figures of a line, in the order of `lineHeads()`. */
function lineCells({ view }: PageView, row: LineRow): LineCell[] {
    const by = view.by;
    if (row.of.length > 1) {
        const shown = (change: LineChange | undefined): string =>
            by === "change"
                ? formatChange(amount(change, "change"))
                : formatBytes(amount(change, "allocated"));
        return [
            { text: formatChange(row.weight), orders: true },
            ...row.of.map((change) => ({ text: shown(change), orders: false })),
        ];
    }
    const [change] = row.of;
    return [
        { text: formatChange(amount(change, "change")), orders: by === "change" },
        { text: formatBytes(change!.allocated), orders: by === "allocated" },
        { text: formatCount(change!.allocations), orders: false },
        { text: formatBlocks(change!.frees), orders: false },
    ];
}

function lineHeads({ ranges, view }: PageView): [name: string, title: string][] {
    const what =
        view.by === "change"
            ? "bytes that the line allocated, minus bytes of its blocks that were freed"
            : "bytes that the line allocated, whether freed or not";
    return [
        ...(ranges.length > 1
            ? ([
                  [differenceName(ranges), `${what}: the difference of the two ranges`],
                  ["A", `${what}, in range A`],
                  ["B", `${what}, in range B`],
              ] as [string, string][])
            : ([
                  [
                      "change",
                      "bytes that the line allocated in the range, minus bytes of its blocks that were freed in the range",
                  ],
                  ["allocated", "bytes that the line allocated in the range, whether freed or not"],
                  ["blocks", "the number of blocks allocated in the range"],
                  ["freed", "the number of the line's blocks freed in the range"],
              ] as [string, string][])),
        ["allocated at", "the line that allocated the blocks"],
    ];
}

function lineRow(page: PageView, row: LineRow): HTMLElement {
    const { view, stacks } = page;
    const chosen = view.line === row.line;
    return choosable(
        el(
            "tr",
            { tabindex: "0", "aria-selected": String(chosen) },
            ...lineCells(page, row).map(({ text, orders }) =>
                el("td", { class: orders ? "size" : "" }, text),
            ),
            el("td", { class: "wrap" }, el("code", {}, stacks.lineName(row.line))),
        ),
        () => page.change({ line: chosen ? -1 : row.line, stack: -1, culprit: -1 }),
    );
}

function lineTable(page: PageView, rows: LineRow[]): HTMLElement {
    return el(
        "table",
        { role: "grid" },
        heads(lineHeads(page)),
        el("tbody", {}, ...rows.map((row) => lineRow(page, row))),
    );
}

/** The lines that differ, and a text about those that are not shown. */
function lineSection(page: PageView): HTMLElement[] {
    const { ranges, view } = page;
    const said = (text: string): HTMLElement => el("p", { class: "faint" }, text);
    const lines = ranges.map((one) => one.lines);
    if (!lines.every((one) => one !== null)) return [said("Adding up by line.")];
    const rows = lineRows(lines, view.by, later(ranges)).filter(({ weight }) => weight !== 0);
    if (rows.length === 0) return [said("No line differs.")];
    const more = rows.slice(mostLines);
    const sum = more.reduce((bytes, { weight }) => bytes + weight, 0);
    const amountText =
        view.by === "change" || ranges.length > 1 ? formatChange(sum) : formatBytes(sum);
    return [
        lineTable(page, rows.slice(0, mostLines)),
        ...(more.length > 0
            ? [
                  said(
                      `and ${formatCounted(more.length, "more line", "more lines")}: ${amountText} in all`,
                  ),
              ]
            : []),
    ];
}

/** All lines of the ranges, with all figures. */
export function rangeTables(page: PageView): TableData[] {
    const { ranges, stacks } = page;
    const two = ranges.length > 1;
    const columns: TableColumn[] = ranges.flatMap((_, at): TableColumn[] => {
        const of = two ? ` in ${rangeNames[at]}` : "";
        return [
            { name: `change${of}`, show: formatChange, adds: true },
            { name: `allocated${of}`, show: formatBytes },
            { name: `blocks allocated${of}`, show: formatCount },
            { name: `freed${of}`, show: formatBytes },
            { name: `blocks freed${of}`, show: formatCount },
        ];
    });
    const rows = lineRows(
        ranges.map(({ lines }) => lines ?? []),
        page.view.by,
        later(ranges),
    ).map(({ line, of }): Cell[] => [
        ...of.flatMap((change) => [
            amount(change, "change"),
            change?.allocated ?? 0,
            change?.allocations ?? 0,
            change?.freed ?? 0,
            change?.frees ?? 0,
        ]),
        stacks.lineName(line),
    ]);
    const times = ranges.map(
        ({ range }, at) => `${two ? `${rangeNames[at]}: ` : ""}${timesText(page, range)}`,
    );
    return [
        {
            title: `Memory by line, ${times.join("; ")}`,
            columns: [...columns, { name: "line", names: true }],
            rows,
        },
    ];
}

// ---- the panel ----------------------------------------------------------------------------------

function leftOutText({ model }: PageView): string {
    const left = model.head.blocks_left_out;
    return left > 0
        ? `Without ${formatCounted(left, "short-lived block", "short-lived blocks")} that the file leaves out.`
        : "";
}

function orderButton(page: PageView, by: "change" | "allocated", text: string): HTMLElement {
    const element = button(text, `the lines by ${text}`, () => page.change({ by }));
    element.setAttribute("aria-pressed", String(page.view.by === by));
    return element;
}

export function showRanges(page: PageView): void {
    const { ranges, model } = page;
    const panel = byId("range");
    panel.hidden = ranges.length === 0;
    if (panel.hidden) {
        panel.replaceChildren();
        return;
    }
    const two = ranges.length > 1;
    panel.classList.toggle("two", two);
    const known = ranges.every(({ figures }) => figures !== null);
    const left = leftOutText(page);
    keepFocus(panel, "button, tr[tabindex]", () =>
        panel.replaceChildren(
            el(
                "div",
                { class: "headline" },
                el("h2", {}, two ? "Two ranges of time" : "Range of time"),
                el("span", { class: "grow" }),
                button(
                    two ? "only A" : "compare",
                    two
                        ? "remove the second range (R)"
                        : "compare with the step or the time before; then drag to choose another (R)",
                    () => compareRange(page),
                ),
                button("zoom", "show the range in the whole width (Z)", () => zoomToRanges(page)),
                button("table", "all lines of the range as a table", () =>
                    showTables(page, ...rangeTables(page)),
                ),
                saveButton(page, panel, "the range of time"),
                button("×", "remove the range (r)", () => clearRanges(page)),
            ),
            ...(known
                ? [
                      figureTable(page, ranges),
                      el(
                          "div",
                          { class: "order" },
                          el("h3", {}, "By line"),
                          orderButton(page, "change", "change"),
                          orderButton(page, "allocated", "bytes allocated"),
                      ),
                      ...lineSection(page),
                  ]
                : [
                      el(
                          "p",
                          { class: "faint" },
                          model.complete ? "Sorting the events by time." : "Reading the blocks.",
                      ),
                  ]),
            ...(left ? [el("p", { class: "faint" }, left)] : []),
        ),
    );
}
