// The page as a whole: holds the store, knows which picture depends on what, and draws once per
// frame. While a large window moves, the overview stands in; the exact picture follows at rest.
import { activeWindow, peakTick, sweepInSteps, sweepWindow, type WindowSweep } from "../data/sweep";
import type { DeviceHeader, Header } from "../data/header";
import { formatBytes, formatCount, formatMoment, formatTime } from "../data/format";
import { bytesByStack, emptyHeap, heapAt, type HeapState } from "../data/heap";
import type { DeviceModel } from "../data/model";
import { type StackBox, Stacks } from "../data/stacks";
import { clampView, type Part, Store, type View } from "../state/store";
import { readHash, writeHash } from "../state/hash";
import { type Colours, dark, light } from "../draw/colours";
import { drawChart, drawCursor, timeX } from "../draw/chart";
import { drawIcicle, rowHeight } from "../draw/icicle";
import { drawMap } from "../draw/map";
import { drawSegments, type Placed } from "../draw/segments";
import { drawNotice, Surface } from "../draw/surface";
import { byId, el } from "./dom";
import { showCard, showCulprits } from "./cards";
import { connectInput } from "./input";
import { fillLegends } from "./legends";
import { MapMarks } from "./mapmarks";
import { showDetails, showTotals, showWhatIf } from "./side";
import { connectTables } from "./tables";

const immediateEvents = 10_000;  // swept in the frame itself
const exactEvents = 1_500_000;   // swept once the window rests, a little at a time
const sliceMs = 8;

/** Where devices come from: first without their blocks, then whole. */
export interface DeviceSource {
    overview(index: number): Promise<DeviceModel>;
    blocks(index: number, progress: (blocks: number) => void): Promise<DeviceModel>;
}

export class Page {
    readonly stacks: Stacks;
    readonly store: Store;
    model!: DeviceModel;
    heap: HeapState = emptyHeap(0);
    complete: Promise<void> = Promise.resolve();  // all blocks of the device shown are drawn
    placed: Placed[] = [];
    boxes: StackBox[] = [];
    boxTotal = 0;
    readonly chart = new Surface(byId("chart").parentElement!);
    readonly map = new Surface(byId("map").parentElement!);
    readonly segments = new Surface(byId("segments").parentElement!);
    readonly icicle = new Surface(byId("icicle").parentElement!);
    private readonly marks = new MapMarks();
    private sweep: WindowSweep | null = null;
    private settle = 0;
    private hashTimer = 0;
    private pins = new Set<number>();
    private matches: Uint8Array | null = null;

    constructor(readonly header: Header, private readonly source: DeviceSource, private readonly fail: (error: unknown) => void) {
        this.stacks = new Stacks(header);
        this.store = new Store({
            device: 0, t0: 0, t1: 1, a0: 0, a1: 1, cursor: 0, card: -1, culprit: -1, selected: -1, stack: -1,
            query: "", theme: "auto", stacks: "holes", order: "worst",
        });
    }

    get view(): View {
        return this.store.view;
    }

    get colours(): Colours {
        return document.documentElement.dataset.theme === "dark" ? dark : light;
    }

    async open(): Promise<void> {
        const wanted = readHash(location.hash);
        const device = Math.min(this.header.devices.length - 1, Math.max(0, wanted.device ?? 0));
        await this.showDevice(device, wanted);
        byId("plain").hidden = true;
        byId("main").hidden = false;
        this.store.subscribe((_, changed) => this.update(changed));
        connectInput(this);
        connectTables(this);
        this.store.flush(["device", "theme"]);
        const surfaces = [this.chart, this.map, this.segments];
        const observer = new ResizeObserver(() => {
            if (surfaces.some((surface) => surface.grew())) this.store.flush(["size"]);
        });
        for (const surface of surfaces) observer.observe(surface.box);
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.store.flush(["theme"]));
    }

    async showDevice(index: number, wanted: Partial<View> = {}): Promise<void> {
        this.model = await this.source.overview(index);
        this.sweep = null;
        const { head, lastTick } = this.model;
        const firstOom = head.cards.findIndex((card) => card.kind === "oom");
        const card = Math.min(head.cards.length - 1, wanted.card ?? (firstOom >= 0 ? firstOom : 0));
        const cursor = card >= 0 ? Math.floor(head.cards[card].time_ns / head.tick_ns) : peakTick(this.model);
        const [t0, t1] = activeWindow(this.model);
        const whole: View = {
            ...this.view, t0, t1, a0: 0, a1: Math.max(1, head.axis_bytes), card, cursor,
            culprit: -1, selected: -1, stack: -1, ...wanted, device: index,
        };
        whole.card = card;
        if (whole.selected >= head.blocks) whole.selected = -1;
        this.store.set(clampView(whole, lastTick, head.axis_bytes));
        this.describe(head);
        this.complete = this.model.complete ? Promise.resolve() : this.readBlocks(index);
        this.complete.catch(this.fail);
    }

    private async readBlocks(index: number): Promise<void> {
        const isShown = (): boolean => this.model.head === this.header.devices[index];
        const model = await this.source.blocks(index, (blocks) => {
            if (isShown()) byId("count").textContent = `reading blocks: ${Math.floor((100 * blocks) / this.model.head.blocks)} %`;
        });
        if (!isShown()) return;
        this.model = model;
        this.describe(model.head);
        this.store.flush(["blocks"]);
    }

    /** Changes the view within its bounds. */
    change(change: Partial<View>): void {
        this.store.set(clampView({ ...this.view, ...change }, this.model.lastTick, this.model.head.axis_bytes));
    }

    stepCard(by: number): void {
        const { cards, tick_ns } = this.model.head;
        if (cards.length === 0) return;
        const card = (this.view.card + by + cards.length) % cards.length;
        const cursor = Math.floor(cards[card].time_ns / tick_ns);
        const { t0, t1 } = this.view;
        const outside = cursor < t0 || cursor > t1;
        const shift = outside ? cursor - (t0 + t1) / 2 : 0;
        this.change({ card, cursor, culprit: -1, t0: t0 + shift, t1: t1 + shift });
    }

    isPin = (block: number): boolean => this.pins.has(block);

    private update(changed: ReadonlySet<Part>): void {
        const has = (...keys: Part[]): boolean => keys.some((key) => changed.has(key));
        const { view, model, stacks } = this;
        if (has("theme")) {
            const darkWanted = view.theme === "dark" || (view.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
            document.documentElement.dataset.theme = darkWanted ? "dark" : "light";
        }
        if (has("device", "theme")) fillLegends(this);
        if (has("device")) {
            showWhatIf(model);
            showTotals(model);
        }
        if (has("device", "card", "culprit")) {
            const { cards } = model.head;
            const rows = cards[view.card]?.culprits ?? [];
            const shown = view.culprit >= 0 && view.culprit < rows.length ? [rows[view.culprit]] : rows;
            this.pins = new Set(shown.flatMap((row) => row.blocks));
            showCard(cards, view.card, (by) => this.stepCard(by));
            showCulprits(cards[view.card], stacks, this.store, (row) =>
                this.change({ culprit: view.culprit === row ? -1 : row, stack: view.culprit === row ? -1 : rows[row].stack }));
        }
        if (has("device", "query")) this.matches = stacks.search(view.query);
        if (has("device", "blocks", "cursor")) this.heap = model.complete ? heapAt(model, view.cursor) : emptyHeap(view.cursor);
        if (has("device", "blocks", "size", "t0", "t1", "a0", "a1", "theme")) this.drawWindow(has("device", "blocks"));
        else if (has("cursor", "card", "culprit", "selected", "query", "stack")) this.drawOver();
        if (has("device", "blocks", "size", "cursor", "order", "theme", "card", "culprit", "selected")) this.drawHeap();
        if (has("device", "blocks", "size", "cursor", "stacks", "theme", "query", "stack")) this.drawStacks();
        if (has("device", "blocks", "selected")) showDetails(model, stacks, view.selected, () => this.change({ selected: -1 }));
        this.showStatus();
        clearTimeout(this.hashTimer);
        this.hashTimer = window.setTimeout(() => this.saveHash(), 250);
    }

    private saveHash(): void {
        try {
            history.replaceState(null, "", writeHash(this.view));
        } catch {
            // Some browsers refuse this for local files; the page works without it.
        }
    }

    // The exact events of the window, at once when they are few and at rest when they are many.
    private drawWindow(now: boolean): void {
        const { view, model } = this;
        const bins = 2048;
        if (!model.complete) {
            this.drawTime();
            this.drawAddresses(null);
            return;
        }
        if (this.sweep && (this.sweep.from !== view.t0 || this.sweep.to !== view.t1)) this.sweep = null;
        const crowded = this.heap.live.length > immediateEvents * 3;  // what lives through the window is swept, too
        if (!this.sweep && !crowded) this.sweep = sweepWindow(model, view.t0, view.t1, bins, now ? immediateEvents * 2 : immediateEvents);
        this.drawTime();
        this.drawAddresses(this.sweep);
        clearTimeout(this.settle);
        if (this.sweep) return;
        if (model.live.startsIn(view.t0, view.t1) > exactEvents) return;
        this.settle = window.setTimeout(() => this.sweepAtRest(sweepInSteps(model, view.t0, view.t1, bins)), 160);
    }

    private sweepAtRest(steps: Generator<void, WindowSweep>): void {
        const until = performance.now() + sliceMs;
        for (;;) {
            const { done, value } = steps.next();
            if (done) {
                this.sweep = value;
                this.drawTime();
                this.drawAddresses(value);
                return;
            }
            if (performance.now() > until) break;
        }
        this.settle = window.setTimeout(() => this.sweepAtRest(steps), 0);
    }

    private drawTime(): void {
        const { model, view, sweep } = this;
        if (!this.chart.fit()) return;
        const data = sweep ? { bins: sweep.bins, from: sweep.from, to: sweep.to } : { bins: model.bins, from: 0, to: model.lastTick };
        drawChart(this.chart.base, model, data, view, this.colours);
        this.drawChartCursor();
    }

    private drawAddresses(sweep: WindowSweep | null): void {
        if (!this.map.fit()) return;
        const began = performance.now();
        const mode = drawMap(this.map.base, this.model, this.view, sweep, this.colours);
        document.documentElement.dataset.mapMs = (performance.now() - began).toFixed(1);
        byId("map-mode").textContent = mode === "overview" ? "shares of area (overview)" : mode === "exact shares" ? "shares of area per pixel" : "every block";
        this.drawMarks();
    }

    private drawOver(): void {
        this.drawChartCursor();
        this.drawMarks();
    }

    private drawChartCursor(): void {
        const layer = this.chart.over;
        const context = this.chart.clearOver();
        const x = timeX(layer, this.view, this.view.cursor);
        if (x >= 60 && x <= layer.width) drawCursor(context, x, 4, layer.height - 16, this.colours);
    }

    drawMarks(): void {
        this.marks.draw(this, this.pins, this.matches);
    }

    private drawHeap(): void {
        if (!this.segments.fit()) return;
        if (!this.model.complete) {
            this.placed = [];
            drawNotice(this.segments.base, "The blocks are being read.", this.colours);
            return;
        }
        this.placed = drawSegments(this.segments.base, this.model, this.heap, this.view.order, this.isPin, this.colours);
    }

    private drawStacks(): void {
        const { model, view, stacks } = this;
        const sums = bytesByStack(model, this.heap, view.stacks);
        const { boxes, total, depth } = stacks.layout(sums, 0.001);
        this.boxes = boxes;
        this.boxTotal = total;
        const scroll = this.icicle.box.parentElement!;
        this.icicle.box.style.height = `${Math.max(scroll.clientHeight, depth * rowHeight)}px`;
        if (!this.icicle.fit()) return;
        if (!model.complete) {
            drawNotice(this.icicle.base, "The blocks are being read.", this.colours);
            return;
        }
        const what = total === 0 ? (view.stacks === "holes" ? "no hole is held open at the cursor" : "nothing is live at the cursor") :
            view.stacks === "holes" ? "holes held open, shared by the blocks of a segment" : "live bytes";
        drawIcicle(this.icicle.base, stacks, boxes, total, what, view.stack, this.matches, view.stacks === "holes", this.colours);
    }

    private showStatus(): void {
        const { heap, view, model } = this;
        const { head } = model;
        const { tick_ns } = head;
        this.showWindow();
        if (!model.complete) {
            byId("status").textContent = "The blocks are being read.";
            return;
        }
        let text = `cursor ${formatMoment(view.cursor * tick_ns, (view.t1 - view.t0) * tick_ns / 1000)}: ` +
            `${formatBytes(heap.requested)} requested, ${formatBytes(heap.allocated)} allocated, ` +
            (heap.pending > 0 ? `${formatBytes(heap.pending)} waiting, ` : "") +
            `${formatBytes(heap.reserved)} reserved; holes held open ${formatBytes(heap.held)}, releasable ${formatBytes(heap.releasable)}; ` +
            `${formatCount(heap.live.length)} blocks in ${formatCount(heap.units.length)} segments`;
        if (this.matches) {
            let bytes = 0;
            let count = 0;
            for (const block of heap.live) {
                if (!this.matches[model.blocks.stack[block]]) continue;
                ++count;
                bytes += model.blocks.size[block];
            }
            text = `search "${view.query}": ${formatCount(count)} blocks, ${formatBytes(bytes)} live at the cursor. ` + text;
        }
        byId("status").textContent = text;
    }

    private showWindow(): void {
        const { view, model } = this;
        const { head } = model;
        const { tick_ns } = head;
        const step = ((view.t1 - view.t0) * tick_ns) / 1000;
        byId("window").textContent = view.t0 <= 0 && view.t1 >= model.lastTick ? "" :
            `${formatMoment(view.t0 * tick_ns, step)} to ${formatMoment(view.t1 * tick_ns, step)} of ${formatTime(head.end_ns)}; key 0 shows all`;
    }

    private describe(head: DeviceHeader): void {
        const { header } = this;
        const run = byId("run");
        run.replaceChildren(header.title, header.process ? ` · ${header.process}` : "", ` · ${head.name || "device"} (GPU ${head.index})`,
            ...(head.virtual ? [" ", el("span", { class: "badge" }, "virtual GPU")] : []));
        run.title = header.command;
        const left = head.blocks_left_out;
        byId("count").textContent = `${formatCount(head.blocks)} blocks` + (left > 0 ? ` (${formatCount(left)} more left out)` : "");
        const notes = [...header.notes];
        if (left > 0) {
            notes.unshift(`${formatCount(left)} blocks that lived no longer than ${formatTime(head.longest_left_out_ns)} are not in this file one by one. ` +
                "They are part of the overview and of every total, but not of the cursor's state, search and close-up pictures.");
        }
        const panel = byId("notes");
        panel.hidden = notes.length === 0;
        panel.replaceChildren(el("details", left > 0 ? { open: "" } : {}, el("summary", {}, notes.length === 1 ? "1 note on this trace" : `${notes.length} notes on this trace`),
            el("ul", {}, ...notes.map((note) => el("li", {}, note)))));
    }
}
