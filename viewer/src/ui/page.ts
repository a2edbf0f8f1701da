// The whole page: it holds the state and knows which panel depends on what. It draws at most once
// per frame. While a large window moves, it shows the overview. The exact pictures follow when the
// window rests.
import type { Header } from "../data/header";
import { cardTick, type DeviceModel } from "../data/model";
import type { ExpressionSearch } from "../data/search";
import { type Colours, coloursOf } from "../draw/colours";
import { heightBelow } from "../draw/chart";
import { readHash, unsaid, writeHash } from "../state/hash";
import { openedView } from "../state/opening";
import { clampView, type View, viewParts } from "../state/store";
import { checkUpdates, runUpdates, type Update } from "../state/updates";
import { showAnswer } from "./answer";
import { showCard } from "./cards";
import { ChartPanel } from "./chartpanel";
import { connectComment, showComment } from "./comment";
import { showDetails } from "./details";
import { byId, refreshTip } from "./dom";
import { HeatPanel } from "./heat";
import { showHole } from "./holecard";
import { connectSaving } from "./image";
import { connectControls, connectPictures, showControls } from "./input";
import { fillLegends } from "./legends";
import { MapPanel } from "./mappanel";
import { Player } from "./play";
import { showJob } from "./job";
import { connectKeys } from "./keyboard";
import { showRanges } from "./rangepanel";
import { connectRanks, type RankStrip, selectDevice, showOwnTitle } from "./ranks";
import { Results } from "./results";
import { connectScrollHints } from "./scrollhint";
import { SegmentsPanel } from "./segmentspanel";
import { showAdvice, showProgramPools, showRun, showTotals } from "./side";
import { showSource } from "./source";
import { StacksPanel } from "./stackspanel";
import { describe, keepStatusHeight, say, statusText, windowText } from "./status";
import { connectTables } from "./tables";
import { TwoRunsPanel } from "./tworuns";
import type { PageView, Picture } from "./view";
import { showWhatIf } from "./whatif";

// What the picture of the stacks depends on besides the bytes.
const stackParts = ["shape", "fold", "hidden", "stack", "zoom", "frame"] as const;

/** Loads devices: first without their blocks, then in full. */
export interface DeviceSource {
    overview(index: number): Promise<DeviceModel>;
    blocks(index: number, progress: (blocks: number) => void): Promise<DeviceModel>;
}

export class Page extends Results implements PageView {
    // resolves when all blocks of the shown device are drawn
    complete: Promise<void> = Promise.resolve();
    private asked = 0; // how often a device was requested
    private hashTimer = 0;
    private shownColours = coloursOf(false, false);
    private readonly contrast = matchMedia("(prefers-contrast: more)");
    private readonly paper = matchMedia("print");
    private readonly chart = new ChartPanel(this);
    private readonly map = new MapPanel(this);
    private readonly panel = new StacksPanel(this);
    private readonly segments = new SegmentsPanel(this);
    private ranks: RankStrip | null = null; // null: not a job
    private heatPanel: HeatPanel | null = null; // null: no memory over time, or not a job
    private runs: TwoRunsPanel | null = null; // null: the page does not compare two runs

    // Dependencies: first the rows that compute, then the rows that draw. Rows that change the
    // document in every frame come last: a picture that reads its size after them would force a new
    // layout.
    private readonly updates: Update[] = [
        { on: ["theme"], draw: () => this.showTheme() },
        ...this.computing,
        { on: ["device"], draw: () => this.showDevice() },
        { on: ["device", "theme"], draw: () => this.ranks?.draw() },
        { on: ["device", "theme", "heat", "rows"], draw: () => this.heatPanel?.draw() },
        { on: ["device"], draw: () => void this.runs?.open().catch(this.fail) },
        { on: ["device", "theme", "line"], draw: () => this.runs?.show() },
        { on: ["device", "theme", "axis"], draw: () => this.runs?.draw() },
        { on: ["device", "cursor", "t0", "t1"], draw: () => this.runs?.drawOver() },
        {
            on: ["device", "blocks", "theme", "kinds", "card", "culprit"],
            draw: () => fillLegends(this),
        },
        { on: ["device", "whatif"], draw: () => showWhatIf(this) },
        {
            on: ["device", "blocks", "card", "culprit", "stack", "fold", "hidden", "theme"],
            draw: () => this.showCards(),
        },
        {
            on: ["device", "blocks", "size", "theme", "t0", "t1", "sweep", "whatif"],
            draw: () => this.chart.draw(),
            makes: "chart",
        },
        { on: ["chart", "heap", "mark", "ranges"], draw: () => this.chart.drawOver() },
        {
            on: ["device", "blocks", "size", "theme", "t0", "t1", "a0", "a1", "sweep", "kinds"],
            draw: () => this.map.draw(),
            makes: "map",
        },
        { on: ["colour"], draw: () => this.map.showMode() },
        {
            on: ["map", "heap", "pins", "marked", "selected", "ranges", "freeRange"],
            draw: () => this.map.drawOver(),
        },
        {
            on: ["device", "blocks", "size", "theme", "heap", "order", "pins", "kinds"],
            draw: () => this.segments.draw(),
            makes: "segments",
        },
        {
            on: ["segments", "marked", "selected", "freeRange"],
            draw: () => this.segments.drawOver(),
        },
        {
            on: ["device", "blocks", "size", "theme", "sums", "matches", ...stackParts],
            draw: () => this.panel.draw(),
        },
        { on: ["device", "blocks", "selected"], draw: () => showDetails(this) },
        {
            on: ["device", "stack", "line", "culprit", "fold", "hidden", "shape"],
            draw: () => showSource(this),
        },
        { on: ["freeRange"], draw: () => showHole(this) },
        { on: ["ranges", "by", "line", "theme"], draw: () => showRanges(this) },
        { on: viewParts, draw: () => showControls(this) },
        { on: ["device", "comment"], draw: () => showComment(this) },
        { on: ["device", "t0", "t1", "a0", "a1"], draw: () => this.showWindow() },
        {
            on: [...viewParts, "blocks", "matches", "ranges"],
            draw: () => this.say(statusText(this)),
        },
        { on: [...viewParts, "blocks", "size", "sweep"], draw: refreshTip },
        { on: viewParts, draw: () => this.saveHashSoon() },
    ];

    constructor(
        header: Header,
        private readonly source: DeviceSource,
        expressions: ExpressionSearch,
        private readonly fail: (error: unknown) => void,
    ) {
        super(header, expressions);
        checkUpdates(this.updates);
    }

    get colours(): Colours {
        return this.shownColours;
    }

    get pictures(): Picture[] {
        const { ranks, heatPanel, runs, chart, map, panel, segments } = this;
        return [ranks, heatPanel, runs, chart, map, panel, segments].filter(
            (part) => part !== null,
        );
    }

    async open(): Promise<void> {
        const wanted = readHash(location.hash);
        await this.openDevice(wanted.device ?? 0, wanted);
        byId("plain").hidden = true;
        byId("main").hidden = false;
        this.store.subscribe((changed) => runUpdates(this.updates, changed));
        connectPictures(this, this.chart.surface.base, this.map.surface.base);
        connectControls(this);
        connectComment(this);
        connectKeys(this, new Player(this));
        connectTables(this);
        connectSaving(this);
        connectScrollHints();
        keepStatusHeight();
        this.ranks = connectRanks(this);
        showJob(this);
        const { comparison } = this.header;
        if (comparison) this.runs = new TwoRunsPanel(this, comparison);
        if (this.header.heat.columns > 0) this.heatPanel = new HeatPanel(this);
        this.store.flush(["device", "theme"]);
        const surfaces = [this.chart.surface, this.map.surface, this.segments.surface];
        const observer = new ResizeObserver(() => {
            if (surfaces.some((surface) => surface.grew())) this.store.flush(["size"]);
        });
        for (const surface of surfaces) observer.observe(surface.box);
        for (const query of [
            matchMedia("(prefers-color-scheme: dark)"),
            this.contrast,
            this.paper,
        ]) {
            query.addEventListener("change", () => this.store.flush(["theme"]));
        }
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

    overviewOf(index: number): Promise<DeviceModel> {
        return this.source.overview(index);
    }

    switchRun(): void {
        if (this.runs) this.runs.switchRun();
        else this.say("this page does not compare two runs");
    }

    /** Ignores parts of `wanted` that this device does not have. */
    private async openDevice(number: number, wanted: Partial<View>): Promise<void> {
        const index = number < this.header.devices.length ? number : 0;
        const asked = ++this.asked;
        const model = await this.source.overview(index);
        if (asked !== this.asked) return; // another device was requested since
        this.model = model;
        this.store.set(openedView(model, index, this.view, wanted, this.stacks.count));
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
        // Paper is light.
        const isDark = darkWanted && !this.paper.matches;
        document.documentElement.dataset.theme = isDark ? "dark" : "light";
        this.shownColours = coloursOf(isDark, this.contrast.matches && !this.paper.matches);
    }

    private showDevice(): void {
        byId("main").style.setProperty("--lanes", `${heightBelow(this.model)}px`);
        showAdvice(this);
        showProgramPools(this);
        showRun(this);
        showTotals(this);
        selectDevice(this.view.device);
        showOwnTitle(this);
    }

    private showCards(): void {
        const { cards } = this.model.head;
        const { card } = this.view;
        showCard(this);
        showAnswer(this, cards[card]);
        const screen = cards[card]?.screen ?? "";
        byId("main").dataset.screen = screen;
        // A state has no pictures over time: its segments have their place.
        const segments = byId("segments-panel");
        const place = byId(screen === "state" ? "left" : "right");
        byId("segments-title").textContent =
            screen === "state" ? "Segments" : "Segments at the cursor";
        if (segments.parentElement !== place) {
            place.insertBefore(segments, byId(screen === "state" ? "stacks-panel" : "side"));
        }
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
