// The tables of a page that compares two runs: figures side by side, lines of the program, phases
// and settings that differ.
import { formatBytes, formatChange, formatCount } from "../data/format";
import type { ComparedDevice, ComparedLine, TimeSpanNs, TwoRuns } from "../data/header";
import type { TableData } from "../data/rows";
import { difference, largestFirst, lineIn, runNames, type Side, sides } from "../data/tworuns";
import { choosable, heads, verdictOf } from "./cards";
import { showTables } from "./datatable";
import { button, el, table } from "./dom";
import type { PageView } from "./view";

const mostLines = 8;
const mostRows = 12;

// ---- figures ------------------------------------------------------------------------------------

function verdictCell(page: PageView, device: number | null): HTMLElement {
    if (device === null) return el("td", {}, "no such device");
    const { kind, badge, heading } = verdictOf(page.header.devices[device]);
    return el("td", { "data-kind": kind }, badge && el("span", { class: "kind" }, badge), heading);
}

export function comparedFigures(page: PageView, said: TwoRuns, row: ComparedDevice): HTMLElement[] {
    const letter = (side: Side): HTMLElement => {
        const element = el("b", { class: "letter" }, runNames[side]);
        element.style.background = page.colours.runs[side];
        return element;
    };
    return [
        el(
            "table",
            { class: "figures" },
            el(
                "thead",
                {},
                el(
                    "tr",
                    {},
                    el("td"),
                    ...sides.map((side) =>
                        el("th", { scope: "col" }, letter(side), said.runs[side]),
                    ),
                    el("th", { scope: "col" }, "B − A"),
                ),
            ),
            el(
                "tbody",
                {},
                el(
                    "tr",
                    {},
                    el("th", { scope: "row" }, "verdict"),
                    ...row.devices.map((device) => verdictCell(page, device)),
                    el("td"),
                ),
                ...row.figures.map(({ name, part, a, b, difference: change }) =>
                    el(
                        "tr",
                        change ? {} : { class: "equal" },
                        el("th", { scope: "row", ...(part ? { class: "part" } : {}) }, name),
                        ...[a, b].map((value) => el("td", {}, value)),
                        el("td", { class: "size" }, change),
                    ),
                ),
            ),
        ),
    ];
}

// ---- lines --------------------------------------------------------------------------------------

const known = (bytes: number | null): string =>
    bytes === null ? "not listed" : formatBytes(bytes);

// The bar begins in the middle: to the right more in B, to the left less. The sign says it, too.
function bar(change: number | null, most: number): HTMLElement {
    const fill = el("i", { class: (change ?? 0) < 0 ? "less" : "more-of" });
    const share = (50 * Math.abs(change ?? 0)) / most;
    fill.style.width = `${share}%`;
    fill.style.left = `${(change ?? 0) < 0 ? 50 - share : 50}%`;
    const middle = el("i", { class: "middle" });
    return el("td", { class: "change" }, el("div", {}, middle, fill));
}

// The frames from the line to its callers. What the line calls is left out.
function callers({ label, label_a }: ComparedLine, frames: string[]): string[] {
    const at = frames.findIndex((frame) => frame === label || frame === label_a);
    return frames.slice(Math.max(0, at));
}

function stacksBelow(line: ComparedLine): HTMLElement {
    const rows = line.stacks.map(({ frames, a, b }) =>
        el(
            "li",
            {},
            `${formatChange(b - a)} (${formatBytes(a)} → ${formatBytes(b)}): `,
            el("code", {}, callers(line, frames).join(" ‹ ") || "no stack recorded"),
        ),
    );
    const moved = line.label_a !== line.label && `In A this line is ${line.label_a}. `;
    return el(
        "tr",
        { class: "below" },
        el(
            "td",
            { colspan: "5" },
            moved,
            rows.length > 0
                ? "Its callers, where memory changed most:"
                : "Its callers are unknown.",
            el("ul", { class: "places" }, ...rows),
        ),
    );
}

function lineRows(
    page: PageView,
    row: ComparedDevice,
    side: Side,
    line: ComparedLine,
    most: number,
): HTMLElement[] {
    const { header, view, model } = page;
    const number = lineIn(header, line, side);
    const chosen = number >= 0 && view.line === number;
    const change = difference(line);
    const peak = row.peaks_ns[side];
    const choose = (): void =>
        page.change(
            chosen
                ? { line: -1 }
                : {
                      line: number,
                      stack: -1,
                      culprit: -1,
                      ...(peak === null ? {} : { cursor: Math.floor(peak / model.head.tick_ns) }),
                  },
        );
    const cells = [
        el("td", { class: "size" }, change === null ? "?" : formatChange(change)),
        bar(change, most),
        el("td", {}, known(line.a)),
        el("td", {}, known(line.b)),
        el("td", { class: "wrap" }, el("code", {}, line.label)),
    ];
    if (number < 0) return [el("tr", {}, ...cells)];
    const attributes = { tabindex: "0", "aria-selected": String(chosen) };
    const element = choosable(el("tr", attributes, ...cells), choose);
    return chosen ? [element, stacksBelow(line)] : [element];
}

function lineTable(row: ComparedDevice): TableData {
    const bytes = { show: formatBytes };
    return {
        title: "Memory by line at the peak of each run",
        ofAll: true,
        columns: [
            { name: "B − A", show: formatChange, adds: true },
            { name: "A", ...bytes },
            { name: "B", ...bytes },
            { name: "line", names: true },
            { name: "line in A" },
        ],
        rows: largestFirst(row.lines).map((line) => [
            difference(line),
            line.a,
            line.b,
            line.label,
            line.label_a,
        ]),
    };
}

export function comparedLines(page: PageView, row: ComparedDevice, side: Side): HTMLElement[] {
    const lines = largestFirst(row.lines);
    if (lines.length === 0) return [el("h3", {}, "Every line holds the same memory at the peak")];
    const most = Math.max(1, ...lines.map((line) => Math.abs(difference(line) ?? 0)));
    const more = lines.length - mostLines;
    return [
        el(
            "div",
            { class: "headline" },
            el("h3", {}, "Memory by line at the peak of each run"),
            el(
                "span",
                { class: "grow faint" },
                `a click marks the blocks in run ${runNames[side]}`,
            ),
            button("table", "all lines that differ as a table", () =>
                showTables(page, lineTable(row)),
            ),
        ),
        el(
            "table",
            { role: "grid" },
            heads([
                ["B − A", "memory of the line in B minus that in A"],
                [
                    "less | more",
                    "the difference as a bar: to the right more in B, to the left less",
                ],
                [
                    "A",
                    "live and pending blocks of the line, when reserved first reached its peak in A",
                ],
                ["B", "the same in B"],
                ["allocated at", "the line that allocated the blocks"],
            ]),
            el(
                "tbody",
                {},
                ...lines
                    .slice(0, mostLines)
                    .flatMap((line) => lineRows(page, row, side, line, most)),
            ),
        ),
        ...(more > 0
            ? [el("p", { class: "faint" }, `and ${formatCount(more)} more: see the table`)]
            : []),
    ];
}

// ---- phases and settings ------------------------------------------------------------------------

export function comparedPhases(
    { phases }: TwoRuns,
    show: (side: Side, span: TimeSpanNs) => void,
): HTMLElement[] {
    if (phases.length === 0) return [];
    const places = (times: (TimeSpanNs | null)[]): HTMLElement =>
        el(
            "span",
            { class: "together" },
            ...sides.flatMap((side) => {
                const span = times[side];
                const name = runNames[side];
                return span
                    ? [button(name, `show it in run ${name}`, () => show(side, span)), " "]
                    : [];
            }),
        );
    return [
        el("h3", {}, "Phases that differ"),
        table(
            ["phase", "count", "peak allocated", "peak reserved", "change", "first that differs"],
            phases
                .slice(0, mostRows)
                .map(({ name, only_in, values, times_ns }) => [
                    name,
                    ...(only_in ? [`only in ${only_in}`, "", "", ""] : values),
                    places(times_ns),
                ]),
        ),
        ...cut(phases.length),
    ];
}

export function comparedSettings({ settings }: TwoRuns): HTMLElement[] {
    if (settings.length === 0) return [];
    return [
        el("h3", {}, "Different settings"),
        table(
            ["setting", "A", "B"],
            settings.map(({ key, a, b }) => [
                el("code", {}, key),
                el("code", {}, a),
                el("code", {}, b),
            ]),
        ),
    ];
}

function cut(count: number): HTMLElement[] {
    return count > mostRows
        ? [
              el(
                  "p",
                  { class: "faint" },
                  `and ${formatCount(count - mostRows)} more: fraganalyze compare --json has all`,
              ),
          ]
        : [];
}
