// Every picture also as a table: what a reader without the picture needs of it.
import { formatBytes, formatCount, formatTime } from "../data/format";
import { bytesByStack, holesOf } from "../data/heap";
import { addressText } from "../draw/map";
import { byId, el, showDialog, table } from "./dom";
import type { Page } from "./page";

const most = 50;

function title(text: string): HTMLElement {
    return el("h2", {}, text);
}

function memory(page: Page): void {
    const { heap, model } = page;
    const { capacity, markers, tick_ns } = model.head;
    const rows: [string, number][] = [
        ["requested", heap.requested], ["rounding and slack", heap.allocated - heap.requested], ["waiting for streams", heap.pending],
        ["holes held open", heap.held], ["cached, releasable", heap.releasable], ["reserved (sum)", heap.reserved],
    ];
    if (capacity !== null) rows.push(["capacity", capacity]);
    showDialog(title(`Memory at ${formatTime(page.view.cursor * tick_ns)}`), table(["", "", "exactly"], rows.map(([name, bytes]) => [name, formatBytes(bytes), `${formatCount(bytes)} B`])),
        title(`Events (first ${most} of ${formatCount(markers.length)})`), table(["time", "kind", ""], markers.slice(0, most).map((marker) => [formatTime(marker.time_ns), marker.kind, marker.text])));
}

function holes(page: Page): void {
    const { heap, model, stacks } = page;
    const all = heap.units.flatMap((state) => holesOf(model, state).map(([offset, size]) => ({ offset, size, state })));
    all.sort((a, b) => b.size - a.size);
    showDialog(title(`Holes at the cursor (largest ${most} of ${formatCount(all.length)})`), table(
        ["size", "at", "segment", "blocks in it", "one of them"],
        all.slice(0, most).map(({ offset, size, state }) => [
            formatBytes(size), addressText(model, offset), formatBytes(model.units.size[state.unit]), formatCount(state.blocks.length),
            state.blocks.length > 0 ? stacks.label(stacks.telling(model.blocks.stack[state.blocks[0]])) : "none"])));
}

function stackTable(page: Page): void {
    const { heap, model, stacks, view } = page;
    const sums = [...bytesByStack(model, heap, view.stacks)].sort((a, b) => b[1] - a[1]);
    const what = view.stacks === "holes" ? "holes held open" : "live bytes";
    showDialog(title(`Stacks by ${what} (first ${most} of ${formatCount(sums.length)})`), table(
        [what, "innermost Python frame", "innermost frame"],
        sums.slice(0, most).map(([stack, bytes]) => [formatBytes(Math.round(bytes)), stacks.label(stacks.telling(stack)), stacks.label(stack)])));
}

export function connectTables(page: Page): void {
    const connect = (id: string, show: (page: Page) => void): void => byId(id).addEventListener("click", () => {
        if (page.model.complete) show(page);
        else showDialog("The blocks are being read: try again in a moment.");
    });
    connect("chart-table", memory);
    connect("segments-table", holes);
    connect("stacks-table", stackTable);
    for (const [id, name] of [["chart-table", "memory and events as a table"], ["segments-table", "holes as a table"], ["stacks-table", "stacks as a table"]]) {
        byId(id).setAttribute("aria-label", name);
    }
}
