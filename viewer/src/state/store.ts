// The page's state: one plain object, changed in one place. Listeners are called once per frame.

import type { ColourBy } from "../data/kinds";
import type { HeatOrder } from "../data/heat";
import type { Measure } from "../data/measures";
import type { LineOrder } from "../data/rangelines";
import type { Range } from "../data/ranges";
import type { Shape } from "../data/shownstacks";
import type { AxisUnit } from "../data/tworuns";

export type Theme = "auto" | "light" | "dark";

export interface View {
    device: number;
    t0: number; // ticks
    t1: number;
    a0: number; // bytes on the axis
    a1: number;
    cursor: number; // tick
    mark: number; // second cursor, for growth; -1 = none
    r0: number; // the selected range of time, in ticks; -1 = none
    r1: number;
    s0: number; // a second range, to compare with; -1 = none
    s1: number;
    line: number; // Stacks.line() whose blocks are marked; -1 = none
    by: LineOrder; // of the lines of a range
    drag: "pan" | "range"; // what dragging in the pictures over time does
    card: number;
    culprit: number; // row of the card whose blocks are marked; -1 = all rows
    selected: number; // block; -1 = none
    hole: number; // an offset in the selected hole; -1 = none
    stack: number; // stack whose blocks are marked; -1 = none
    query: string;
    comment: string; // of the person who made the link
    theme: Theme;
    stacks: Measure;
    shape: Shape;
    zoom: number; // node of the drawn tree that has the whole width; -1 = all stacks
    frame: number; // Stacks.name() whose callers and callees are drawn; -1 = that of the most bytes
    only: boolean; // only stacks that match the search are drawn
    fold: boolean; // library frames are drawn as one
    hidden: string; // functions that are left out of the stacks (Folding)
    colour: ColourBy;
    whatif: number; // row whose replayed curve is drawn; -1 = none
    order: "worst" | "address";
    axis: AxisUnit; // of the memory of two runs
    heat: number; // index into heatMeasures; -1 = the first that is known
    rows: HeatOrder; // of the heat map
}

/** What belongs to one device, and is not kept when another one is opened. */
export const nothingChosen = {
    mark: -1,
    r0: -1,
    r1: -1,
    s0: -1,
    s1: -1,
    line: -1,
    culprit: -1,
    selected: -1,
    hole: -1,
    stack: -1,
    zoom: -1,
    frame: -1,
    whatif: -1,
} satisfies Partial<View>;

export const initialView: View = {
    ...nothingChosen,
    device: 0,
    t0: 0,
    t1: 1,
    a0: 0,
    a1: 1,
    cursor: 0,
    by: "change",
    drag: "pan",
    card: -1,
    query: "",
    comment: "",
    theme: "auto",
    stacks: "holes",
    shape: "icicle",
    only: false,
    fold: true,
    hidden: "",
    colour: "state",
    order: "worst",
    axis: "step",
    heat: -1,
    rows: "differs",
};

export const viewParts = Object.keys(initialView) as (keyof View)[];

/**
 * A value that a panel can depend on: a part of the view, the size of the pictures, whether the
 * blocks are read, or a value computed from these.
 */
export type Part =
    | keyof View
    | "size"
    | "blocks"
    | "heap" // the state at the cursor
    | "kinds" // the kinds that colour the blocks
    | "pins" // the blocks that the verdict names
    | "trees" // the stacks of the device's blocks
    | "matches" // the results of the search
    | "marked" // the stacks whose blocks are marked
    | "measuredWindow" // the window, while the bytes per stack depend on it
    | "sums" // the bytes of each stack
    | "sweep" // the exact events of the window
    | "freeRange" // the selected hole at the cursor
    | "ranges" // the figures of the selected ranges
    | "chart" // the pictures without the layer that moves with the cursor
    | "map"
    | "segments";
export type Listener = (changed: ReadonlySet<Part>) => void;

export class Store {
    private listeners: Listener[] = [];
    private changed = new Set<Part>();
    private scheduled = false;

    constructor(public view: View) {}

    subscribe(listener: Listener): void {
        this.listeners.push(listener);
    }

    set(change: Partial<View>): void {
        for (const key of Object.keys(change) as (keyof View)[]) {
            if (this.view[key] !== change[key]) this.changed.add(key);
        }
        this.view = { ...this.view, ...change };
        if (this.changed.size === 0 || this.scheduled) return;
        this.scheduled = true;
        requestAnimationFrame(() => this.flush());
    }

    /** Calls the listeners now. `keys` count as changed even if they are not. */
    flush(keys: Part[] = []): void {
        this.scheduled = false;
        const changed = new Set([...this.changed, ...keys]);
        this.changed = new Set();
        if (changed.size > 0) for (const listener of this.listeners) listener(changed);
    }
}

/** `view` with its window inside the data. A zoom stops at a few ticks and at the whole trace. */
export function clampView(view: View, lastTick: number, axisBytes: number): View {
    const fit = (low: number, high: number, most: number, least: number): [number, number] => {
        const width = Math.min(most, Math.max(least, high - low));
        const from = Math.max(0, Math.min(low, most - width));
        return [from, from + width];
    };
    const [t0, t1] = fit(view.t0, view.t1, lastTick, Math.min(lastTick, 8));
    const [a0, a1] = fit(
        view.a0,
        view.a1,
        Math.max(1, axisBytes),
        Math.min(Math.max(1, axisBytes), 4096),
    );
    const cursor = Math.max(0, Math.min(Math.floor(view.cursor), lastTick));
    const mark = view.mark < 0 ? -1 : Math.min(Math.floor(view.mark), lastTick);
    const [r0, r1] = clampRange(view.r0, view.r1, lastTick);
    const [s0, s1] = r0 < 0 ? [-1, -1] : clampRange(view.s0, view.s1, lastTick);
    return { ...view, t0, t1, a0, a1, cursor, mark, r0, r1, s0, s1 };
}

/** An incomplete or empty range is none. */
function clampRange(from: number, to: number, lastTick: number): Range {
    const low = Math.min(Math.floor(Math.min(from, to)), lastTick);
    const high = Math.min(Math.floor(Math.max(from, to)), lastTick);
    return low < 0 || low === high ? [-1, -1] : [low, high];
}

/** The selected ranges: none, one, or two that are compared. */
export function rangesOf({ r0, r1, s0, s1 }: View): Range[] {
    if (r0 < 0) return [];
    return s0 < 0
        ? [[r0, r1]]
        : [
              [r0, r1],
              [s0, s1],
          ];
}
