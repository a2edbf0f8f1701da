// The heap at one time: what every release unit holds, the holes in it and the sums. A hole is held
// open when its unit cannot be released, because a block is live in it or its pool forbids it.
import { type DeviceModel, forUnits, noUnit, unitMayRelease } from "./model";

export interface UnitState {
    unit: number;
    blocks: number[];  // ascending offset
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

/** Of a device whose blocks have not been read. */
export function emptyHeap(tick: number): HeapState {
    return { tick, live: new Uint32Array(0), units: [], requested: 0, allocated: 0, pending: 0, reserved: 0, held: 0, releasable: 0 };
}

export function heapAt(model: DeviceModel, tick: number): HeapState {
    const { blocks, units } = model;
    const live = model.live.at(tick);
    const states: (UnitState | undefined)[] = new Array(units.count);  // by unit
    const spans = model.spanBlock.length > 0;
    const heap: HeapState = {
        tick, live, units: [], requested: 0, allocated: 0, pending: 0, reserved: 0, held: 0, releasable: 0,
    };
    for (let unit = 0; unit < units.count; ++unit) {
        if (units.start[unit] <= tick && tick < units.end[unit]) {
            const state: UnitState = { unit, blocks: [], used: 0, free: units.size[unit], kept: (units.flags[unit] & unitMayRelease) === 0 };
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
        state.kept = true;
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

/**
 * Bytes per stack at a time: of live blocks, or of the holes they hold open. A unit's holes are
 * shared equally by the blocks in it, so the sum is the heap's `held` (units that only their pool
 * keeps have no block and belong to stack 0).
 */
export function bytesByStack(model: DeviceModel, heap: HeapState, what: "holes" | "live"): Map<number, number> {
    const { stack, size } = model.blocks;
    let most = 0;
    for (const block of heap.live) most = Math.max(most, stack[block]);
    const bytes = new Float64Array(most + 1);
    if (what === "live") {
        for (const block of heap.live) bytes[stack[block]] += size[block];
    } else {
        for (const state of heap.units) {
            if (!state.kept || state.free === 0) continue;
            if (state.blocks.length === 0) bytes[0] += state.free;
            for (const block of state.blocks) bytes[stack[block]] += state.free / state.blocks.length;
        }
    }
    const sums = new Map<number, number>();
    for (let node = 0; node <= most; ++node) if (bytes[node] > 0) sums.set(node, bytes[node]);
    return sums;
}
