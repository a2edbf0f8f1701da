// Finds what is under the pointer, without a pass over all live blocks.
import type { UnitState } from "./heap";
import type { DeviceModel } from "./model";
import { upperBoundOfRows } from "./upperbound";

let last: { model: DeviceModel; of: Iterable<number>; rows: Uint32Array } | null = null;

/** Blocks sorted by address. The last result is cached. */
export function byAddress(model: DeviceModel, of: Iterable<number>): Uint32Array {
    if (last?.model !== model || last.of !== of) {
        const { offset } = model.blocks;
        last = { model, of, rows: Uint32Array.from(of).sort((a, b) => offset[a] - offset[b]) };
    }
    return last.rows;
}

/**
 * The smallest block at a point of the map; -1 = none. `pins` are sorted by address and live at one
 * common time. They are drawn thicker than they are, so they are hit within `slack` bytes.
 */
export function blockUnder(
    model: DeviceModel,
    tick: number,
    at: number,
    pins: Uint32Array,
    slack: number,
): number {
    const { start, end, offset, size } = model.blocks;
    let best = model.live.find(tick, at, offset, size);
    const above = upperBoundOfRows(pins, offset, at + slack);
    for (let i = above - 1; i >= 0 && at < offset[pins[i]] + size[pins[i]] + slack; --i) {
        const row = pins[i];
        if (start[row] <= tick && tick < end[row] && (best < 0 || size[row] < size[best])) {
            best = row;
        }
    }
    return best;
}

/** The block of a unit at an offset of the axis, or the free range there. */
export function partAt(
    model: DeviceModel,
    state: UnitState,
    at: number,
): { block: number; hole: [offset: number, size: number] | null } {
    const { blocks, units } = model;
    const above = upperBoundOfRows(state.blocks, blocks.offset, at);
    const before = above > 0 ? state.blocks[above - 1] : -1;
    const from =
        before >= 0 ? blocks.offset[before] + blocks.size[before] : units.offset[state.unit];
    if (at < from) return { block: before, hole: null };
    const end = units.offset[state.unit] + units.size[state.unit];
    const to =
        above < state.blocks.length ? Math.min(end, blocks.offset[state.blocks[above]]) : end;
    return { block: -1, hole: from < to ? [from, to - from] : null };
}
