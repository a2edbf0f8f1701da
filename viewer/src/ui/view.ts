// What a panel sees of the page. Panels know this interface, and never the page itself.
import type { Header } from "../data/header";
import type { HeapState } from "../data/heap";
import type { Kinds } from "../data/kinds";
import type { StackSums } from "../data/measures";
import type { DeviceModel } from "../data/model";
import type { ShownStacks } from "../data/shownstacks";
import type { Stacks } from "../data/stacks";
import type { WindowSweep } from "../data/sweep";
import type { Colours } from "../draw/colours";
import type { Layer, Surface } from "../draw/surface";
import type { View } from "../state/store";

/** `colour` may be "hatch" (holes), "line", or "burst" or "emptied" (markers). */
export interface LegendEntry {
    colour: string;
    text: string;
}

/** A picture as it is saved with the others. */
export interface Picture {
    readonly surface: Surface;
    readonly title: string;
    readonly place: "top" | "left" | "right";
    readonly legend: LegendEntry[];
    /** The whole picture, with what lies above it; absent: too much for vectors. */
    paint?(layer: Layer): void;
}

/** What the search found. */
export interface Found {
    hits: Uint8Array; // per name; none beyond its end
    matches: Uint8Array; // per stack
    shown: Uint8Array; // per node of the tree that is drawn
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
    readonly kinds: Kinds | null; // what blocks are coloured by; null = their state
    readonly pins: ReadonlySet<number>; // blocks that the verdict names
    readonly found: Found | null; // null without a search
    readonly marked: Uint8Array | null; // per stack, whether its blocks are marked; null = none
    readonly sums: StackSums;
    readonly sweep: WindowSweep | null; // null: the overview stands in

    /** Changes the view within its bounds. */
    change(change: Partial<View>): void;
    /** Shows another device. */
    goTo(device: number): void;
    stepCard(by: number): void;
    /** Stands in the status line until the view changes again. */
    say(text: string): void;
}
