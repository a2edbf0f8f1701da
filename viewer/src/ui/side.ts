// What-if table and totals.
import { formatBytes, formatCount } from "../data/format";
import type { DeviceModel } from "../data/model";
import { choosable } from "./cards";
import { byId, el, table } from "./dom";
import type { Page } from "./page";

// Settings are long and without spaces: they may break after their own separators.
function breakable(name: string): string {
    return name.replace(/([,:])/g, "$1\u200b");
}

/** Of the rows that have a replayed curve one can be laid over the chart. */
export function showWhatIf(page: Page): void {
    const { model, view } = page;
    const rows = model.head.whatif;
    const list = byId("whatif-list");
    const focused = [...list.querySelectorAll("tbody tr")].indexOf(document.activeElement as HTMLTableRowElement);
    byId("whatif").hidden = rows.length === 0;
    const lines = rows.map((row, at) => {
        const verdict = !row.usable ? el("span", { class: "faint" }, "not usable") : row.ooms === 0 ? el("span", { class: "yes" }, "✓ fits") : el("span", { class: "no" }, `✗ ${formatCount(row.ooms)} OOM`);
        const line = el("tr", { title: row.note, class: row.as_run ? "run" : "" },
            el("td", { class: "wrap" }, row.as_run ? row.name : el("code", {}, breakable(row.name))), el("td", {}, verdict),
            el("td", {}, formatBytes(row.peak_reserved)), el("td", {}, row.waste === null ? "" : formatBytes(row.waste)),
            el("td", {}, formatCount(row.segments)), el("td", {}, formatCount(row.retries)), el("td", {}, row.class));
        if (!model.curves.byRow[at]) return line;
        line.setAttribute("tabindex", "0");
        line.setAttribute("aria-selected", String(view.whatif === at));
        return choosable(line, () => page.change({ whatif: page.view.whatif === at ? -1 : at }));
    });
    list.replaceChildren(el("table", { role: "grid" },
        el("thead", {}, el("tr", {}, ...["replayed with", "result", "reserved", "waste", "cudaMallocs", "retries", "class"].map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, ...lines)));
    if (focused >= 0) (list.querySelectorAll("tbody tr")[focused] as HTMLElement | undefined)?.focus();
}

export function showTotals(model: DeviceModel): void {
    const { totals } = model.head;
    byId("totals").replaceChildren(...(totals.length === 0 ? [] : [el("details", { open: "" }, el("summary", {}, "Totals of the report"),
        table(["", "", "exactly"], totals.map((total) => [
            total.label, total.bytes ? formatBytes(total.value) : formatCount(total.value), `${formatCount(total.value)}${total.bytes ? " B" : ""}`])))]));
}
