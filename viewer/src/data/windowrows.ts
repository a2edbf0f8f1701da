// The blocks of a window of the map as rows of a table. If there are too many, only those with the
// most bytes x time, and the count and bytes of the others.
import { type Area, type BlockCount, visitHits, type Wanted, wantedStacks } from "./hits";
import type { DeviceModel } from "./model";
import { finish } from "./steps";

export interface WindowRows {
    rows: Uint32Array;
    all: BlockCount;
    left: BlockCount;
}

// Weights are grouped in classes that differ by a factor of 2^(1/16). So no sort is needed.
const classes = 16 * 130;
const classOf = (weight: number): number =>
    Math.min(classes - 1, Math.floor(16 * Math.log2(weight + 1)));

function everyBlock(model: DeviceModel): Wanted {
    let highest = 0;
    for (const node of model.blocks.stack) if (node > highest) highest = node;
    return wantedStacks(new Uint8Array(highest + 1).fill(1));
}

/** `wanted`: only these blocks; null = all. */
export function windowRows(
    model: DeviceModel,
    area: Area,
    most: number,
    wanted: Wanted | null = null,
): WindowRows {
    const { start, end, size } = model.blocks;
    const every = wanted ?? everyBlock(model);
    const weightClass = (row: number): number =>
        classOf(size[row] * (Math.min(end[row], model.lastTick) - start[row] + 1));
    const counts = new Uint32Array(classes);
    const all = finish(visitHits(model, area, every, (row) => void ++counts[weightClass(row)]));
    // Take whole classes from the heaviest down. `last` is the class of which only `room` blocks
    // are taken.
    let last = classes - 1;
    let room = most;
    while (last > 0 && counts[last] <= room) room -= counts[last--];
    const rows: number[] = [];
    const left = { blocks: 0, bytes: 0 };
    finish(
        visitHits(model, area, every, (row) => {
            const of = all.blocks <= most ? classes : weightClass(row);
            if (of > last || (of === last && room-- > 0)) {
                rows.push(row);
            } else {
                ++left.blocks;
                left.bytes += size[row];
            }
        }),
    );
    return { rows: Uint32Array.from(rows).sort(), all, left };
}
