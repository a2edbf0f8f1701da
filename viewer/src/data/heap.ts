// The heap at one time: the blocks in every release unit, the free ranges, and the sums. Free
// memory is "held" if its unit cannot be released, because a block is live in it or its pool keeps
// it.
import { grown } from "./liveindex";
import { type DeviceModel, forUnits, noUnit, poolsHeld } from "./model";
import { stackTotals } from "./stacktotals";

export interface UnitState {
    unit: number;
    blocks: Uint32Array; // ascending offset
    used: number;
    free: number;
    kept: boolean;
}

export interface HeapState {
    tick: number;
    live: Uint32Array; // ascending offset
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
    const live = model.live.inOrder(tick, blocks.offset);
    const heap: HeapState = { ...emptyHeap(tick), live };
    const states = new Array<UnitState | undefined>(units.count); // indexed by unit
    const poolHeld = poolsHeld(model, tick);
    for (let unit = 0; unit < units.count; ++unit) {
        if (units.start[unit] <= tick && tick < units.end[unit]) {
            const free = units.size[unit];
            const state = { unit, blocks: noBlocks, used: 0, free, kept: false };
            states[unit] = state;
            heap.units.push(state);
            heap.reserved += units.size[unit];
        }
    }
    sumBlocks(model, heap);
    fillUnits(model, live, states);
    for (const state of heap.units) {
        state.free = units.size[state.unit] - state.used;
        state.kept = isKept(model, state.unit, state.blocks.length, poolHeld);
        if (state.kept) heap.held += state.free;
        else heap.releasable += state.free;
    }
    return heap;
}

const noBlocks = new Uint32Array(0);

function sumBlocks({ blocks }: DeviceModel, heap: HeapState): void {
    const { size, freed, excess } = blocks;
    const { live, tick } = heap;
    for (const block of live) {
        if (freed[block] <= tick) {
            heap.pending += size[block];
        } else {
            heap.allocated += size[block];
            heap.requested += size[block] - Math.max(0, excess[block]);
        }
    }
}

type States = readonly (UnitState | undefined)[]; // indexed by unit

// Blocks come in the order of their offsets, so those of a unit follow each other.
function fillUnits(model: DeviceModel, live: Uint32Array, states: States): void {
    if (model.spanBlock.length > 0) {
        fillSpannedUnits(model, live, states);
        return;
    }
    const { size, unit: unitOf } = model.blocks;
    for (let first = 0, last = 0; first < live.length; first = last) {
        const unit = unitOf[live[first]];
        let used = 0;
        for (; last < live.length && unitOf[live[last]] === unit; ++last) used += size[live[last]];
        enter(states[unit], live.subarray(first, last), used);
    }
}

// The same if blocks lie in several units.
function fillSpannedUnits(model: DeviceModel, live: Uint32Array, states: States): void {
    const { units } = model;
    const { offset, size } = model.blocks;
    let members = new Uint32Array(live.length + 64);
    let count = 0;
    let first = 0; // in `members`, of the current unit
    let current = noUnit;
    let used = 0;
    for (const block of live) {
        forUnits(model, block, (unit) => {
            if (unit !== current) {
                enter(states[current], members.subarray(first, count), used);
                [current, first, used] = [unit, count, 0];
            }
            if (count === members.length) members = grown(members);
            members[count++] = block;
            const from = Math.max(offset[block], units.offset[unit]);
            const to = Math.min(offset[block] + size[block], units.offset[unit] + units.size[unit]);
            used += Math.max(0, to - from);
        });
    }
    enter(states[current], members.subarray(first, count), used);
}

function enter(state: UnitState | undefined, blocks: Uint32Array, used: number): void {
    if (!state || blocks.length === 0) return;
    state.blocks = state.blocks.length === 0 ? blocks : joined(state.blocks, blocks);
    state.used += used;
}

// A unit's blocks may come in several parts: blocks without a unit may lie in between.
function joined(before: Uint32Array, after: Uint32Array): Uint32Array {
    const both = new Uint32Array(before.length + after.length);
    both.set(before);
    both.set(after, before.length);
    return both;
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
    const bytes = new Float64Array(stackTotals(model).bytes.length);
    for (const block of heap.live) {
        if (!some || some[block] === 1) bytes[stack[block]] += size[block];
    }
    return someOf(bytes);
}

export function someOf(bytes: Float64Array): Map<number, number> {
    const sums = new Map<number, number>();
    for (let node = 0; node < bytes.length; ++node) {
        if (bytes[node] > 0) sums.set(node, bytes[node]);
    }
    return sums;
}
