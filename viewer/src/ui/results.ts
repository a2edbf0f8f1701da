// What the panels draw, computed from the view and the data: the heap at the cursor, the kinds of
// blocks, the matches of the search, the bytes per stack, and the events of the window. Each row of
// `computing` names the parts of the state that its result depends on.
import { asksForBlockers, type Header, segmentsKnown } from "../data/header";
import { emptyHeap, heapAt, type HeapState } from "../data/heap";
import { blocksWith, parseQuery, unknownTerm } from "../data/filter";
import { usedStacks, type Wanted } from "../data/hits";
import { type Hole, holeAt } from "../data/hole";
import { type Kinds, kindsInSteps } from "../data/kinds";
import { measuresWindow, noSums, onlyStacks, type StackSums, stackSums } from "../data/measures";
import type { DeviceModel } from "../data/model";
import { type ExpressionSearch, expressionOf, findText } from "../data/search";
import { ShownStacks } from "../data/shownstacks";
import { Stacks } from "../data/stacks";
import { finish } from "../data/steps";
import type { WindowSweep } from "../data/sweep";
import { initialView, type Part, rangesOf, Store, type View } from "../state/store";
import type { Update } from "../state/updates";
import { type MeasuredRange, RangeWork } from "./rangework";
import { RestSweep } from "./restsweep";
import { Slices } from "./slices";
import type { Found } from "./view";

const noHits = new Uint8Array(0);
const nothingFound: Found = {
    hits: noHits,
    matches: noHits,
    blocks: null,
    shown: noHits,
    problem: null,
};

/** The parts of a search's answer, which may arrive one after the other. */
interface Answer {
    hits: Uint8Array | null;
    blocks: Uint8Array | null;
    problem: string | null;
    waitsFor: number;
}
const immediateEvents = 10_000; // at most this many are swept within the frame
const immediateTerms = 50_000; // blocks that the terms of a search are tried on within the frame
const immediateKinds = 50_000; // at most this many blocks are sorted into kinds within the frame

export class Results {
    readonly stacks: Stacks;
    readonly shownStacks: ShownStacks;
    model!: DeviceModel;
    heap: HeapState = emptyHeap(0);
    kinds: Kinds | null = null;
    pins: ReadonlySet<number> = new Set();
    found: Found | null = null;
    marked: Wanted | null = null;
    sums: StackSums = noSums;
    sweep: WindowSweep | null = null;
    ranges: MeasuredRange[] = [];
    hole: Hole | null = null;
    protected readonly store = new Store(initialView);
    private readonly exact = new RestSweep(() => {
        this.sweep = this.exact.sweep;
        this.store.flush(["sweep"]);
    });
    private readonly sorting = new Slices();
    private readonly filtering = new Slices();

    private readonly rangeWork: RangeWork;

    protected readonly computing: readonly Update[] = [
        {
            on: ["device", "blocks", "colour"],
            draw: (changed) => this.sortKinds(changed),
            makes: "kinds",
        },
        { on: ["device", "blocks", "cursor"], draw: () => this.findHeap(), makes: "heap" },
        { on: ["device", "card", "culprit"], draw: () => this.findPins(), makes: "pins" },
        {
            on: ["device", "blocks"],
            draw: () => this.shownStacks.use(usedStacks(this.model)),
            makes: "trees",
        },
        {
            on: ["query", "fold", "hidden", "shape", "trees"],
            draw: (changed) => this.search(changed),
            makes: "matches",
        },
        {
            on: ["matches", "stack", "line", "culprit", "fold", "hidden", "shape", "trees"],
            draw: () => this.findMarked(),
            makes: "marked",
        },
        {
            on: ["t0", "t1", "r0", "r1"],
            draw: () => measuresWindow(this.view.stacks, this.view.mark),
            makes: "measuredWindow",
        },
        {
            on: ["device", "blocks", "heap", "mark", "stacks", "measuredWindow", "matches", "only"],
            draw: () => this.sumStacks(),
            makes: "sums",
        },
        {
            on: ["device", "blocks", "t0", "t1", "a0", "a1"],
            draw: (changed) => this.findSweep(changed),
            makes: "sweep",
        },
        { on: ["heap", "hole"], draw: () => this.findHole(), makes: "freeRange" },
        {
            on: ["device", "blocks", "r0", "r1", "s0", "s1"],
            draw: () => this.measureRanges(),
            makes: "ranges",
        },
    ];

    constructor(
        readonly header: Header,
        private readonly expressions: ExpressionSearch,
    ) {
        this.stacks = new Stacks(header);
        this.shownStacks = new ShownStacks(header, this.stacks);
        this.rangeWork = new RangeWork(this.stacks, () => {
            this.measureRanges();
            this.store.flush(["ranges"]);
        });
    }

    get view(): View {
        return this.store.view;
    }

    // Few blocks are sorted at once. Many are sorted in steps. Until then the colours stay as they
    // are.
    private sortKinds(changed: ReadonlySet<Part>): boolean {
        const before = this.kinds;
        this.sorting.stop();
        const { model, view } = this;
        const steps = model.complete ? kindsInSteps(model, this.stacks, view.colour) : null;
        if (!steps || changed.has("device") || changed.has("blocks")) this.kinds = null;
        if (steps && model.blocks.count <= immediateKinds) {
            this.kinds = finish(steps);
        } else if (steps) {
            this.sorting.run(steps, 0, (kinds) => {
                this.kinds = kinds;
                this.store.flush(["kinds"]);
            });
        }
        return this.kinds !== before;
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

    // Text is searched at once, a regular expression in a worker, terms about blocks in steps if
    // there are many blocks. Until the answers arrive the marks do not change.
    private search(changed: ReadonlySet<Part>): boolean {
        const { query } = this.view;
        if (!query && !this.found) return false;
        this.expressions.stop();
        this.filtering.stop();
        const { text, terms } = parseQuery(query);
        if (!text && terms.length === 0) {
            this.found = null;
            return true;
        }
        const names = this.shownStacks.names(this.view);
        const source = expressionOf(text);
        const before = this.found ?? nothingFound;
        const drawn = (["fold", "hidden", "shape", "trees"] as const).some((part) =>
            changed.has(part),
        );
        const answer: Answer = {
            hits: source === null && text ? findText(names, text) : null,
            blocks: null,
            problem: null,
            waitsFor: 0,
        };
        if (answer.hits && !answer.hits.includes(1)) answer.problem = unknownTerm(text);
        const arrived = (later: boolean): void => {
            if (--answer.waitsFor > 0) return;
            this.found = this.foundBy(answer, text === "");
            if (later) this.store.flush(["matches"]);
        };
        answer.waitsFor = 1 + Number(source !== null) + Number(terms.length > 0);
        let later = false;
        if (source !== null) {
            this.expressions.find(names, source, (found) => {
                if ("problem" in found) answer.problem ??= found.problem;
                else answer.hits = found.hits;
                arrived(later);
            });
        }
        if (terms.length > 0) {
            const take = (found: Uint8Array | string): void => {
                if (typeof found === "string") answer.problem ??= found;
                else answer.blocks = found;
                arrived(later);
            };
            const steps = blocksWith(this.model, this.stacks, terms);
            if (!this.model.complete || this.model.blocks.count <= immediateTerms) {
                take(finish(steps));
            } else {
                this.filtering.run(steps, 0, take);
            }
        }
        arrived(false);
        later = true;
        if (answer.waitsFor > 0) {
            const shown = this.shownStacks.matches(before.hits, before.matches, this.view);
            this.found = { ...before, shown, problem: "searching" };
            return drawn;
        }
        return true;
    }

    private foundBy({ hits, blocks, problem }: Answer, everyStack: boolean): Found {
        const names = hits ?? noHits;
        const failed = problem !== null;
        const matches =
            everyStack && !failed
                ? new Uint8Array(this.stacks.count).fill(1)
                : this.stacks.search(names);
        const shown =
            everyStack || failed ? noHits : this.shownStacks.matches(names, matches, this.view);
        return { hits: names, matches, blocks: failed ? null : blocks, shown, problem };
    }

    // Marks the blocks that the search found, and those of the marked line or the marked stack.
    private findMarked(): void {
        const { view, found } = this;
        const below =
            view.culprit >= 0
                ? null
                : view.line >= 0
                  ? this.stacks.ofLine(view.line)
                  : this.shownStacks.andBelow(view.stack, view);
        this.marked = found
            ? { stacks: found.matches, blocks: found.blocks, also: below }
            : below && { stacks: below, blocks: null, also: null };
    }

    private sumStacks(): void {
        const { model, heap, view, found } = this;
        const { cursor, mark } = view;
        // The bytes allocated in a window are those of the selected range, if there is one.
        const [t0, t1] =
            view.stacks === "churn" && view.r0 >= 0 ? [view.r0, view.r1] : [view.t0, view.t1];
        const times = { t0, t1, cursor, mark };
        const some = view.only && found ? found.blocks : null;
        const all = model.complete ? stackSums(model, heap, view.stacks, times, some) : noSums;
        this.sums = view.only && found ? onlyStacks(all, found.matches) : all;
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

    private findHole(): boolean {
        const before = this.hole;
        const { model, heap, view } = this;
        const known = view.hole >= 0 && model.complete && segmentsKnown(model.head);
        this.hole = known ? holeAt(model, heap, view.hole) : null;
        return this.hole !== before;
    }

    private measureRanges(): void {
        this.ranges = this.rangeWork.measure(this.model, rangesOf(this.view));
    }
}
