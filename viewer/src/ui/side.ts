// Advice, the pools of the program, the totals and the run as a whole.
import { formatBytes, formatChange, formatCount, formatTime } from "../data/format";
import { lineList } from "./cards";
import { byId, el, stacked, table } from "./dom";
import { saveButton } from "./image";
import type { PageView } from "./view";

/** Shows what the report says about pools of the program's own. */
export function showProgramPools(page: PageView): void {
    const lines = page.header.processes[page.model.head.process].program_pools;
    byId("program-pools").replaceChildren(
        ...folded(
            page,
            "Pools of the program",
            lines !== "" && el("pre", { tabindex: "0" }, lines),
        ),
    );
}

export function showTotals(page: PageView): void {
    const { totals, capacity } = page.model.head;
    const rows = [...totals, { label: "capacity for the pool", value: capacity, bytes: true }];
    byId("totals").replaceChildren(
        ...folded(
            page,
            "Totals of the report",
            totals.length > 0 &&
                table(
                    ["figure", "size or count", "exactly"],
                    rows.map(({ label, value, bytes }) =>
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
    );
}

/** Shows what popular advice about settings would have done. */
export function showAdvice(page: PageView): void {
    const { head } = page.model;
    const rows = head.advice.filter(({ settings }) => settings);
    byId("advice").replaceChildren(
        ...folded(
            page,
            head.advice_heading,
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
        ...folded(page, "The run", ...lineList(all)),
        ...folded(
            page,
            "Phases",
            phases.rows.length > 0 &&
                table(
                    [
                        "phase",
                        "count, duration",
                        "peak allocated, reserved",
                        "change",
                        "mallocs, retries",
                    ],
                    phases.rows.map((row) => [
                        row.name,
                        stacked(formatCount(row.count), formatTime(row.time_ns)),
                        stacked(
                            formatBytes(row.peak_allocated),
                            known(row.peak_reserved, formatBytes),
                        ),
                        formatChange(row.change),
                        stacked(known(row.mallocs, formatCount), known(row.retries, formatCount)),
                    ]),
                ),
            phases.more !== "" && el("p", { class: "faint" }, phases.more),
        ),
    );
}

function known(value: number | null, show: (value: number) => string): string {
    return value === null ? "unknown" : show(value);
}

// Content with a heading that folds it away; nothing without content. The button is beside the
// heading, because a control must not be in another.
function folded(
    page: PageView,
    heading: string,
    ...content: (HTMLElement | false)[]
): HTMLElement[] {
    if (!content[0]) return [];
    const details = el("details", { open: "" }, el("summary", {}, heading), ...content);
    const panel = el("div", { class: "corner" }, details);
    panel.append(saveButton(page, panel, heading));
    return [panel];
}
