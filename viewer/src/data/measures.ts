// Bytes per stack in four ways: live, held open, allocated in the window, and grown between two
// times.
import { heldByStack } from "./held";
import { type HeapState, liveByStack } from "./heap";
import { type DeviceModel, upperBound } from "./model";

export type Measure = "holes" | "live" | "churn" | "growth";
export const measures: readonly Measure[] = ["holes", "live", "churn", "growth"];

export interface StackSums {
    sums: Map<number, number>;  // > 0 each
    total: number;
    shrunk: Map<number, number>;  // growth only: what there is less of, > 0 each
    blocks: () => Map<number, number>;  // how many, counted when asked: pictures need it not
}

let lastChurn: { model: DeviceModel; from: number; to: number; result: StackSums } | null = null;

/** Of all blocks that were allocated in (from, to]; kept while only the cursor moves. */
function churn(model: DeviceModel, from: number, to: number): StackSums {
    if (lastChurn && lastChurn.model === model && lastChurn.from === from && lastChurn.to === to) return lastChurn.result;
    const { start, size, stack } = model.blocks;
    const [first, last] = [upperBound(start, from), upperBound(start, to)];
    let most = 0;
    for (let row = first; row < last; ++row) if (stack[row] > most) most = stack[row];
    // There may be millions of blocks: a map would take a second.
    const bytes = new Float64Array(most + 1);
    const counts = new Uint32Array(most + 1);
    for (let row = first; row < last; ++row) {
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
    lastChurn = { model, from, to, result };
    return result;
}

function liveBytes(model: DeviceModel, live: Uint32Array): [bytes: Map<number, number>, blocks: Map<number, number>] {
    const { size, stack } = model.blocks;
    const bytes = new Map<number, number>();
    const blocks = new Map<number, number>();
    for (const row of live) {
        bytes.set(stack[row], (bytes.get(stack[row]) ?? 0) + size[row]);
        blocks.set(stack[row], (blocks.get(stack[row]) ?? 0) + 1);
    }
    return [bytes, blocks];
}

/** Live at the later of two times against the earlier one. */
function growth(model: DeviceModel, one: number, other: number): StackSums {
    const [before] = liveBytes(model, model.live.at(Math.min(one, other)));
    const [after, blocks] = liveBytes(model, model.live.at(Math.max(one, other)));
    const sums = new Map<number, number>();
    const shrunk = new Map<number, number>();
    for (const [stack, bytes] of after) {
        const more = bytes - (before.get(stack) ?? 0);
        if (more > 0) sums.set(stack, more);
        if (more < 0) shrunk.set(stack, -more);
    }
    for (const [stack, bytes] of before) if (!after.has(stack)) shrunk.set(stack, bytes);
    return { sums, total: sum(sums), shrunk, blocks: () => blocks };
}

function sum(values: Map<number, number>): number {
    let total = 0;
    for (const value of values.values()) total += value;
    return total;
}

export interface Times { t0: number; t1: number; cursor: number; mark: number }

export function stackSums(model: DeviceModel, heap: HeapState, measure: Measure, times: Times): StackSums {
    if (measure === "churn") return churn(model, times.t0, times.t1);
    if (measure === "growth") return growth(model, times.mark < 0 ? times.t0 : times.mark, times.cursor);
    const sums = measure === "holes" ? heldByStack(model, heap) : liveByStack(model, heap);
    return { sums, total: sum(sums), shrunk: new Map(), blocks: () => liveBytes(model, heap.live)[1] };
}
