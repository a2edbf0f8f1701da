// The heap at one time: the blocks in every release unit, the free ranges, and the sums. Free
// memory is "held" if its unit cannot be released, because a block is live in it or its pool keeps
// it.
import { type DeviceModel, forUnits, noUnit, poolsHeld } from "./model";

export interface UnitState {
    unit: number;
    blocks: number[]; // ascending offset
    used: number;
    free: number;
    kept: boolean;
}

export interface HeapState {
    tick: number;
    live: Uint32Array;
    units: UnitState[];
    requested: number;
    allocated: number;
    pending: number;
    reserved: number;
    held: number;
    releasable: number;
}

/** The state before a device's blocks are read. */
export function emptyHeap(tick: number): HeapState {
    return {
        tick,
        live: new Uint32Array(0),
        units: [],
        requested: 0,
        allocated: 0,
        pending: 0,
        reserved: 0,
        held: 0,
        releasable: 0,
    };
}

/**
 * Whether the pool cannot return a unit to the driver: blocks lie in it, live or pending, or its
 * pool keeps it (`poolsHeld`). The C++ writer has the same rule in analyzer/model/release_unit.h.
 */
export function isKept(
    model: DeviceModel,
    unit: number,
    blocksInIt: number,
    poolHeld: Uint8Array,
): boolean {
    return blocksInIt > 0 || poolHeld[model.units.pool[unit]] === 1;
}

export function heapAt(model: DeviceModel, tick: number): HeapState {
    const { blocks, units } = model;
    const live = model.live.at(tick);
    const states = new Array<UnitState | undefined>(units.count); // indexed by unit
    const spans = model.spanBlock.length > 0;
    const poolHeld = poolsHeld(model, tick);
    const heap: HeapState = {
        tick,
        live,
        units: [],
        requested: 0,
        allocated: 0,
        pending: 0,
        reserved: 0,
        held: 0,
        releasable: 0,
    };
    for (let unit = 0; unit < units.count; ++unit) {
        if (units.start[unit] <= tick && tick < units.end[unit]) {
            const state: UnitState = {
                unit,
                blocks: [],
                used: 0,
                free: units.size[unit],
                kept: false,
            };
            states[unit] = state;
            heap.units.push(state);
            heap.reserved += units.size[unit];
        }
    }
    const enter = (block: number, size: number, unit: number): void => {
        const state = states[unit];
        if (!state) return;
        const from = Math.max(blocks.offset[block], units.offset[unit]);
        const to = Math.min(blocks.offset[block] + size, units.offset[unit] + units.size[unit]);
        state.blocks.push(block);
        state.used += Math.max(0, to - from);
    };
    for (const block of live) {
        const size = blocks.size[block];
        if (blocks.freed[block] <= tick) {
            heap.pending += size;
        } else {
            heap.allocated += size;
            heap.requested += size - Math.max(0, blocks.excess[block]);
        }
        if (spans) forUnits(model, block, (unit) => enter(block, size, unit));
        else if (blocks.unit[block] !== noUnit) enter(block, size, blocks.unit[block]);
    }
    for (const state of heap.units) {
        state.blocks.sort((a, b) => blocks.offset[a] - blocks.offset[b]);
        state.free = units.size[state.unit] - state.used;
        state.kept = isKept(model, state.unit, state.blocks.length, poolHeld);
        if (state.kept) heap.held += state.free;
        else heap.releasable += state.free;
    }
    return heap;
}

/** Free ranges of a unit as [offset, size] on the axis, ascending. */
export function holesOf(model: DeviceModel, state: UnitState): [offset: number, size: number][] {
    const { blocks, units } = model;
    const holes: [number, number][] = [];
    let at = units.offset[state.unit];
    for (const block of state.blocks) {
        if (blocks.offset[block] > at) holes.push([at, blocks.offset[block] - at]);
        at = Math.max(at, blocks.offset[block] + blocks.size[block]);
    }
    const end = units.offset[state.unit] + units.size[state.unit];
    if (at < end) holes.push([at, end - at]);
    return holes;
}

/** Bytes of live blocks per stack. Stacks without live blocks are left out. */
export function liveByStack(
    model: DeviceModel,
    heap: HeapState,
    some: Uint8Array | null = null,
): Map<number, number> {
    const { stack, size } = model.blocks;
    const bytes = new Float64Array(mostStack(model, heap) + 1);
    for (const block of heap.live) {
        if (!some || some[block] === 1) bytes[stack[block]] += size[block];
    }
    return someOf(bytes);
}

/**
 * The highest stack number of a live block. With it, sums per stack fit into an array, which is
 * faster than a map.
 */
export function mostStack(model: DeviceModel, heap: HeapState): number {
    let most = 0;
    for (const block of heap.live) {
        if (model.blocks.stack[block] > most) most = model.blocks.stack[block];
    }
    return most;
}

export function someOf(bytes: Float64Array): Map<number, number> {
    const sums = new Map<number, number>();
    for (let node = 0; node < bytes.length; ++node) {
        if (bytes[node] > 0) sums.set(node, bytes[node]);
    }
    return sums;
}
