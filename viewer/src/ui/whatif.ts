// The what-if table: settings and changes with their replayed figures and their cost. The chosen
// row shows its curve, and what to copy to use it.
import { formatBytes, formatCount, formatCounted } from "../data/format";
import type { WhatIf } from "../data/header";
import { choosable, choosableRows, heads, lineList } from "./cards";
import { copyButton } from "./copy";
import { byId, el, keepFocus, stacked } from "./dom";
import type { PageView } from "./view";

function fitting(row: WhatIf): string {
    if (!row.gets_past) return "fits";
    return row.rest_fails ? "past this OOM only" : "past the OOM";
}

// Letters that fit into one or two lines of the column of names.
const mostBeside = 40;

/** What is below the name of a row: short texts in its column, long ones across the whole table. */
function remarks(row: WhatIf): { beside: HTMLElement[]; across: HTMLElement[] } {
    const texts = [
        row.cost && !row.as_run ? `cost: ${row.cost}` : "",
        row.differs,
        row.usable && !row.bound ? "" : row.note,
    ].filter((text) => text);
    const shown = (those: string[]): HTMLElement[] =>
        those.map((text) => el("div", { class: "cost" }, text));
    const long = texts.filter((text) => text.length > mostBeside);
    return {
        beside: shown(texts.filter((text) => text.length <= mostBeside)),
        across:
            long.length > 0
                ? [el("tr", { class: "said" }, el("td", { colspan: "5" }, ...shown(long)))]
                : [],
    };
}

/** Fills the what-if table. The chart draws the curve of the chosen row. */
export function showWhatIf(page: PageView): void {
    const { model, view } = page;
    const rows = model.head.whatif;
    const list = byId("whatif-list");
    const { no_whatif, whatif_remarks, whatif_classes } = model.head;
    byId("whatif").hidden = rows.length === 0 && no_whatif === "";
    byId("whatif-table").hidden = byId("whatif-hint").hidden = rows.length === 0;
    const why = no_whatif === "" ? [] : [el("p", {}, `Not replayed: ${no_whatif}.`)];
    if (rows.length === 0) {
        list.replaceChildren(...why);
        return;
    }
    const grows = model.head.cards.some(
        ({ kind, screen }) => kind !== "oom" && screen === "growth",
    );
    const classes =
        page.header.class_words.map(({ word, meaning }) => `${word}: ${meaning}`).join(". ") + ".";
    const lines = rows.map((row, at) => {
        const again = row.retries > 0 ? `, ${formatCounted(row.retries, "retry", "retries")}` : "";
        const verdict = !row.usable
            ? el(
                  "span",
                  { class: "faint" },
                  row.ooms > 0 ? "not usable" : `${fitting(row)}, but not usable`,
              )
            : row.ooms > 0
              ? el("span", { class: "no" }, `✗ ${formatCounted(row.ooms, "OOM", "OOMs")}`)
              : el(
                    "span",
                    { class: again || row.rest_fails ? "near" : "yes" },
                    `${again || row.rest_fails ? "~" : "✓"} ${fitting(row)}${again}`,
                );
        const { beside, across } = remarks(row);
        const line = el(
            "tr",
            {
                title: [row.note, row.cost && `cost: ${row.cost}`].filter(Boolean).join("; "),
                class: row.as_run ? "run" : "",
            },
            el(
                "td",
                { class: "wrap" },
                row.as_run ? row.name : el("code", {}, row.name),
                ...beside,
            ),
            el("td", { class: "result" }, verdict, el("div", { class: "faint" }, row.class)),
            el(
                "td",
                {},
                formatBytes(row.peak_reserved),
                row.difference !== "" &&
                    !row.as_run &&
                    el("div", { class: "cost" }, row.difference),
            ),
            el(
                "td",
                {},
                row.held_open !== null &&
                    row.releasable !== null &&
                    stacked(formatBytes(row.held_open), formatBytes(row.releasable)),
            ),
            el("td", {}, formatCount(row.segments)),
        );
        if (!model.curves.byRow[at] && row.set === "" && row.run === "") return [line, ...across];
        const choose = (): void => page.change({ whatif: page.view.whatif === at ? -1 : at });
        line.setAttribute("tabindex", "0");
        line.setAttribute("aria-selected", String(view.whatif === at));
        across.forEach((said) => said.addEventListener("click", choose));
        return [choosable(line, choose), ...across];
    });
    keepFocus(list, choosableRows, () =>
        list.replaceChildren(
            ...why,
            el(
                "table",
                { role: "grid" },
                heads([
                    [
                        "replayed with",
                        "the settings, or the change, under which the recorded requests were replayed",
                    ],
                    [
                        "result, class",
                        "Result: whether all recorded requests succeed. Past the OOM: " +
                            "the last recorded request, which failed, succeeds here. " +
                            "Later requests are not in the trace. " +
                            "Retry: the device was full, and the pool returned its cache and tried again. Class: " +
                            classes,
                    ],
                    ["reserved", "peak of the memory that the pool has from the driver"],
                    [
                        "in holes, cached",
                        "free at that replay's own peak: above, in segments (or pages) with live blocks; " +
                            "below, what can be returned to the driver",
                    ],
                    [
                        "mallocs",
                        "the number of cudaMallocs or maps: requests of the pool to the driver",
                    ],
                ]),
                el(
                    "tbody",
                    {},
                    ...lines.flatMap((line, at) =>
                        at === view.whatif ? [...line, ...remedy(page, rows[at])] : line,
                    ),
                ),
            ),
            ...whatif_remarks.map((text) => el("p", { class: "faint" }, `${text}.`)),
            ...lineList(whatif_classes, "lines faint"),
            el(
                "p",
                { class: "faint explain" },
                "Best first: outcome, then saved memory against its cost. Then other pools, bounds and cards. " +
                    "In holes, cached: free at that replay's own peak." +
                    (grows
                        ? " Only the recorded steps are replayed: if the growth goes on, every card fills up."
                        : ""),
            ),
        ),
    );
}

// Below the chosen row: what to copy to use the setting, and to try it.
function remedy(page: PageView, row: WhatIf): HTMLElement[] {
    if (row.set + row.run === "") return [];
    const list = el("dl");
    const add = (name: string, text: string): void =>
        void list.append(
            el("dt", {}, name),
            el("dd", {}, el("code", {}, text), " ", copyButton(page, name, text)),
        );
    if (row.set) add("setting", row.set);
    if (row.run) add("try it", row.run);
    if (row.run.endsWith(" -- COMMAND")) {
        list.append(el("dd", { class: "cost" }, "COMMAND: the command of the job"));
    }
    return [el("tr", { class: "below" }, el("td", { colspan: "5" }, list))];
}
