// Divides free memory that cannot be released among the source lines whose blocks prevent it. The
// free bytes of a segment, or of a page of an expandable segment, are divided among its blocks in
// proportion to their bytes there. analyzer/analysis/verdict/culprits.h (held_open_bytes) computes
// and rounds in the same way.
import { type HeapState, someOf, type UnitState } from "./heap";
import type { DeviceModel } from "./model";
import { stackTotals } from "./stacktotals";

/**
 * Calls `give` with whole bytes that add up to `state.free`. A unit without blocks, kept only by
 * its pool, gives nothing.
 */
export function shareOut(
    model: DeviceModel,
    state: UnitState,
    give: (block: number, bytes: number) => void,
): void {
    const { offset, size } = model.blocks;
    const spans = model.spanBlock.length > 0; // some blocks lie in several units
    const begin = model.units.offset[state.unit];
    const end = begin + model.units.size[state.unit];
    const { blocks, used, free } = state;
    if (free <= 0 || used <= 0) return;
    let left = free;
    // In order of address. Parts are rounded down to whole bytes and the last block gets the rest.
    for (let i = 0; i < blocks.length; ++i) {
        const block = blocks[i];
        const within = spans
            ? Math.max(
                  0,
                  Math.min(end, offset[block] + size[block]) - Math.max(begin, offset[block]),
              )
            : size[block];
        const part =
            i + 1 === blocks.length ? left : Math.min(left, Math.floor((free * within) / used));
        left -= part;
        if (part > 0) give(block, part);
    }
}

/**
 * Free bytes that cannot be released, per stack. They add up to the heap's `held`. Stack 0 gets the
 * units without blocks, which only their private pool keeps. With `some`, only parts of blocks with
 * a 1 count.
 */
export function heldByStack(
    model: DeviceModel,
    heap: HeapState,
    some: Uint8Array | null = null,
): Map<number, number> {
    const { stack } = model.blocks;
    const bytes = new Float64Array(stackTotals(model).bytes.length);
    bytes[0] = some ? 0 : keptByPools(heap);
    for (const state of heap.units) {
        shareOut(model, state, (block, part) => {
            if (!some || some[block] === 1) bytes[stack[block]] += part;
        });
    }
    return someOf(bytes);
}

/** The part of the heap's `held` in units without blocks: only their private pool keeps them. */
export function keptByPools(heap: HeapState): number {
    let bytes = 0;
    for (const { kept, blocks, free } of heap.units) if (kept && blocks.length === 0) bytes += free;
    return bytes;
}
