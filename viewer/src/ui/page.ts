// The whole page: it holds the state, computes what the panels need, and knows which panel depends
// on what. It draws at most once per frame. While a large window moves, it shows the overview. The
// exact pictures follow when the window rests.
import { activeWindow } from "../data/firstwindow";
import { asksForBlockers, type Header } from "../data/header";
import { emptyHeap, heapAt, type HeapState } from "../data/heap";
import { type Kinds, kindsInSteps } from "../data/kinds";
import { measuresWindow, noSums, type StackSums, stackSums } from "../data/measures";
import { cardTick, type DeviceModel } from "../data/model";
import { type ExpressionSearch, expressionOf, findText } from "../data/search";
import { ShownStacks } from "../data/shownstacks";
import { Stacks } from "../data/stacks";
import { finish } from "../data/steps";
import { peakTick, type WindowSweep } from "../data/sweep";
import { type Colours, dark, light } from "../draw/colours";
import { lanesHeight } from "../draw/lanes";
import { readHash, unsaid, writeHash } from "../state/hash";
import { clampView, initialView, type Part, Store, type View, viewParts } from "../state/store";
import { checkUpdates, runUpdates, type Update } from "../state/updates";
import { showAnswer } from "./answer";
import { showCard } from "./cards";
import { ChartPanel } from "./chartpanel";
import { showDetails } from "./details";
import { byId } from "./dom";
import { HeatPanel } from "./heat";
import { connectControls, connectPictures, showControls } from "./input";
import { fillLegends } from "./legends";
import { MapPanel } from "./mappanel";
import { Player } from "./play";
import { showJob } from "./job";
import { connectKeys } from "./keyboard";
import { connectRanks, type RankStrip, selectDevice, showOwnTitle } from "./ranks";
import { RestSweep } from "./restsweep";
import { connectScrollHints } from "./scrollhint";
import { SegmentsPanel } from "./segmentspanel";
import { showAdvice, showProgramPools, showRun, showTotals, showWhatIf } from "./side";
import { Slices } from "./slices";
import { StacksPanel } from "./stackspanel";
import { describe, say, statusText, windowText } from "./status";
import { connectTables } from "./tables";
import type { Found, PageView, Picture } from "./view";

const noHits = new Uint8Array(0);
const immediateEvents = 10_000; // at most this many are swept within the frame
const immediateKinds = 300_000; // at most this many blocks are sorted into kinds within the frame

/** Loads devices: first without their blocks, then in full. */
export interface DeviceSource {
    overview(index: number): Promise<DeviceModel>;
    blocks(index: number, progress: (blocks: number) => void): Promise<DeviceModel>;
}

export class Page implements PageView {
    readonly stacks: Stacks;
    readonly shownStacks: ShownStacks;
    model!: DeviceModel;
    // resolves when all blocks of the shown device are drawn
    complete: Promise<void> = Promise.resolve();
    heap: HeapState = emptyHeap(0);
    kinds: Kinds | null = null;
    pins: ReadonlySet<number> = new Set();
    found: Found | null = null;
    marked: Uint8Array | null = null;
    sums: StackSums = noSums;
    sweep: WindowSweep | null = null;
    private readonly store = new Store(initialView);
    private readonly exact = new RestSweep(() => {
        this.sweep = this.exact.sweep;
        this.store.flush(["sweep"]);
    });
    private readonly sorting = new Slices();
    private asked = 0; // how often a device was requested
    private hashTimer = 0;
    private readonly chart = new ChartPanel(this);
    private readonly map = new MapPanel(this);
    private readonly panel = new StacksPanel(this);
    private readonly segments = new SegmentsPanel(this);
    private ranks: RankStrip | null = null; // null: not a job
    private heatPanel: HeatPanel | null = null; // null: no memory over time, or not a job

    // Dependencies: first the rows that compute, then the rows that draw. Rows that change the
    // document in every frame come last: a picture that reads its size after them would force a new
    // layout.
    private readonly updates: Update[] = [
        { on: ["theme"], draw: () => this.showTheme() },
        { on: ["device", "blocks", "colour"], draw: () => this.sortKinds(), makes: "kinds" },
        { on: ["device", "blocks", "cursor"], draw: () => this.findHeap(), makes: "heap" },
        { on: ["device", "card", "culprit"], draw: () => this.findPins(), makes: "pins" },
        { on: ["query", "fold"], draw: (changed) => this.search(changed), makes: "matches" },
        {
            on: ["matches", "stack", "culprit", "fold"],
            draw: () => this.findMarked(),
            makes: "marked",
        },
        {
            on: ["t0", "t1"],
            draw: () => measuresWindow(this.view.stacks, this.view.mark),
            makes: "measuredWindow",
        },
        {
            on: ["device", "blocks", "heap", "mark", "stacks", "measuredWindow"],
            draw: () => this.sumStacks(),
            makes: "sums",
        },
        {
            on: ["device", "blocks", "t0", "t1", "a0", "a1"],
            draw: (changed) => this.findSweep(changed),
            makes: "sweep",
        },
        { on: ["device"], draw: () => this.showDevice() },
        { on: ["device", "theme"], draw: () => this.ranks?.draw() },
        { on: ["device", "theme"], draw: () => this.heatPanel?.draw() },
        {
            on: ["device", "blocks", "theme", "kinds", "card", "culprit"],
            draw: () => fillLegends(this),
        },
        { on: ["device", "whatif"], draw: () => showWhatIf(this) },
        {
            on: ["device", "card", "culprit", "stack", "fold", "theme"],
            draw: () => this.showCards(),
        },
        {
            on: ["device", "blocks", "size", "theme", "t0", "t1", "sweep", "whatif"],
            draw: () => this.chart.draw(),
            makes: "chart",
        },
        { on: ["chart", "heap", "mark"], draw: () => this.chart.drawOver() },
        {
            on: ["device", "blocks", "size", "theme", "t0", "t1", "a0", "a1", "sweep", "kinds"],
            draw: () => this.map.draw(),
            makes: "map",
        },
        { on: ["map", "heap", "pins", "marked", "selected"], draw: () => this.map.drawOver() },
        {
            on: ["device", "blocks", "size", "theme", "heap", "order", "pins", "kinds"],
            draw: () => this.segments.draw(),
            makes: "segments",
        },
        { on: ["segments", "marked", "selected"], draw: () => this.segments.drawOver() },
        {
            on: ["device", "blocks", "size", "theme", "sums", "shape", "fold", "matches", "stack"],
            draw: () => this.panel.draw(),
        },
        { on: ["device", "blocks", "selected"], draw: () => showDetails(this) },
        { on: viewParts, draw: () => showControls(this) },
        { on: ["device", "t0", "t1"], draw: () => this.showWindow() },
        { on: [...viewParts, "blocks", "matches"], draw: () => this.say(statusText(this)) },
        { on: viewParts, draw: () => this.saveHashSoon() },
    ];

    constructor(
        readonly header: Header,
        private readonly source: DeviceSource,
        private readonly expressions: ExpressionSearch,
        private readonly fail: (error: unknown) => void,
    ) {
        this.stacks = new Stacks(header);
        this.shownStacks = new ShownStacks(header, this.stacks);
        checkUpdates(this.updates);
    }

    get view(): View {
        return this.store.view;
    }

    get colours(): Colours {
        return document.documentElement.dataset.theme === "dark" ? dark : light;
    }

    get pictures(): Picture[] {
        const { ranks, chart, map, panel, segments } = this;
        return [...(ranks ? [ranks] : []), chart, map, panel, segments];
    }

    async open(): Promise<void> {
        const wanted = readHash(location.hash);
        await this.openDevice(wanted.device ?? 0, wanted);
        byId("plain").hidden = true;
        byId("main").hidden = false;
        this.store.subscribe((changed) => runUpdates(this.updates, changed));
        connectPictures(this, this.chart.surface.base, this.map.surface.base);
        connectControls(this);
        connectKeys(this, new Player(this));
        connectTables(this);
        connectScrollHints();
        this.ranks = connectRanks(this);
        showJob(this);
        if (this.header.heat.columns > 0) this.heatPanel = new HeatPanel(this);
        this.store.flush(["device", "theme"]);
        const surfaces = [this.chart.surface, this.map.surface, this.segments.surface];
        const observer = new ResizeObserver(() => {
            if (surfaces.some((surface) => surface.grew())) this.store.flush(["size"]);
        });
        for (const surface of surfaces) observer.observe(surface.box);
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
            this.store.flush(["theme"]),
        );
        // Handles a link pasted while the page is open.
        addEventListener("hashchange", () => {
            clearTimeout(this.hashTimer);
            const linked = readHash(location.hash);
            this.goTo(linked.device ?? 0, { ...unsaid, ...linked });
        });
    }

    /** Shows another device, or another view of this one, with all pictures. */
    goTo(index: number, wanted: Partial<View> = {}): void {
        void this.openDevice(index, wanted)
            .then(() => this.store.flush(["device", "theme"]))
            .catch(this.fail);
    }

    /** Ignores parts of `wanted` that this device does not have. */
    private async openDevice(number: number, wanted: Partial<View>): Promise<void> {
        const index = number < this.header.devices.length ? number : 0;
        const asked = ++this.asked;
        const model = await this.source.overview(index);
        if (asked !== this.asked) return; // another device was requested since
        this.model = model;
        const { head, lastTick } = this.model;
        // in a run without OOM: the card of the whole run
        const firstOom = head.cards.findIndex((card) => card.kind !== "retry");
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
            stacks: asksForBlockers(head.cards[card]) ? "holes" : "live",
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

    say(text: string): void {
        say(text);
    }

    private showTheme(): void {
        const { theme } = this.view;
        const darkWanted =
            theme === "dark" ||
            (theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
        document.documentElement.dataset.theme = darkWanted ? "dark" : "light";
    }

    // Few blocks are sorted at once. Many are sorted in steps. Until then the colours show the
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

    private findHeap(): void {
        const { model, view } = this;
        this.heap = model.complete ? heapAt(model, view.cursor) : emptyHeap(view.cursor);
    }

    private findPins(): void {
        const { model, view } = this;
        const card = model.head.cards[view.card];
        const rows = card?.culprits ?? [];
        const named =
            view.culprit >= 0
                ? rows.slice(view.culprit, view.culprit + 1)
                : asksForBlockers(card)
                  ? rows
                  : [];
        this.pins = new Set(named.flatMap(({ blocks }) => blocks));
    }

    // Text is searched at once, a regular expression in a worker. Until its answer arrives the
    // marks do not change.
    private search(changed: ReadonlySet<Part>): boolean {
        const { query, fold } = this.view;
        if (!query && !this.found) return false;
        const names = this.shownStacks.names(fold);
        const source = expressionOf(query);
        this.expressions.stop();
        if (source !== null) {
            this.found = this.foundBy(this.found?.hits ?? noHits, "searching");
            this.expressions.find(names, source, (answer) => {
                const { hits, problem } = { hits: noHits, problem: null, ...answer };
                this.found = this.foundBy(hits, problem);
                this.store.flush(["matches"]);
            });
            return changed.has("fold");
        }
        const text = query.trim();
        this.found = text ? this.foundBy(findText(names, text), null) : null;
        return true;
    }

    private foundBy(hits: Uint8Array, problem: string | null): Found {
        const matches = this.stacks.search(hits);
        const shown = this.shownStacks.matches(hits, matches, this.view.fold);
        return { hits, matches, shown, problem };
    }

    // Marks the stacks that the search found, or the marked stack.
    private findMarked(): void {
        const { view, found } = this;
        const below = view.culprit >= 0 ? null : this.shownStacks.andBelow(view.stack, view.fold);
        this.marked =
            found && below
                ? found.matches.map((hit, node) => hit | below[node])
                : (found?.matches ?? below);
    }

    private sumStacks(): void {
        const { model, heap, view } = this;
        this.sums = model.complete ? stackSums(model, heap, view.stacks, view) : noSums;
    }

    // Sweeps the window at once if it has few events, otherwise when it rests.
    private findSweep(changed: ReadonlySet<Part>): boolean {
        const before = this.sweep;
        const { model, view } = this;
        if (model.complete) {
            // blocks that live through the whole window are swept, too
            const crowded = this.heap.live.length > immediateEvents * 3;
            const now = changed.has("device") || changed.has("blocks");
            const most = crowded ? -1 : now ? immediateEvents * 2 : immediateEvents;
            this.sweep = this.exact.of(model, view.t0, view.t1, most);
        } else {
            this.exact.drop();
            this.sweep = null;
        }
        return this.sweep !== before;
    }

    private showDevice(): void {
        byId("main").style.setProperty("--lanes", `${lanesHeight(this.model)}px`);
        showAdvice(this.model);
        showProgramPools(this);
        showRun(this);
        showTotals(this.model);
        selectDevice(this.view.device);
        showOwnTitle(this);
    }

    private showCards(): void {
        const { cards } = this.model.head;
        const { card } = this.view;
        showCard(this.model.head, this.header.class_words, card, (by) => this.stepCard(by));
        showAnswer(this, cards[card]);
        byId("main").dataset.screen = cards[card]?.screen ?? "";
    }

    private showWindow(): void {
        byId("window").textContent = windowText(this);
    }

    private saveHashSoon(): void {
        clearTimeout(this.hashTimer);
        this.hashTimer = window.setTimeout(() => this.saveHash(), 250);
    }

    private saveHash(): void {
        try {
            history.replaceState(null, "", writeHash(this.view));
        } catch {
            // Some browsers refuse this for local files. The page works without it.
        }
    }
}
