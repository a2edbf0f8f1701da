// The page as a whole: holds the store, knows which picture depends on what, and draws once per
// frame. While a large window moves, the overview stands in; the exact picture follows at rest.
import { activeWindow } from "../data/firstwindow";
import { peakTick, type WindowSweep } from "../data/sweep";
import type { Header } from "../data/header";
import { emptyHeap, heapAt, type HeapState } from "../data/heap";
import { type Kinds, kindsInSteps } from "../data/kinds";
import { cardTick, type DeviceModel } from "../data/model";
import { makeMatcher, type Matcher } from "../data/search";
import { Stacks } from "../data/stacks";
import { finish } from "../data/steps";
import { clampView, type Part, Store, type View } from "../state/store";
import { readHash, unsaid, writeHash } from "../state/hash";
import { type Colours, dark, light } from "../draw/colours";
import { drawChart, drawCursor, drawMark, drawSplit, type Overlay } from "../draw/chart";
import { drawKinds } from "../draw/kinds";
import { lanesHeight } from "../draw/lanes";
import { signsHeight } from "../draw/markers";
import { drawMap } from "../draw/map";
import { type Layer, Surface } from "../draw/surface";
import { axisHeight, plotLeft, plotRight, timeX } from "../draw/timeaxis";
import { byId } from "./dom";
import { showCard, showCulprits } from "./cards";
import { connectInput } from "./input";
import { showDetails } from "./details";
import { fillLegends } from "./legends";
import { MapMarks } from "./mapmarks";
import { Player } from "./play";
import { connectRanks, type RankStrip } from "./ranks";
import { RestSweep } from "./restsweep";
import { connectScrollHints } from "./scrollhint";
import { showTotals, showWhatIf } from "./side";
import { Slices } from "./slices";
import { SegmentsPanel } from "./segmentspanel";
import { StacksPanel } from "./stackspanel";
import { describe, say, statusText, windowText } from "./status";
import { connectTables } from "./tables";

const immediateEvents = 10_000; // swept in the frame itself
const immediateKinds = 300_000; // blocks that are sorted into kinds in the frame itself

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
    complete: Promise<void> = Promise.resolve(); // all blocks of the device shown are drawn
    kinds: Kinds | null = null; // what blocks are coloured by; null = their state
    matcher: Matcher | null = null;
    matches: Uint8Array | null = null; // per stack
    readonly chart = new Surface(byId("chart").parentElement!);
    readonly map = new Surface(byId("map").parentElement!);
    readonly segments = new SegmentsPanel(this);
    ranks: RankStrip | null = null; // null: not a job
    private readonly marks = new MapMarks();
    private readonly exact = new RestSweep(() => {
        this.drawTime();
        this.drawAddresses(this.exact.sweep);
    });
    private readonly sorting = new Slices();
    private asked = 0; // how often a device was asked for
    private hashTimer = 0;
    pins = new Set<number>(); // blocks that the verdict names
    readonly panel: StacksPanel;
    readonly player: Player;

    constructor(
        readonly header: Header,
        private readonly source: DeviceSource,
        private readonly fail: (error: unknown) => void,
    ) {
        this.stacks = new Stacks(header);
        this.store = new Store({
            device: 0,
            t0: 0,
            t1: 1,
            a0: 0,
            a1: 1,
            cursor: 0,
            mark: -1,
            card: -1,
            culprit: -1,
            selected: -1,
            stack: -1,
            query: "",
            theme: "auto",
            stacks: "holes",
            shape: "icicle",
            fold: false,
            colour: "state",
            whatif: -1,
            order: "worst",
        });
        this.panel = new StacksPanel(this);
        this.player = new Player(this);
    }

    get view(): View {
        return this.store.view;
    }

    get colours(): Colours {
        return document.documentElement.dataset.theme === "dark" ? dark : light;
    }

    async open(): Promise<void> {
        const wanted = readHash(location.hash);
        await this.showDevice(wanted.device ?? 0, wanted);
        byId("plain").hidden = true;
        byId("main").hidden = false;
        this.store.subscribe((_, changed) => this.update(changed));
        connectInput(this);
        connectTables(this);
        connectScrollHints();
        connectRanks(this);
        this.store.flush(["device", "theme"]);
        const surfaces = [this.chart, this.map, this.segments.surface];
        const observer = new ResizeObserver(() => {
            if (surfaces.some((surface) => surface.grew())) this.store.flush(["size"]);
        });
        for (const surface of surfaces) observer.observe(surface.box);
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
            this.store.flush(["theme"]),
        );
        // A link pasted where the page is open already.
        addEventListener("hashchange", () => {
            clearTimeout(this.hashTimer);
            const linked = readHash(location.hash);
            this.goTo(linked.device ?? 0, { ...unsaid, ...linked });
        });
    }

    /** Another device, or another view of this one, with all pictures. */
    goTo(index: number, wanted: Partial<View> = {}): void {
        void this.showDevice(index, wanted)
            .then(() => this.store.flush(["device", "theme"]))
            .catch(this.fail);
    }

    /** `wanted` may name what this device does not have: that part is as if it were not said. */
    private async showDevice(number: number, wanted: Partial<View>): Promise<void> {
        const index = number < this.header.devices.length ? number : 0;
        const asked = ++this.asked;
        const model = await this.source.overview(index);
        if (asked !== this.asked) return; // another one has been asked for since
        this.exact.drop();
        this.model = model;
        const { head, lastTick } = this.model;
        const firstOom = head.cards.findIndex((card) => card.kind !== "retry"); // or the run without one, as a whole
        const card =
            wanted.card !== undefined && wanted.card < head.cards.length
                ? wanted.card
                : Math.min(head.cards.length - 1, Math.max(0, firstOom));
        const cursor = card >= 0 ? cardTick(head, head.cards[card]) : peakTick(this.model);
        const [t0, t1] = activeWindow(this.model);
        const whole: View = {
            ...this.view,
            t0,
            t1,
            a0: 0,
            a1: Math.max(1, head.axis_bytes),
            card,
            cursor,
            mark: -1,
            culprit: -1,
            selected: -1,
            stack: -1,
            whatif: -1,
            // Where nothing keeps holes open, who holds the memory is the question.
            stacks: card >= 0 && head.cards[card].culprits.length > 0 ? "holes" : "live",
            ...wanted,
            device: index,
        };
        whole.card = card;
        if (!this.model.curves.byRow[whole.whatif]) whole.whatif = -1;
        if (whole.culprit >= (head.cards[card]?.culprits.length ?? 0)) whole.culprit = -1;
        if (whole.selected >= head.blocks) whole.selected = -1;
        if (whole.stack >= this.stacks.count) whole.stack = -1;
        this.store.set(clampView(whole, lastTick, head.axis_bytes));
        describe(this);
        this.complete = this.model.complete ? Promise.resolve() : this.readBlocks(index);
        this.complete.catch(this.fail);
    }

    private async readBlocks(index: number): Promise<void> {
        const isShown = (): boolean => this.model.head === this.header.devices[index];
        const model = await this.source.blocks(index, (blocks) => {
            if (isShown()) {
                byId("count").textContent =
                    `reading blocks: ${Math.floor((100 * blocks) / this.model.head.blocks)} %`;
            }
        });
        if (!isShown()) return;
        this.model = model;
        describe(this);
        this.store.flush(["blocks"]);
    }

    /** Changes the view within its bounds. */
    change(change: Partial<View>): void {
        this.store.set(
            clampView({ ...this.view, ...change }, this.model.lastTick, this.model.head.axis_bytes),
        );
    }

    stepCard(by: number): void {
        const { head } = this.model;
        const { cards } = head;
        if (cards.length === 0) return;
        const card = (this.view.card + by + cards.length) % cards.length;
        const cursor = cardTick(head, cards[card]);
        const { t0, t1 } = this.view;
        const outside = cursor < t0 || cursor > t1;
        const shift = outside ? cursor - (t0 + t1) / 2 : 0;
        this.change({ card, cursor, culprit: -1, t0: t0 + shift, t1: t1 + shift });
    }

    isPin = (block: number): boolean => this.pins.has(block);

    /** Stands in the status line until the view changes again. */
    say(text: string): void {
        say(text);
    }

    private update(changed: ReadonlySet<Part>): void {
        const has = (...keys: Part[]): boolean => keys.some((key) => changed.has(key));
        const { view, model } = this;
        if (has("theme")) {
            const darkWanted =
                view.theme === "dark" ||
                (view.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
            document.documentElement.dataset.theme = darkWanted ? "dark" : "light";
        }
        if (has("device", "blocks", "colour")) this.sortKinds();
        if (has("device", "blocks", "theme", "colour", "kinds")) fillLegends(this);
        if (has("device")) {
            byId("main").style.setProperty("--lanes", `${lanesHeight(model)}px`);
            showTotals(model);
        }
        if (has("device", "whatif")) showWhatIf(this);
        if (has("device", "card", "culprit", "stack", "fold")) this.showCards();
        if (has("device", "query")) {
            this.matcher = makeMatcher(view.query);
            this.matches = this.stacks.search(this.matcher);
        }
        if (has("device", "blocks", "cursor")) {
            this.heap = model.complete ? heapAt(model, view.cursor) : emptyHeap(view.cursor);
        }
        if (has("device", "blocks", "size", "t0", "t1", "a0", "a1", "theme", "colour", "kinds")) {
            this.drawWindow(has("device", "blocks"));
        } else if (has("whatif")) {
            this.drawTime();
        } else if (has("cursor", "mark", "card", "culprit", "selected", "query", "stack", "fold")) {
            this.drawOver();
        }
        if (
            has(
                "device",
                "blocks",
                "size",
                "cursor",
                "order",
                "theme",
                "card",
                "culprit",
                "colour",
                "kinds",
            )
        ) {
            this.segments.draw();
        } else if (has("selected", "query", "stack", "fold")) {
            this.segments.drawMarks();
        }
        const moved =
            (view.stacks === "churn" || (view.stacks === "growth" && view.mark < 0)) &&
            has("t0", "t1");
        if (
            moved ||
            has(
                "device",
                "blocks",
                "size",
                "cursor",
                "mark",
                "stacks",
                "shape",
                "fold",
                "theme",
                "query",
                "stack",
            )
        ) {
            this.panel.draw();
        }
        if (has("device", "blocks", "selected")) showDetails(this);
        byId("window").textContent = windowText(this);
        this.say(statusText(this));
        clearTimeout(this.hashTimer);
        this.hashTimer = window.setTimeout(() => this.saveHash(), 250);
    }

    // Of few blocks at once; of many a little at a time, and until then the colours are those of
    // state.
    private sortKinds(): void {
        this.kinds = null;
        this.sorting.stop();
        const { model, view } = this;
        const steps = model.complete ? kindsInSteps(model, this.stacks, view.colour) : null;
        if (!steps) return;
        if (model.blocks.count <= immediateKinds) {
            this.kinds = finish(steps);
        } else {
            this.sorting.run(steps, 0, (kinds) => {
                this.kinds = kinds;
                this.store.flush(["kinds"]);
            });
        }
    }

    private showCards(): void {
        const { view } = this;
        const { cards } = this.model.head;
        const rows = cards[view.card]?.culprits ?? [];
        const shown = view.culprit >= 0 && view.culprit < rows.length ? [rows[view.culprit]] : rows;
        this.pins = new Set(shown.flatMap((row) => row.blocks));
        showCard(cards, this.header.class_words, view.card, (by) => this.stepCard(by));
        showCulprits(this, cards[view.card]);
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
        if (!model.complete) {
            this.drawTime();
            this.drawAddresses(null);
            return;
        }
        // what lives through the window is swept, too
        const crowded = this.heap.live.length > immediateEvents * 3;
        const sweep = this.exact.of(
            model,
            view.t0,
            view.t1,
            crowded ? -1 : now ? immediateEvents * 2 : immediateEvents,
        );
        this.drawTime();
        this.drawAddresses(sweep);
    }

    private drawTime(): void {
        if (!this.chart.fit()) return;
        this.paintTime(this.chart.base);
        this.drawChartCursor();
    }

    /** The chart; with `over` also what moves with the cursor. */
    paintTime(layer: Layer, over?: CanvasRenderingContext2D): void {
        const {
            model,
            view,
            exact: { sweep },
        } = this;
        const data = sweep
            ? { bins: sweep.bins, from: sweep.from, to: sweep.to }
            : { bins: model.bins, from: 0, to: model.lastTick };
        drawChart(layer, model, data, view, this.overlay(), this.colours);
        if (over) this.paintChartCursor(layer, over);
    }

    private overlay(): Overlay | null {
        const { curves, head, lastTick } = this.model;
        const bytes = curves.byRow[this.view.whatif];
        return bytes
            ? {
                  name: head.whatif[this.view.whatif].name,
                  times: curves.times,
                  bytes,
                  endTick: lastTick,
              }
            : null;
    }

    private drawAddresses(sweep: WindowSweep | null): void {
        if (!this.map.fit()) return;
        const began = performance.now();
        const { view, model, kinds, colours } = this;
        let text = "";
        if (kinds && sweep) {
            drawKinds(this.map.base, model, view, sweep, kinds, colours);
            text = `coloured by ${view.colour}, mixed by area`;
        } else {
            const mode = drawMap(this.map.base, model, view, sweep, colours);
            text =
                mode === "overview"
                    ? "shares of area (overview)"
                    : mode === "exact shares"
                      ? "shares of area per pixel"
                      : "every block (darker: over a quarter of the run)";
            if (kinds) text += `; by ${view.colour} at rest, in windows of fewer blocks`;
            else if (view.colour !== "state") text += `; blocks are being sorted by ${view.colour}`;
        }
        document.documentElement.dataset.mapMs = (performance.now() - began).toFixed(1);
        byId("map-mode").textContent = text;
        this.drawMarks();
    }

    private drawOver(): void {
        this.drawChartCursor();
        this.drawMarks();
    }

    private drawChartCursor(): void {
        this.paintChartCursor(this.chart.over, this.chart.clearOver());
    }

    private paintChartCursor(layer: Layer, context: CanvasRenderingContext2D): void {
        const { model, view, colours } = this;
        const bottom = layer.height - axisHeight;
        const inside = (x: number): boolean => x >= plotLeft && x <= plotRight(layer);
        const mark = timeX(layer, view, view.mark);
        if (view.mark >= 0 && inside(mark)) drawMark(context, mark, 4, bottom, colours);
        const x = timeX(layer, view, view.cursor);
        if (inside(x)) drawCursor(context, x, signsHeight, bottom, colours); // never over a sign
        if (model.complete) drawSplit(layer, context, model, this.heap, colours);
    }

    /** Per stack, whether its blocks are marked; null = none. */
    markedStacks(): Uint8Array | null {
        return this.marks.stacks(this);
    }

    drawMarks(): void {
        this.marks.draw(this, this.pins);
    }
}
