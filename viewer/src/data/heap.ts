// The heap at one time: the blocks in every release unit, the free ranges, and the sums. Free
// memory is "held" if its unit cannot be released, because a block is live in it or its pool keeps
// it.
import { grown } from "./liveindex";
import { type DeviceModel, forUnits, noUnit, poolsHeld } from "./model";
import { stackTotals } from "./stacktotals";

/** The difference of the live blocks to an earlier state. */
interface Change {
    from: number; // `number` of the earlier state
    begun: Uint32Array;
    ended: Uint32Array;
}

/** A state of the heap or of a unit. */
interface Numbered {
    number: number; // every state has its own
    change: Change | null; // null = no earlier state, or too much differs
}

export interface UnitState extends Numbered {
    unit: number;
    line: object; // the same while the unit stays from state to state
    blocks: Uint32Array; // ascending offset
    used: number;
    free: number;
    kept: boolean;
}

export interface HeapState extends Numbered {
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

let lastNumber = 0;

/** The state before a device's blocks are read. */
export function emptyHeap(tick: number): HeapState {
    return {
        number: ++lastNumber,
        change: null,
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

type States = (UnitState | undefined)[]; // indexed by unit

// The last state of a device. A cursor that moves changes few blocks, so most of the next state
// equals this one.
interface Last {
    heap: HeapState;
    states: States;
    inOneUnit: boolean; // each live block lies in one unit
}
const lastOf = new WeakMap<DeviceModel, Last>();

/**
 * The state at a time. Units whose blocks did not change since the last call are the same objects.
 */
export function heapAt(model: DeviceModel, tick: number): HeapState {
    const { blocks, units } = model;
    const live = model.live.inOrder(tick, blocks.offset);
    const heap: HeapState = { ...emptyHeap(tick), live };
    const states = new Array<UnitState | undefined>(units.count);
    const last = lastOf.get(model);
    if (last) heap.change = changeOf(blocks.offset, last.heap, live);
    const same: States = [];
    const changes: (Change | undefined)[] = [];
    if (last?.inOneUnit) unitChanges(model, heap, last.states, same, changes);
    const poolHeld = poolsHeld(model, tick);
    for (let unit = 0; unit < units.count; ++unit) {
        if (units.start[unit] <= tick && tick < units.end[unit]) {
            const free = units.size[unit];
            const state = same[unit] ?? {
                number: ++lastNumber,
                change: changes[unit] ?? null,
                unit,
                line: last?.states[unit]?.line ?? {},
                blocks: noBlocks,
                used: 0,
                free,
                kept: false,
            };
            states[unit] = state;
            heap.units.push(state);
            heap.reserved += units.size[unit];
        }
    }
    sumBlocks(model, heap, last?.heap);
    const inOneUnit = fillUnits(model, live, states, same);
    lastOf.set(model, { heap, states, inOneUnit });
    for (const state of heap.units) {
        state.free = units.size[state.unit] - state.used;
        state.kept = isKept(model, state.unit, state.blocks.length, poolHeld);
        if (state.kept) heap.held += state.free;
        else heap.releasable += state.free;
    }
    return heap;
}

const noBlocks = new Uint32Array(0);

// Both lists of rows are in the order of `offset`. Returns null if the difference is large.
function changeOf(offset: Float64Array, before: HeapState, after: Uint32Array): Change | null {
    const [begun, ended]: [number[], number[]] = [[], []];
    const most = 64 + after.length / 16;
    const { live } = before;
    let [old, now] = [0, 0];
    while (old < live.length || now < after.length) {
        if (old < live.length && now < after.length && live[old] === after[now]) {
            ++old;
            ++now;
            continue;
        }
        const ends = old < live.length ? offset[live[old]] : Infinity;
        const begins = now < after.length ? offset[after[now]] : Infinity;
        if (ends <= begins) ended.push(live[old++]);
        if (begins <= ends) begun.push(after[now++]);
        if (begun.length + ended.length > most) return null;
    }
    return { from: before.number, begun: Uint32Array.from(begun), ended: Uint32Array.from(ended) };
}

/**
 * Calls `add` with the difference of a sum over the blocks of a state: the rows to add, and those
 * to take away with -1. `all` are its blocks. `known` is the number of the state that the sum has;
 * `reset` makes it zero.
 */
export function follow(
    { number, change }: Numbered,
    all: Uint32Array,
    known: number,
    reset: () => void,
    add: (rows: Uint32Array, sign: 1 | -1) => void,
): void {
    if (number === known) return;
    if (change?.from === known) {
        add(change.begun, 1);
        add(change.ended, -1);
    } else {
        reset();
        add(all, 1);
    }
}

// Fills `same` with the units whose blocks did not change, and `changes` with the difference of the
// others. Both stay empty if blocks can wait for a stream (then a unit changes while its blocks
// stay), or if one begins or ends outside of all units.
function unitChanges(
    { blocks }: DeviceModel,
    { change }: HeapState,
    before: States,
    same: States,
    changes: (Change | undefined)[],
): void {
    if (!change || blocks.freed !== blocks.end) return;
    const found: [unit: number, way: "begun" | "ended", rows: Uint32Array][] = [];
    for (const way of ["begun", "ended"] as const) {
        const rows = change[way];
        for (let first = 0, last = 0; first < rows.length; first = last) {
            const unit = blocks.unit[rows[first]];
            if (unit === noUnit) return;
            while (last < rows.length && blocks.unit[rows[last]] === unit) ++last;
            found.push([unit, way, rows.slice(first, last)]);
        }
    }
    before.forEach((state, unit) => {
        if (state && state.blocks.length > 0) same[unit] = state;
    });
    for (const [unit, way, rows] of found) {
        same[unit] = undefined;
        const state = before[unit];
        if (!state) continue;
        const known = changes[unit] ?? { from: state.number, begun: noBlocks, ended: noBlocks };
        changes[unit] = { ...known, [way]: rows };
    }
}

function sumBlocks({ blocks }: DeviceModel, heap: HeapState, before?: HeapState): void {
    const { size, freed, excess } = blocks;
    const { live, tick, change } = heap;
    if (before && change && freed === blocks.end) {
        heap.allocated = before.allocated;
        heap.requested = before.requested;
        for (const [rows, sign] of [
            [change.begun, 1],
            [change.ended, -1],
        ] as const) {
            for (const block of rows) {
                heap.allocated += sign * size[block];
                heap.requested += sign * (size[block] - Math.max(0, excess[block]));
            }
        }
        return;
    }
    for (const block of live) {
        if (freed[block] <= tick) {
            heap.pending += size[block];
        } else {
            heap.allocated += size[block];
            heap.requested += size[block] - Math.max(0, excess[block]);
        }
    }
}

// Blocks come in the order of their offsets, so those of a unit follow each other. Units in `same`
// have their blocks already, but in the list of an earlier state, which must not stay in memory.
// Returns whether each block lies in one unit.
function fillUnits(model: DeviceModel, live: Uint32Array, states: States, same: States): boolean {
    if (model.spanBlock.length > 0) {
        fillSpannedUnits(model, live, states);
        return false;
    }
    let inOneUnit = true;
    const { size, unit: unitOf } = model.blocks;
    for (let first = 0, last = 0; first < live.length; first = last) {
        const unit = unitOf[live[first]];
        const known = same[unit];
        if (known) {
            last = first + known.blocks.length;
            known.blocks = live.subarray(first, last);
            continue;
        }
        if (unit === noUnit) inOneUnit = false;
        let used = 0;
        for (; last < live.length && unitOf[live[last]] === unit; ++last) used += size[live[last]];
        enter(states[unit], live.subarray(first, last), used);
    }
    return inOneUnit;
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

let lastLive: {
    model: DeviceModel;
    some: Uint8Array | null;
    heap: number;
    bytes: Float64Array;
} | null = null;

/** Bytes of live blocks, indexed by stack. The next call changes the array. */
export function liveBytes(
    model: DeviceModel,
    heap: HeapState,
    some: Uint8Array | null = null,
): Float64Array {
    const { stack, size } = model.blocks;
    if (lastLive?.model !== model || lastLive.some !== some) {
        const bytes = new Float64Array(stackTotals(model).bytes.length);
        lastLive = { model, some, heap: 0, bytes };
    }
    const { bytes } = lastLive;
    follow(
        heap,
        heap.live,
        lastLive.heap,
        () => bytes.fill(0),
        (rows, sign) => {
            for (const block of rows) {
                if (!some || some[block] === 1) bytes[stack[block]] += sign * size[block];
            }
        },
    );
    lastLive.heap = heap.number;
    return bytes;
}

/** Bytes of live blocks per stack. Stacks without live blocks are left out. */
export function liveByStack(
    model: DeviceModel,
    heap: HeapState,
    some: Uint8Array | null = null,
): Map<number, number> {
    return someOf(liveBytes(model, heap, some));
}

export function someOf(bytes: Float64Array): Map<number, number> {
    const sums = new Map<number, number>();
    for (let node = 0; node < bytes.length; ++node) {
        if (bytes[node] > 0) sums.set(node, bytes[node]);
    }
    return sums;
}
