// Where the boxes of the stacks are: the layouts of one tree or of two trees become rows of pixels.
import type { StackLayout, Stacks } from "../data/stacks";
import { type PlacedBox, rowHeight } from "./icicle";

export interface StackPlaces {
    boxes: PlacedBox[];
    total: number;
    rows: number;
}

/** One tree: outermost boxes on top, or at the bottom of `height` pixels (flame). */
export function placesOf(
    stacks: Stacks,
    { boxes, total, depth }: StackLayout,
    flame: number | null,
    note: string,
    inwards: boolean,
): StackPlaces {
    return {
        total,
        rows: depth,
        boxes: boxes.map((box, at) => ({
            ...box,
            // The names of a box follow the way from the allocation to its callers.
            chain: inwards ? box.chain : [...box.chain].reverse(),
            stacks,
            top: flame === null ? box.depth * rowHeight : flame - (box.depth + 1) * rowHeight,
            note: at === 0 ? note : "",
        })),
    };
}

/** A frame in the middle, its callers above it, what it calls below it. */
export function placesAround(
    callers: { stacks: Stacks; layout: StackLayout },
    callees: { stacks: Stacks; layout: StackLayout },
    note: string,
): StackPlaces {
    const above = Math.max(0, callers.layout.depth - 1);
    const up = placesOf(callers.stacks, callers.layout, (above + 1) * rowHeight, "", false);
    const down = placesOf(callees.stacks, callees.layout, null, note, true);
    return {
        total: down.total,
        rows: above + Math.max(1, callees.layout.depth),
        boxes: [
            ...down.boxes.map((box) => ({ ...box, top: box.top + above * rowHeight })),
            ...up.boxes.filter(({ depth }) => depth > 0),
        ],
    };
}
