// Wanted blocks: their number in the whole trace, and those in a window. A pass over every block
// takes longer than a frame. Counts per stack are therefore made once, and a window is searched in
// steps.
import { follow, type HeapState } from "./heap";
import type { DeviceModel } from "./model";
import { stackTotals } from "./stacktotals";
import { upperBound } from "./upperbound";
import { rowsInStep } from "./steps";

/** Blocks of some stacks. `blocks`: only some of these, 1 per wanted block. */
export interface Wanted {
    stacks: Uint8Array;
    blocks: Uint8Array | null;
    also: Uint8Array | null; // stacks of which all blocks are wanted
}

/** All blocks of the stacks with a 1. */
export function wantedStacks(stacks: Uint8Array): Wanted {
    return { stacks, blocks: null, also: null };
}

export function isWanted({ stacks, blocks, also }: Wanted, stack: number, row: number): boolean {
    return (
        (stacks[stack] === 1 && (blocks === null || blocks[row] === 1)) ||
        (also !== null && also[stack] === 1)
    );
}

export interface BlockCount {
    blocks: number;
    bytes: number;
}

/** Per stack: 1 if a block of the trace has it. */
export function usedStacks(model: DeviceModel): Uint8Array {
    return Uint8Array.from(stackTotals(model).blocks, (count) => Number(count > 0));
}

const countedOf = new WeakMap<Uint8Array, BlockCount>();

// One pass over all blocks for each search.
function countSome(model: DeviceModel, wanted: Wanted, some: Uint8Array): BlockCount {
    const known = countedOf.get(some);
    if (known) return known;
    const { stack, size, count: rows } = model.blocks;
    const count = { blocks: 0, bytes: 0 };
    for (let row = 0; row < rows; ++row) {
        if (some[row] !== 1 || !isWanted(wanted, stack[row], row)) continue;
        ++count.blocks;
        count.bytes += size[row];
    }
    countedOf.set(some, count);
    return count;
}

/** Number and bytes of all wanted blocks of the trace, freed or not. */
export function countAll(model: DeviceModel, wanted: Wanted): BlockCount {
    if (wanted.blocks) return countSome(model, wanted, wanted.blocks);
    const { blocks, bytes } = stackTotals(model);
    const count = { blocks: 0, bytes: 0 };
    for (let node = 0; node < blocks.length; ++node) {
        if (wanted.stacks[node] !== 1) continue;
        count.blocks += blocks[node];
        count.bytes += bytes[node];
    }
    return count;
}

let lastLive: { model: DeviceModel; wanted: Wanted; heap: number; count: BlockCount } | null = null;

/** Number and bytes of the wanted blocks that are live. */
export function countLive(model: DeviceModel, heap: HeapState, wanted: Wanted): BlockCount {
    const { stack, size } = model.blocks;
    const known = lastLive?.wanted;
    if (
        lastLive?.model !== model ||
        known?.stacks !== wanted.stacks ||
        known.blocks !== wanted.blocks ||
        known.also !== wanted.also
    ) {
        lastLive = { model, wanted, heap: 0, count: { blocks: 0, bytes: 0 } };
    }
    const { count } = lastLive;
    follow(
        heap,
        heap.live,
        lastLive.heap,
        () => (count.blocks = count.bytes = 0),
        (rows, sign) => {
            for (const row of rows) {
                if (!isWanted(wanted, stack[row], row)) continue;
                count.blocks += sign;
                count.bytes += sign * size[row];
            }
        },
    );
    lastLive.heap = heap.number;
    return { ...count };
}

export interface Area {
    t0: number;
    t1: number;
    a0: number;
    a1: number;
}

/**
 * Calls `visit` with every wanted block that is live in the window and overlaps its addresses.
 */
export function* visitHits(
    model: DeviceModel,
    area: Area,
    wanted: Wanted,
    visit: (row: number) => void,
): Generator<void, BlockCount> {
    const { start, stack, size, offset } = model.blocks;
    const found = { blocks: 0, bytes: 0 };
    const look = (row: number): void => {
        if (
            !isWanted(wanted, stack[row], row) ||
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
