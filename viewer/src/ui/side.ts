// The what-if table, the pools of the program and the totals.
import { formatBytes, formatCount } from "../data/format";
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
            { title: row.note, class: row.as_run ? "run" : "" },
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
