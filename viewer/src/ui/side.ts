// What-if table, totals and the selected block.
import { formatBytes, formatCount, formatTime } from "../data/format";
import { addressAt, type DeviceModel, never } from "../data/model";
import type { Stacks } from "../data/stacks";
import { byId, el, table } from "./dom";

// Settings are long and without spaces: they may break after their own separators.
function breakable(name: string): string {
    return name.replace(/([,:])/g, "$1\u200b");
}

export function showWhatIf(model: DeviceModel): void {
    const rows = model.head.whatif;
    const panel = byId("whatif");
    if (rows.length === 0) {
        panel.replaceChildren();
        return;
    }
    const body = el("tbody");
    for (const row of rows) {
        const verdict = !row.usable ? el("span", { class: "faint" }, "not usable") : row.ooms === 0 ? el("span", { class: "yes" }, "✓ fits") : el("span", { class: "no" }, `✗ ${formatCount(row.ooms)} OOM`);
        body.append(el("tr", row.as_run ? { class: "run", title: row.note } : { title: row.note },
            el("td", { class: "wrap" }, row.as_run ? row.name : el("code", {}, breakable(row.name))), el("td", {}, verdict),
            el("td", {}, formatBytes(row.peak_reserved)), el("td", {}, row.waste === null ? "" : formatBytes(row.waste)),
            el("td", {}, formatCount(row.segments)), el("td", {}, formatCount(row.retries)), el("td", {}, row.class)));
    }
    panel.replaceChildren(el("h2", {}, "What if"), el("table", {},
        el("thead", {}, el("tr", {}, ...["replayed with", "result", "reserved", "waste", "cudaMallocs", "retries", "class"].map((name) => el("th", { scope: "col" }, name)))), body));
}

export function showTotals(model: DeviceModel): void {
    const { totals } = model.head;
    byId("totals").replaceChildren(...(totals.length === 0 ? [] : [el("details", { open: "" }, el("summary", {}, "Totals of the report"),
        table(["", "", "exactly"], totals.map((total) => [
            total.label, total.bytes ? formatBytes(total.value) : formatCount(total.value), `${formatCount(total.value)}${total.bytes ? " B" : ""}`])))]));
}

export function showDetails(model: DeviceModel, stacks: Stacks, block: number, close: () => void): void {
    const panel = byId("details");
    panel.hidden = block < 0 || block >= model.blocks.count;
    if (panel.hidden) return;
    const { blocks, head } = model;
    const time = (tick: number): string => formatTime(tick * head.tick_ns);
    const size = blocks.size[block];
    const excess = blocks.excess[block];
    const shut = el("button", { type: "button", "aria-label": "close block details" }, "×");
    shut.addEventListener("click", close);
    const freed = blocks.freed[block];
    const life = freed === never ? `born ${time(blocks.start[block])}, never freed` :
        `born ${time(blocks.start[block])}, freed ${time(freed)}, held ${time(freed - blocks.start[block])}`;
    const pending = freed !== never && blocks.end[block] > freed ? `; reusable ${blocks.end[block] === never ? "never" : time(blocks.end[block])}` : "";
    const asked = excess < 0 ? "request not known" : `requested ${formatCount(size - excess)} B (${formatBytes(excess)} more given)`;
    const frames = stacks.frames(blocks.stack[block]);
    panel.replaceChildren(
        el("div", { class: "headline" }, el("h2", {}, `Block ${formatCount(block)} · ${formatBytes(size)}`), el("span", { class: "grow" }), shut),
        el("div", {}, `${life}${pending}`),
        el("div", {}, `${formatCount(size)} B at 0x${addressAt(head, blocks.offset[block]).toString(16)}, ${asked}, stream ${head.streams[blocks.stream[block]] ?? blocks.stream[block]}`),
        frames.length === 0 ? el("div", { class: "faint" }, "no stack recorded") :
            el("ol", {}, ...frames.map((node) => el("li", { title: stacks.place(node) }, el("code", {}, stacks.label(node))))));
}
