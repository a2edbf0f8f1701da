// Bytes per stack by four measures: blocked free memory, live bytes, bytes allocated in the window,
// and growth between two times.
import { heldByStack } from "./held";
import { type HeapState, liveByStack, liveBytes } from "./heap";
import type { DeviceModel } from "./model";
import { stackTotals } from "./stacktotals";
import { upperBound } from "./upperbound";

export type Measure = "holes" | "live" | "churn" | "growth";
export const measures: readonly Measure[] = ["holes", "live", "churn", "growth"];

export interface StackSums {
    sums: Map<number, number>; // only values above 0
    total: number;
    shrunk: Map<number, number>; // growth only: bytes that a stack lost
    blocks: () => Map<number, number>; // number of blocks per stack, counted on request
}

export const noSums: StackSums = {
    sums: new Map(),
    total: 0,
    shrunk: new Map(),
    blocks: () => new Map(),
};

/** Whether a measure depends on the window. */
export function measuresWindow(measure: Measure, mark: number): boolean {
    return measure === "churn" || (measure === "growth" && mark < 0);
}

/** The blocks that count: 1 per block; null = all. */
type Some = Uint8Array | null;

let lastChurn: {
    model: DeviceModel;
    some: Some;
    from: number;
    to: number;
    result: StackSums;
} | null = null;

/**
 * Bytes of all blocks that were allocated in (from, to]. The result is reused while only the cursor
 * moves.
 */
function churn(model: DeviceModel, some: Some, from: number, to: number): StackSums {
    if (
        lastChurn?.model === model &&
        lastChurn.some === some &&
        lastChurn.from === from &&
        lastChurn.to === to
    ) {
        return lastChurn.result;
    }
    const { start, size, stack } = model.blocks;
    const [first, last] = [upperBound(start, from), upperBound(start, to)];
    let most = 0;
    for (let row = first; row < last; ++row) if (stack[row] > most) most = stack[row];
    // Arrays, because there may be millions of blocks: a map would take a second.
    const bytes = new Float64Array(most + 1);
    const counts = new Uint32Array(most + 1);
    for (let row = first; row < last; ++row) {
        if (some && some[row] !== 1) continue;
        bytes[stack[row]] += size[row];
        ++counts[stack[row]];
    }
    const sums = new Map<number, number>();
    const blocks = new Map<number, number>();
    for (let node = 0; node <= most; ++node) {
        if (counts[node] === 0) continue;
        sums.set(node, bytes[node]);
        blocks.set(node, counts[node]);
    }
    const result = { sums, total: sum(sums), shrunk: new Map(), blocks: () => blocks };
    lastChurn = { model, some, from, to, result };
    return result;
}

function only(rows: Uint32Array, some: Some): Uint32Array {
    return some ? rows.filter((row) => some[row] === 1) : rows;
}

function bytesOf(model: DeviceModel, live: Uint32Array): Float64Array {
    const { size, stack } = model.blocks;
    const bytes = new Float64Array(stackTotals(model).bytes.length);
    for (const row of live) bytes[stack[row]] += size[row];
    return bytes;
}

function countOf(model: DeviceModel, live: Uint32Array): Map<number, number> {
    const { stack } = model.blocks;
    const blocks = new Map<number, number>();
    for (const row of live) blocks.set(stack[row], (blocks.get(stack[row]) ?? 0) + 1);
    return blocks;
}

let lastMark: {
    model: DeviceModel;
    some: Some;
    tick: number;
    live: Uint32Array;
    bytes: Float64Array;
} | null = null;

/**
 * Live bytes at the later of two times minus those at the earlier one. The sums at the mark are
 * reused while only the cursor moves.
 */
function growth(
    model: DeviceModel,
    some: Some,
    heap: HeapState,
    mark: number,
    cursor: number,
): StackSums {
    if (lastMark?.model !== model || lastMark.some !== some || lastMark.tick !== mark) {
        const live = only(model.live.at(mark), some);
        lastMark = { model, some, tick: mark, live, bytes: bytesOf(model, live) };
    }
    const atCursor = heap.tick === cursor;
    const live = only(atCursor ? heap.live : model.live.at(cursor), some);
    const bytes = atCursor ? liveBytes(model, heap, some) : bytesOf(model, live);
    const [before, after, later] =
        mark <= cursor ? [lastMark.bytes, bytes, live] : [bytes, lastMark.bytes, lastMark.live];
    const sums = new Map<number, number>();
    const shrunk = new Map<number, number>();
    for (let stack = 0; stack < Math.max(before.length, after.length); ++stack) {
        const more = (after[stack] ?? 0) - (before[stack] ?? 0);
        if (more > 0) sums.set(stack, more);
        if (more < 0) shrunk.set(stack, -more);
    }
    return { sums, total: sum(sums), shrunk, blocks: () => countOf(model, later) };
}

function sum(values: Map<number, number>): number {
    let total = 0;
    for (const value of values.values()) total += value;
    return total;
}

/** The sums of those stacks that `wanted` has a 1 for. */
export function onlyStacks(all: StackSums, wanted: Uint8Array): StackSums {
    const some = (values: Map<number, number>): Map<number, number> =>
        new Map([...values].filter(([stack]) => wanted[stack] === 1));
    const sums = some(all.sums);
    return { ...all, sums, total: sum(sums), shrunk: some(all.shrunk) };
}

export interface Times {
    t0: number;
    t1: number;
    cursor: number;
    mark: number;
}

/** `some`: only these blocks count, 1 per block. */
export function stackSums(
    model: DeviceModel,
    heap: HeapState,
    measure: Measure,
    times: Times,
    some: Some = null,
): StackSums {
    if (measure === "churn") return churn(model, some, times.t0, times.t1);
    if (measure === "growth") {
        return growth(model, some, heap, times.mark < 0 ? times.t0 : times.mark, times.cursor);
    }
    const sums =
        measure === "holes" ? heldByStack(model, heap, some) : liveByStack(model, heap, some);
    return {
        sums,
        total: sum(sums),
        shrunk: new Map(),
        blocks: () => countOf(model, only(heap.live, some)),
    };
}
