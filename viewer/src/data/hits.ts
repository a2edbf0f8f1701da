// Blocks of selected stacks: their number in the whole trace, and those in a window. A pass over
// every block takes longer than a frame. Counts per stack are therefore made once, and a window is
// searched in steps.
import type { DeviceModel } from "./model";
import { upperBound } from "./upperbound";
import { rowsInStep } from "./steps";

export interface BlockCount {
    blocks: number;
    bytes: number;
}

interface StackTotals {
    blocks: Uint32Array;
    bytes: Float64Array;
}
const totalsOf = new WeakMap<DeviceModel, StackTotals>();

function totals(model: DeviceModel): StackTotals {
    const known = totalsOf.get(model);
    if (known) return known;
    const { stack, size, count } = model.blocks;
    let most = 0;
    for (let row = 0; row < count; ++row) if (stack[row] > most) most = stack[row];
    const made = { blocks: new Uint32Array(most + 1), bytes: new Float64Array(most + 1) };
    for (let row = 0; row < count; ++row) {
        ++made.blocks[stack[row]];
        made.bytes[stack[row]] += size[row];
    }
    totalsOf.set(model, made);
    return made;
}

/** Per stack: 1 if a block of the trace has it. */
export function usedStacks(model: DeviceModel): Uint8Array {
    return Uint8Array.from(totals(model).blocks, (count) => Number(count > 0));
}

/** Number and bytes of all blocks of the trace with a wanted stack, freed or not. */
export function countAll(model: DeviceModel, wanted: Uint8Array): BlockCount {
    const { blocks, bytes } = totals(model);
    const count = { blocks: 0, bytes: 0 };
    for (let node = 0; node < blocks.length; ++node) {
        if (wanted[node] !== 1) continue;
        count.blocks += blocks[node];
        count.bytes += bytes[node];
    }
    return count;
}

export function countOf(model: DeviceModel, rows: Uint32Array, wanted: Uint8Array): BlockCount {
    const { stack, size } = model.blocks;
    const count = { blocks: 0, bytes: 0 };
    for (const row of rows) {
        if (wanted[stack[row]] !== 1) continue;
        ++count.blocks;
        count.bytes += size[row];
    }
    return count;
}

export interface Area {
    t0: number;
    t1: number;
    a0: number;
    a1: number;
}

/**
 * Calls `visit` with every block of a wanted stack that is live in the window and overlaps its
 * addresses.
 */
export function* visitHits(
    model: DeviceModel,
    area: Area,
    wanted: Uint8Array,
    visit: (row: number) => void,
): Generator<void, BlockCount> {
    const { start, stack, size, offset } = model.blocks;
    const found = { blocks: 0, bytes: 0 };
    const look = (row: number): void => {
        if (
            wanted[stack[row]] !== 1 ||
            offset[row] >= area.a1 ||
            offset[row] + size[row] <= area.a0
        ) {
            return;
        }
        ++found.blocks;
        found.bytes += size[row];
        visit(row);
    };
    for (const row of model.live.at(area.t0)) look(row);
    yield;
    const last = upperBound(start, area.t1);
    for (let row = upperBound(start, area.t0); row < last; ++row) {
        look(row);
        if (row % rowsInStep === rowsInStep - 1) yield;
    }
    return found;
}
