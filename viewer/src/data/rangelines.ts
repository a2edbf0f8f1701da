// A range of time by source line: what each line allocated and freed in it.
import type { RangeFigures } from "./eventindex";
import type { DeviceModel } from "./model";
import type { Stacks } from "./stacks";
import { each } from "./steps";

export interface LineChange {
    line: number; // Stacks.line()
    allocated: number; // bytes
    freed: number;
    allocations: number; // blocks
    frees: number;
}

export const orders = ["change", "allocated"] as const;
export type LineOrder = (typeof orders)[number];

export function amount(change: LineChange | undefined, order: LineOrder): number {
    if (!change) return 0;
    return order === "change" ? change.allocated - change.freed : change.allocated;
}

/** Lines that allocated or freed in the range, in steps of about a millisecond. */
export function* linesInSteps(
    model: DeviceModel,
    stacks: Stacks,
    { rows, freeRows }: RangeFigures,
): Generator<void, LineChange[]> {
    const { stack, size } = model.blocks;
    const count = stacks.count;
    // Arrays, because a map would take a second for millions of blocks.
    const [allocated, freed] = [new Float64Array(count), new Float64Array(count)];
    const [allocations, frees] = [new Uint32Array(count), new Uint32Array(count)];
    yield* each(rows[1] - rows[0], (at) => {
        const row = rows[0] + at;
        allocated[stack[row]] += size[row];
        ++allocations[stack[row]];
    });
    yield* each(freeRows.length, (at) => {
        const row = freeRows[at];
        freed[stack[row]] += size[row];
        ++frees[stack[row]];
    });
    const lines = new Map<number, LineChange>();
    for (let node = 0; node < count; ++node) {
        if (allocations[node] + frees[node] === 0) continue;
        const line = stacks.line(node);
        let change = lines.get(line);
        if (!change) {
            change = { line, allocated: 0, freed: 0, allocations: 0, frees: 0 };
            lines.set(line, change);
        }
        change.allocated += allocated[node];
        change.freed += freed[node];
        change.allocations += allocations[node];
        change.frees += frees[node];
    }
    return [...lines.values()];
}

/** One line in one range, or in two that are compared. */
export interface LineRow {
    line: number;
    of: (LineChange | undefined)[]; // one per range
    weight: number; // its sign says whether it is more or less
}

/**
 * All lines of the ranges. The first are those with the largest amount, or difference of two: range
 * `later` minus the other.
 */
export function lineRows(
    ranges: readonly LineChange[][],
    order: LineOrder,
    later: number,
): LineRow[] {
    const rows = new Map<number, LineRow>();
    ranges.forEach((changes, range) => {
        for (const change of changes) {
            let row = rows.get(change.line);
            if (!row) {
                row = { line: change.line, of: ranges.map(() => undefined), weight: 0 };
                rows.set(change.line, row);
            }
            row.of[range] = change;
        }
    });
    for (const row of rows.values()) {
        const [first, second] = row.of.map((change) => amount(change, order));
        row.weight = ranges.length < 2 ? first : later === 1 ? second - first : first - second;
    }
    return [...rows.values()].sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight));
}
