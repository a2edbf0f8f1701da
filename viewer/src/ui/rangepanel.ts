// The panel of the selected ranges of time: their figures, and their lines by the change of
// allocated memory or by the bytes that they allocated. Two ranges stand side by side.
import {
    formatBlocks,
    formatBytes,
    formatChange,
    formatCount,
    formatCounted,
    formatTime,
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
import type { MeasuredRange } from "./rangework";
import type { PageView } from "./view";

const mostLines = 10;

/** "step 4" if the range is exactly this step or phase, otherwise "". */
function phaseName({ model }: PageView, range: Range): string {
    const phase = phaseOf(model, range);
    return phase < 0 ? "" : model.head.phase_names[model.phases.name[phase]];
}

function timesText(page: PageView, [from, to]: Range): string {
    const { tick_ns } = page.model.head;
    return `${formatTime(from * tick_ns)} to ${formatTime(to * tick_ns)} (${formatTime((to - from) * tick_ns)})`;
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
    const time = formatTime(figures.peakTick * page.model.head.tick_ns);
    cell.append(
        " at ",
        button(time, "move the cursor to this peak", () =>
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

function lineRow(page: PageView, row: LineRow): HTMLElement {
    const { view, stacks } = page;
    const two = row.of.length > 1;
    const shown = (change: LineChange | undefined): string =>
        view.by === "change"
            ? formatChange(amount(change, "change"))
            : formatBytes(amount(change, "allocated"));
    const chosen = view.line === row.line;
    const cells = two
        ? [
              el("td", { class: "size" }, formatChange(row.weight)),
              ...row.of.map((change) => el("td", {}, shown(change))),
          ]
        : [
              el(
                  "td",
                  { class: view.by === "change" ? "size" : "" },
                  formatChange(amount(row.of[0], "change")),
              ),
              el(
                  "td",
                  { class: view.by === "change" ? "" : "size" },
                  formatBytes(row.of[0]!.allocated),
              ),
              el("td", {}, formatCount(row.of[0]!.allocations)),
              el("td", {}, formatCount(row.of[0]!.frees)),
          ];
    return choosable(
        el(
            "tr",
            { tabindex: "0", "aria-selected": String(chosen) },
            ...cells,
            el("td", { class: "wrap" }, el("code", {}, stacks.lineName(row.line))),
        ),
        () => page.change({ line: chosen ? -1 : row.line, stack: -1, culprit: -1 }),
    );
}

function lineTable(page: PageView, rows: LineRow[]): HTMLElement {
    const two = page.ranges.length > 1;
    const difference = differenceName(page.ranges);
    const what =
        page.view.by === "change"
            ? "what the line allocated minus what was freed of it"
            : "what the line allocated, whether freed or not";
    return el(
        "table",
        { role: "grid" },
        two
            ? heads([
                  [difference, `${what}: the difference of the two ranges`],
                  ["A", `${what}, in range A`],
                  ["B", `${what}, in range B`],
                  ["allocated at", "the line that allocated the blocks"],
              ])
            : heads([
                  ["change", "what the line allocated in the range minus what was freed of it"],
                  ["allocated", "what the line allocated in the range, whether freed or not"],
                  ["blocks", "the number of blocks allocated in the range"],
                  ["freed", "the number of the line's blocks freed in the range"],
                  ["allocated at", "the line that allocated the blocks"],
              ]),
        el("tbody", {}, ...rows.slice(0, mostLines).map((row) => lineRow(page, row))),
    );
}

function lineSection(page: PageView): HTMLElement[] {
    const { ranges, view } = page;
    const lines = ranges.map((one) => one.lines);
    if (!lines.every((one) => one !== null)) {
        return [el("p", { class: "faint" }, "Adding up by line.")];
    }
    const rows = lineRows(lines, view.by, later(ranges)).filter(({ weight }) => weight !== 0);
    if (rows.length === 0) {
        return [el("p", { class: "faint" }, "No line differs.")];
    }
    const more = rows.slice(mostLines);
    const rest = more.reduce((sum, { weight }) => sum + weight, 0);
    return [
        lineTable(page, rows),
        ...(more.length > 0
            ? [
                  el(
                      "p",
                      { class: "faint" },
                      `and ${formatCounted(more.length, "more line", "more lines")}: ` +
                          `${view.by === "change" || ranges.length > 1 ? formatChange(rest) : formatBytes(rest)} in all`,
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
            columns: [...columns, { name: "line" }],
            rows,
        },
    ];
}

// ---- the panel ----------------------------------------------------------------------------------

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
    const known = ranges.every(({ figures }) => figures !== null);
    const left = model.head.blocks_left_out;
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
                    showTables(...rangeTables(page)),
                ),
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
            ...(left > 0
                ? [
                      el(
                          "p",
                          { class: "faint" },
                          `Without ${formatCounted(left, "short-lived block", "short-lived blocks")} that the file leaves out.`,
                      ),
                  ]
                : []),
        ),
    );
}
