// The what-if table, advice, the pools of the program, the totals and the run as a whole.
import { formatBytes, formatChange, formatCount, formatTime } from "../data/format";
import type { DeviceModel } from "../data/model";
import { choosable, heads } from "./cards";
import { byId, el, table } from "./dom";
import type { PageView } from "./view";

// Settings are long and have no spaces: they may break after their separators.
function breakable(name: string): string {
    return name.replace(/([,:])/g, "$1\u200b");
}

/** Fills the what-if table. The chart draws the curve of the chosen row. */
export function showWhatIf(page: PageView): void {
    const { model, view } = page;
    const rows = model.head.whatif;
    const list = byId("whatif-list");
    const focused = [...list.querySelectorAll("tbody tr")].indexOf(
        document.activeElement as HTMLTableRowElement,
    );
    byId("whatif").hidden = rows.length === 0;
    const classes =
        page.header.class_words.map(({ word, meaning }) => `${word}: ${meaning}`).join(". ") + ".";
    const lines = rows.map((row, at) => {
        const again =
            row.retries > 0
                ? `, ${formatCount(row.retries)} ${row.retries === 1 ? "retry" : "retries"}`
                : "";
        const verdict = !row.usable
            ? el("span", { class: "faint" }, "not usable")
            : row.ooms > 0
              ? el(
                    "span",
                    { class: "no" },
                    `✗ ${formatCount(row.ooms)} OOM${row.ooms === 1 ? "" : "s"}`,
                )
              : el(
                    "span",
                    { class: again ? "near" : "yes" },
                    `${again ? "~" : "✓"} ${row.gets_past ? "past the OOM" : "fits"}${again}`,
                );
        const line = el(
            "tr",
            {
                title: [row.note, row.cost && `cost: ${row.cost}`].filter(Boolean).join("; "),
                class: row.as_run ? "run" : "",
            },
            el(
                "td",
                { class: "wrap" },
                row.as_run ? row.name : el("code", {}, breakable(row.name)),
            ),
            el("td", { class: "result" }, verdict),
            el("td", {}, formatBytes(row.peak_reserved)),
            el("td", {}, row.held_open === null ? "" : formatBytes(row.held_open)),
            el("td", {}, row.releasable === null ? "" : formatBytes(row.releasable)),
            el("td", {}, formatCount(row.segments)),
            el("td", { class: "class" }, row.class),
        );
        if (!model.curves.byRow[at]) return line;
        line.setAttribute("tabindex", "0");
        line.setAttribute("aria-selected", String(view.whatif === at));
        return choosable(line, () => page.change({ whatif: page.view.whatif === at ? -1 : at }));
    });
    list.replaceChildren(
        el(
            "table",
            { role: "grid" },
            heads([
                [
                    "replayed with",
                    "the settings, or the change, under which the recorded requests were replayed",
                ],
                [
                    "result",
                    "whether all recorded requests succeed. Past the OOM: " +
                        "the last recorded request, which failed, succeeds here. " +
                        "Later requests are not in the trace. " +
                        "Retry: the device was full, and the pool returned its cache and tried again",
                ],
                ["reserved", "peak of the memory that the pool has from the driver"],
                [
                    "in holes",
                    "free at that replay's own peak, but in segments (or pages) with live blocks",
                ],
                ["cached", "free at that replay's own peak, and can be returned to the driver"],
                [
                    "mallocs",
                    "the number of cudaMallocs or maps: requests of the pool to the driver",
                ],
                ["class", classes],
            ]),
            el("tbody", {}, ...lines),
        ),
        el(
            "p",
            { class: "faint explain" },
            "in holes, cached: free at that replay's own peak. " + classes,
        ),
    );
    if (focused >= 0) {
        (list.querySelectorAll("tbody tr")[focused] as HTMLElement | undefined)?.focus();
    }
}

/** Shows what the report says about pools of the program's own. */
export function showProgramPools(page: PageView): void {
    const lines = page.header.processes[page.model.head.process].program_pools;
    byId("program-pools").replaceChildren(
        ...(lines === ""
            ? []
            : [
                  el(
                      "details",
                      { open: "" },
                      el("summary", {}, "Pools of the program"),
                      el("pre", { tabindex: "0" }, lines),
                  ),
              ]),
    );
}

export function showTotals(model: DeviceModel): void {
    const { totals } = model.head;
    byId("totals").replaceChildren(
        ...(totals.length === 0
            ? []
            : [
                  el(
                      "details",
                      { open: "" },
                      el("summary", {}, "Totals of the report"),
                      table(
                          ["figure", "size or count", "exactly"],
                          totals.map(({ label, value, bytes }) =>
                              value === null
                                  ? [label, "unknown", ""]
                                  : [
                                        label,
                                        bytes ? formatBytes(value) : formatCount(value),
                                        `${formatCount(value)}${bytes ? " B" : ""}`,
                                    ],
                          ),
                      ),
                  ),
              ]),
    );
}

/** Shows what popular advice about settings would have done. */
export function showAdvice(model: DeviceModel): void {
    const rows = model.head.advice.filter(({ settings }) => settings);
    byId("advice").replaceChildren(
        ...folded(
            "Popular advice, on this trace",
            rows.length > 0 &&
                table(
                    ["advice", "what it would have done"],
                    rows.map(({ name, effect }) => [el("code", {}, name), effect]),
                ),
        ),
    );
}

/** Shows the report's lines about device, process and run, and the phases. */
export function showRun(page: PageView): void {
    const { head } = page.model;
    const { lines, phases } = page.header.processes[head.process];
    const all = [...head.lines, ...lines];
    byId("run-lines").replaceChildren(
        ...folded(
            "The run",
            all.length > 0 &&
                el(
                    "dl",
                    { class: "lines" },
                    ...all.flatMap(({ label, text }) => [el("dt", {}, label), el("dd", {}, text)]),
                ),
        ),
        ...folded(
            "Phases",
            phases.rows.length > 0 &&
                table(
                    [
                        "phase",
                        "count",
                        "duration",
                        "peak allocated",
                        "peak reserved",
                        "change",
                        "mallocs",
                        "retries",
                    ],
                    phases.rows.map((row) => [
                        row.name,
                        formatCount(row.count),
                        formatTime(row.time_ns),
                        formatBytes(row.peak_allocated),
                        known(row.peak_reserved, formatBytes),
                        formatChange(row.change),
                        known(row.mallocs, formatCount),
                        known(row.retries, formatCount),
                    ]),
                ),
            phases.more !== "" && el("p", { class: "faint" }, phases.more),
        ),
    );
}

function known(value: number | null, show: (value: number) => string): string {
    return value === null ? "unknown" : show(value);
}

// Content with a heading that folds it away; nothing without content.
function folded(heading: string, ...content: (HTMLElement | false)[]): HTMLElement[] {
    if (!content[0]) return [];
    return [el("details", { open: "" }, el("summary", {}, heading), ...content)];
}
