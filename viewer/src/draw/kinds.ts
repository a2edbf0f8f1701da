// Draws addresses coloured by kind of block (age, phase, stream, pool, category, stack) instead of
// by state. Free memory is pale, whatever keeps it.
import { eachRow } from "../data/coverage";
import { type Kinds, mostKinds } from "../data/kinds";
import type { DeviceModel } from "../data/model";
import { each } from "../data/steps";
import type { WindowSweep } from "../data/sweep";
import { type Colours, rgb } from "./colours";
import { type Picture, pixelOf } from "./pixels";
import { adder, addUnits, emptyGrids, type MapWindow } from "./shares";

export function kindColour(colours: Colours, kind: number): string {
    return kind >= mostKinds ? colours.otherKind : colours.kinds[kind];
}

/** Draws the exact events of a window, coloured by kind, in steps. */
export function* kindShares(
    picture: Picture,
    model: DeviceModel,
    window: MapWindow,
    sweep: WindowSweep,
    kinds: Kinds,
    colours: Colours,
): Generator<void, void> {
    const { blocks } = model;
    const count = kinds.names.length;
    const grids = yield* emptyGrids(picture, count + 1);
    const add = adder(picture, window);
    yield* each(sweep.blocks.length, (at) => {
        const row = sweep.blocks[at];
        const kind = kinds.of[row];
        if (kind >= count) return; // a block of 0 bytes may have no kind
        const grid = grids[kind];
        add(grid, blocks.start[row], blocks.end[row], blocks.offset[row], blocks.size[row]);
    });
    yield* addUnits(grids[count], add, model, window);
    const { columns, pixels } = picture;
    const mix = kindMixer(kinds, colours);
    yield* eachRow(grids, (row, shares) => {
        let at = row * columns;
        for (let column = 0; column < columns; ++column) pixels[at++] = mix(shares, column);
    });
}

/**
 * Mixes the colours of a pixel. Each kind has an array of shares, one per pixel; the last array has
 * the shares of reserved memory.
 */
export function kindMixer(
    { names }: Kinds,
    colours: Colours,
): (shares: readonly ArrayLike<number>[], pixel: number) => number {
    const count = names.length;
    const parts = names.map((_, kind) => rgb(kindColour(colours, kind)));
    const free = rgb(colours.freeKind);
    const ground = rgb(colours.ground);
    return (shares, pixel) => {
        let [used, red, green, blue] = [0, 0, 0, 0];
        for (let kind = 0; kind < count; ++kind) {
            const share = shares[kind][pixel];
            if (share <= 0) continue;
            const part = parts[kind];
            used += share;
            red += share * part[0];
            green += share * part[1];
            blue += share * part[2];
        }
        const scale = used > 1 ? 1 / used : 1;
        const taken = Math.min(1, used);
        const unused = Math.max(0, Math.min(1, shares[count][pixel]) - taken);
        const nothing = Math.max(0, 1 - taken - unused);
        return pixelOf(
            red * scale + unused * free[0] + nothing * ground[0],
            green * scale + unused * free[1] + nothing * ground[1],
            blue * scale + unused * free[2] + nothing * ground[2],
        );
    };
}
