// The page as panels see it. Panels use this interface, never the page itself.
import { formatMoment } from "../data/format";
import type { Header } from "../data/header";
import type { HeapState } from "../data/heap";
import type { Wanted } from "../data/hits";
import type { Hole } from "../data/hole";
import type { Kinds } from "../data/kinds";
import type { StackSums } from "../data/measures";
import type { DeviceModel } from "../data/model";
import type { ShownStacks } from "../data/shownstacks";
import type { Stacks } from "../data/stacks";
import type { WindowSweep } from "../data/sweep";
import type { Colours } from "../draw/colours";
import type { Layer } from "../draw/surface";
import type { View } from "../state/store";
import type { MeasuredRange } from "./rangework";

/** A picture on canvases, which an SVG can have as vectors. */
export interface Picture {
    readonly surface: { readonly base: Layer; readonly over?: Layer };
    /** Draws the whole picture with its upper layer. Absent if it is too much for vectors. */
    paint?(layer: Layer): void;
}

/** Results of the search. */
export interface Found {
    hits: Uint8Array; // per name; missing entries are 0
    matches: Uint8Array; // per stack
    blocks: Uint8Array | null; // per block: whether the terms about blocks hold; null = no terms
    shown: Uint8Array; // per node of the drawn tree
    problem: string | null; // why there is no answer, or none yet
}

export interface PageView {
    readonly header: Header;
    readonly stacks: Stacks;
    readonly shownStacks: ShownStacks;
    readonly model: DeviceModel;
    readonly view: View;
    readonly colours: Colours;
    readonly pictures: readonly Picture[];

    readonly heap: HeapState; // at the cursor
    readonly kinds: Kinds | null; // the kinds that colour the blocks; null = coloured by state
    readonly pins: ReadonlySet<number>; // blocks that the verdict names
    readonly found: Found | null; // null without a search
    readonly marked: Wanted | null; // the marked blocks; null = none
    readonly sums: StackSums;
    readonly sweep: WindowSweep | null; // null: the overview is shown instead
    readonly hole: Hole | null; // the selected hole, if it exists at the cursor
    readonly ranges: readonly MeasuredRange[]; // the selected ranges: at most two

    /** Changes the view within its bounds. */
    change(change: Partial<View>): void;
    /** Shows another device, at a place if `wanted` has one. */
    goTo(device: number, wanted?: Partial<View>): void;
    /** A device without its blocks. */
    overviewOf(device: number): Promise<DeviceModel>;
    /** Shows the other one of two runs. */
    switchRun(): void;
    stepCard(by: number): void;
    /** Shows a text in the status line until the view changes again. */
    say(text: string): void;
}

/** Writes moments with enough digits for the shown window: to a thousandth of it. */
export function windowMoments({ model, view }: PageView): (ns: number) => string {
    const step = ((view.t1 - view.t0) * model.head.tick_ns) / 1000;
    return (ns) => formatMoment(ns, step);
}
