// The lines whose blocks prevent free memory from being released. The free bytes of a segment, or
// of a page of an expandable one, are divided among its blocks in proportion to their bytes there.
// This is computed and rounded as held_open_bytes in analyzer/analysis/verdict/culprits.h.
import { type HeapState, mostStack, someOf, type UnitState } from "./heap";
import type { DeviceModel } from "./model";

/**
 * Calls back with whole bytes that add up to `state.free`; of what only its pool keeps, nobody has
 * any.
 */
export function shareOut(
    model: DeviceModel,
    state: UnitState,
    give: (block: number, bytes: number) => void,
): void {
    const { offset, size } = model.blocks;
    const begin = model.units.offset[state.unit];
    const end = begin + model.units.size[state.unit];
    const { blocks, used, free } = state;
    if (free <= 0 || used <= 0) return;
    let left = free;
    // By address; parts are cut to whole bytes and the last block has the rest.
    for (let i = 0; i < blocks.length; ++i) {
        const block = blocks[i];
        const within = Math.max(
            0,
            Math.min(end, offset[block] + size[block]) - Math.max(begin, offset[block]),
        );
        const part =
            i + 1 === blocks.length ? left : Math.min(left, Math.floor((free * within) / used));
        left -= part;
        if (part > 0) give(block, part);
    }
}

/**
 * Bytes of held-open holes per stack. They add up to the heap's `held`: what lies in units without
 * a block, which only their private pool keeps, is stack 0's.
 */
export function heldByStack(model: DeviceModel, heap: HeapState): Map<number, number> {
    const { stack } = model.blocks;
    const bytes = new Float64Array(mostStack(model, heap) + 1);
    bytes[0] = keptByPools(heap);
    for (const state of heap.units) {
        shareOut(model, state, (block, part) => (bytes[stack[block]] += part));
    }
    return someOf(bytes);
}

/** Of the heap's `held`, what is in units that no block is in: their private pool keeps them. */
export function keptByPools(heap: HeapState): number {
    let bytes = 0;
    for (const { kept, blocks, free } of heap.units) if (kept && blocks.length === 0) bytes += free;
    return bytes;
}
