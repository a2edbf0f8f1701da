// Computes exactly what happens in a window: memory over time in bins, and the intervals in which a
// unit could not be released. The rules are the same as in the C++ writer's sweep over the whole
// trace.
import { isKept } from "./heap";
import { type Bins, type DeviceModel, forUnits, noUnit, poolsHeld } from "./model";
import { each, finish } from "./steps";

export interface WindowSweep {
    from: number;
    to: number;
    blocks: Uint32Array; // live at some time of the window
    bins: Bins;
    keptUnit: number[]; // intervals in which a unit could not be released
    keptFrom: number[];
    keptTo: number[];
}

export function emptyBins(count: number): Bins {
    const column = (): Float64Array => new Float64Array(count);
    return {
        count,
        requested: column(),
        internal: column(),
        pending: column(),
        held: column(),
        releasable: column(),
        other: column(),
        allocated_max: column(),
        allocated_min: column().fill(Infinity),
        reserved_max: column(),
    };
}

// Events of the same tick: those that free memory come before those that take memory.
const enum Step {
    blockEnd,
    unitEnd,
    poolChange,
    unitStart,
    blockStart,
    blockFreed,
}

/** Sweeps at once. Returns null if more than `limit` blocks start in the window. */
export function sweepWindow(
    model: DeviceModel,
    from: number,
    to: number,
    binCount: number,
    limit: number,
): WindowSweep | null {
    if (model.live.startsIn(from, to) > limit) return null;
    return finish(sweepInSteps(model, from, to, binCount));
}

const eventsInStep = 4096;

/** Sweeps in steps of a few milliseconds at most, for any number of blocks. */
export function* sweepInSteps(
    model: DeviceModel,
    from: number,
    to: number,
    binCount: number,
): Generator<void, WindowSweep> {
    const { blocks, units } = model;
    const rows = yield* model.live.betweenInSteps(from, to);
    // Collect the events in the order of `Step`. The stable sort by time below keeps this order
    // within a tick.
    const changes = model.pools.reduce((sum, pool) => sum + pool.changes.length, 0);
    const most = rows.length * (blocks.freed === blocks.end ? 2 : 3) + units.count * 2 + changes;
    const steps = new Uint8Array(most);
    const ids = new Uint32Array(most);
    const times = new Uint32Array(most);
    let count = 0;
    const inside = (time: number): boolean => time > from && time <= to;
    const add = (step: Step, id: number, time: number): void => {
        steps[count] = step;
        ids[count] = id;
        times[count++] = time;
    };
    yield* each(
        rows.length,
        (at) => inside(blocks.end[rows[at]]) && add(Step.blockEnd, rows[at], blocks.end[rows[at]]),
    );
    yield* each(
        units.count,
        (unit) => inside(units.end[unit]) && add(Step.unitEnd, unit, units.end[unit]),
    );
    model.pools.forEach((pool, id) =>
        pool.changes.forEach((time) => {
            if (inside(time)) add(Step.poolChange, id, time);
        }),
    );
    yield* each(
        units.count,
        (unit) => inside(units.start[unit]) && add(Step.unitStart, unit, units.start[unit]),
    );
    yield* each(
        rows.length,
        (at) =>
            inside(blocks.start[rows[at]]) &&
            add(Step.blockStart, rows[at], blocks.start[rows[at]]),
    );
    if (blocks.freed !== blocks.end) {
        yield* each(rows.length, (at) => {
            const freed = blocks.freed[rows[at]];
            if (freed < blocks.end[rows[at]] && inside(freed)) {
                add(Step.blockFreed, rows[at], freed);
            }
        });
    }
    const order = yield* orderByTime(times.subarray(0, count), Math.floor(from), to);

    // Compute the heap at `from`. The rows that are live then come first in `rows`.
    const liveIn = new Int32Array(units.count);
    const keptSince = new Float64Array(units.count).fill(-1);
    let [requested, allocated, pending, reserved, releasable] = [0, 0, 0, 0, 0];
    const spans = model.spanBlock.length > 0;
    const isThere = (unit: number): boolean => units.start[unit] <= from && from < units.end[unit];
    const begun = rows.length - model.live.startsIn(from, to);
    yield* each(begun, (at) => {
        const row = rows[at];
        const size = blocks.size[row];
        if (blocks.freed[row] <= from) {
            pending += size;
        } else {
            allocated += size;
            requested += size - Math.max(0, blocks.excess[row]);
        }
        if (spans) {
            forUnits(model, row, (unit) => isThere(unit) && ++liveIn[unit]);
        } else if (blocks.unit[row] !== noUnit && isThere(blocks.unit[row])) {
            ++liveIn[blocks.unit[row]];
        }
    });
    const poolHeld = poolsHeld(model, from);
    yield* each(units.count, (unit) => {
        if (!isThere(unit)) return;
        reserved += units.size[unit];
        if (isKept(model, unit, liveIn[unit], poolHeld)) keptSince[unit] = from;
        else releasable += units.size[unit];
    });
    const bins = emptyBins(binCount);
    const sweep: WindowSweep = {
        from,
        to,
        blocks: rows,
        bins,
        keptUnit: [],
        keptFrom: [],
        keptTo: [],
    };
    const scale = binCount / Math.max(1e-9, to - from);
    let now = from;
    const hold = (until: number): void => {
        if (until <= now) return;
        const left = (now - from) * scale;
        const right = (until - from) * scale;
        const last = Math.min(binCount - 1, Math.ceil(right) - 1);
        for (let i = Math.floor(left); i <= last; ++i) {
            const weight = Math.min(right, i + 1) - Math.max(left, i);
            bins.requested[i] += weight * requested;
            bins.internal[i] += weight * (allocated - requested);
            bins.pending[i] += weight * pending;
            bins.held[i] += weight * Math.max(0, reserved - allocated - pending - releasable);
            bins.releasable[i] += weight * releasable;
            if (allocated > bins.allocated_max[i]) bins.allocated_max[i] = allocated;
            if (allocated < bins.allocated_min[i]) bins.allocated_min[i] = allocated;
            if (reserved > bins.reserved_max[i]) bins.reserved_max[i] = reserved;
        }
        now = until;
    };
    const close = (unit: number, time: number): void => {
        if (keptSince[unit] < 0) return;
        sweep.keptUnit.push(unit);
        sweep.keptFrom.push(keptSince[unit]);
        sweep.keptTo.push(time);
        keptSince[unit] = -1;
    };
    // Counts a unit from this time on as releasable or as kept. Called after each change.
    const judge = (unit: number, time: number): void => {
        const kept = isKept(model, unit, liveIn[unit], poolHeld);
        if (kept === keptSince[unit] >= 0) return;
        releasable += kept ? -units.size[unit] : units.size[unit];
        if (kept) keptSince[unit] = time;
        else close(unit, time);
    };
    // The pool lost its last user, or got one again.
    const changePool = (pool: number, time: number): void => {
        poolHeld[pool] ^= 1;
        for (let unit = 0; unit < units.count; ++unit) {
            const present = units.start[unit] < time && time < units.end[unit];
            if (units.pool[unit] === pool && present) judge(unit, time);
        }
    };
    const enter = (unit: number, time: number): void => {
        ++liveIn[unit];
        judge(unit, time);
    };
    const leave = (unit: number, time: number): void => {
        --liveIn[unit];
        judge(unit, time);
    };
    for (let done = 0; done < order.length; ++done) {
        if (done % eventsInStep === eventsInStep - 1) yield;
        const event = order[done];
        const time = times[event];
        hold(time);
        const id = ids[event];
        const size = blocks.size[id];
        const asked = size - Math.max(0, blocks.excess[id]);
        switch (steps[event] as Step) {
            case Step.unitStart:
                reserved += units.size[id];
                releasable += units.size[id];
                judge(id, time);
                break;
            case Step.unitEnd:
                reserved -= units.size[id];
                if (keptSince[id] < 0) releasable -= units.size[id];
                close(id, time);
                break;
            case Step.poolChange:
                changePool(id, time);
                break;
            case Step.blockStart:
                allocated += size;
                requested += asked;
                if (spans) forUnits(model, id, (unit) => enter(unit, time));
                else if (blocks.unit[id] !== noUnit) enter(blocks.unit[id], time);
                break;
            case Step.blockFreed:
                pending += size;
                allocated -= size;
                requested -= asked;
                break;
            case Step.blockEnd:
                if (blocks.freed[id] < time) {
                    pending -= size;
                } else {
                    allocated -= size;
                    requested -= asked;
                }
                if (spans) forUnits(model, id, (unit) => leave(unit, time));
                else if (blocks.unit[id] !== noUnit) leave(blocks.unit[id], time);
                break;
        }
    }
    hold(to);
    for (let unit = 0; unit < units.count; ++unit) close(unit, to);
    for (let i = 0; i < binCount; ++i) {
        if (bins.allocated_min[i] === Infinity) bins.allocated_min[i] = 0;
    }
    addOthers(model, sweep);
    return sweep;
}

/**
 * Positions of `times`, sorted by time. All times lie in [from, to]. Equal times keep their order.
 */
export function* orderByTime(
    times: Uint32Array,
    from: number,
    to: number,
): Generator<void, Uint32Array> {
    let order = new Uint32Array(times.length);
    yield* each(order.length, (i) => (order[i] = i));
    let sorted = new Uint32Array(times.length);
    const bits = 11;
    const mask = 2 ** bits - 1;
    const counts = new Uint32Array(mask + 2);
    // Radix sort, lowest digits first.
    for (let shift = 0; shift < 32 && (to - from) / 2 ** shift >= 1; shift += bits) {
        counts.fill(0);
        yield* each(times.length, (i) => ++counts[(((times[i] - from) >>> shift) & mask) + 1]);
        for (let digit = 0; digit < mask; ++digit) counts[digit + 1] += counts[digit];
        yield* each(
            order.length,
            (i) => (sorted[counts[((times[order[i]] - from) >>> shift) & mask]++] = order[i]),
        );
        [order, sorted] = [sorted, order];
    }
    return order;
}

// Memory of other processes is only known in the bins of the whole trace.
function addOthers(model: DeviceModel, sweep: WindowSweep): void {
    const { bins, lastTick } = model;
    for (let i = 0; i < sweep.bins.count; ++i) {
        const tick = sweep.from + ((i + 0.5) / sweep.bins.count) * (sweep.to - sweep.from);
        const bin = Math.min(bins.count - 1, Math.floor((tick / lastTick) * bins.count));
        sweep.bins.other[i] = bins.other[bin] ?? 0;
    }
}

/** The middle of the first bin with the most reserved memory, in ticks. */
export function peakTick(model: DeviceModel): number {
    const { reserved_max, count } = model.bins;
    let best = 0;
    for (let i = 1; i < count; ++i) if (reserved_max[i] > reserved_max[best]) best = i;
    return Math.floor(((best + 0.5) / count) * model.lastTick);
}
