// The life of one block: when it was allocated, freed and reusable, and which blocks used its bytes
// before and after.
import { type DeviceModel, never } from "./model";
import { upperBound } from "./upperbound";

export interface Life {
    block: number;
    born: number; // ticks
    freed: number; // never = still live at the end
    reusable: number; // later than `freed` if other streams may still use the memory
    before: number[]; // the latest blocks that ended before and shared bytes, latest first
    after: number[]; // the first blocks allocated afterwards on its bytes, earliest first
    moreBefore: boolean; // there are more than in `before`
    moreAfter: boolean;
    searched: boolean; // false: the search stopped before the end of the trace
}

const mostNeighbours = 5;
const mostRows = 3_000_000; // searched in each direction

export function lifeOf(model: DeviceModel, block: number): Life {
    const { blocks } = model;
    const low = blocks.offset[block];
    const high = low + blocks.size[block];
    const overlaps = (row: number): boolean =>
        row !== block && blocks.offset[row] < high && blocks.offset[row] + blocks.size[row] > low;
    const life: Life = {
        block,
        born: blocks.start[block],
        freed: blocks.freed[block],
        reusable: blocks.end[block],
        before: [],
        after: [],
        moreBefore: false,
        moreAfter: false,
        searched: true,
    };
    const floor = Math.max(0, block - mostRows);
    for (let row = block - 1; row >= floor && life.before.length <= mostNeighbours; --row) {
        if (overlaps(row) && blocks.end[row] <= life.born) life.before.push(row);
    }
    life.moreBefore = life.before.length > mostNeighbours;
    life.before = life.before
        .slice(0, mostNeighbours)
        .sort((a, b) => blocks.end[b] - blocks.end[a]);
    if (life.reusable === never) return life;
    const first = upperBound(blocks.start, life.reusable - 1);
    const ceiling = Math.min(blocks.count, first + mostRows);
    let row = first;
    for (; row < ceiling && life.after.length <= mostNeighbours; ++row) {
        if (overlaps(row)) life.after.push(row);
    }
    life.moreAfter = life.after.length > mostNeighbours;
    life.after = life.after.slice(0, mostNeighbours);
    life.searched = row >= blocks.count || life.moreAfter;
    return life;
}

/** A window that shows a block's whole life, with some room around it. */
export function lifeWindow(
    model: DeviceModel,
    block: number,
): { t0: number; t1: number; a0: number; a1: number } {
    const { blocks, units, lastTick } = model;
    const end = Math.min(blocks.end[block], lastTick);
    const margin = Math.max(4, (end - blocks.start[block]) * 0.15);
    const unit = blocks.unit[block];
    const inUnit = unit < units.count;
    const low = inUnit ? units.offset[unit] : blocks.offset[block];
    const high = Math.max(
        blocks.offset[block] + blocks.size[block],
        inUnit ? units.offset[unit] + units.size[unit] : 0,
    );
    const room = (high - low) * 0.1;
    return { t0: blocks.start[block] - margin, t1: end + margin, a0: low - room, a1: high + room };
}
