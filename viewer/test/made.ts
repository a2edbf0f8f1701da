// A made-up device for tests: blocks begin and end at random, side by side in units that are
// reserved and released, so that no two blocks share an address at one time.
import { type CoverageGrid, eachRow } from "../src/data/coverage";
import type { DeviceHeader } from "../src/data/header";
import { LiveIndex } from "../src/data/liveindex";
import { type DeviceModel, never } from "../src/data/model";
import { finish } from "../src/data/steps";

/** A small random generator with a fixed seed, so that a failure can be repeated. */
export function randomNumbers(seed: number): (below: number) => number {
    let state = seed;
    return (below) => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return Math.floor((state / 2 ** 32) * below);
    };
}

/** All shares of a grid, row by row. */
export function sharesOf(grid: CoverageGrid): Float64Array {
    const all = new Float64Array(grid.columns * grid.rows);
    finish(eachRow([grid], (row, [shares]) => all.set(shares, row * grid.columns)));
    return all;
}

export interface Made {
    blocks: number;
    seed?: number;
    lastTick?: number;
    slots?: number;
    pending?: boolean;
    stacks?: number;
}

export const slotBytes = 4096;
const slotsInUnit = 64;

/**
 * Each slot of an address range has one block after the other. A unit exists as long as its blocks.
 */
export function madeDevice({
    blocks: count,
    seed = 5,
    lastTick = 1_000_000,
    slots = 256,
    pending = true,
    stacks = 11,
}: Made): DeviceModel {
    const random = randomNumbers(seed);
    const free = new Array<number>(slots).fill(0); // the tick from which a slot is free again
    const mean = Math.max(2, Math.floor((lastTick * slots) / Math.max(1, count)));
    const rows: { start: number; freed: number; end: number; slot: number; size: number }[] = [];
    for (let i = 0; rows.length < count && i < 4 * count; ++i) {
        const slot = i % slots;
        const start = free[slot] + random(Math.max(2, mean >> 1));
        if (start >= lastTick) continue;
        const freed = start > lastTick / 2 && random(20) === 0 ? never : start + 1 + random(mean);
        const end = freed === never ? never : freed + (pending && random(4) === 0 ? random(50) : 0);
        rows.push({ start, freed, end, slot, size: 512 * (1 + random(slotBytes / 512)) });
        free[slot] = end === never ? lastTick : end;
    }
    rows.sort((a, b) => a.start - b.start);
    const units = Math.ceil(slots / slotsInUnit);
    const unitStart = new Array<number>(units).fill(never);
    const unitEnd = new Array<number>(units).fill(0);
    for (const { start, end, slot } of rows) {
        const unit = Math.floor(slot / slotsInUnit);
        unitStart[unit] = Math.min(unitStart[unit], start);
        unitEnd[unit] = Math.max(unitEnd[unit], end);
    }
    const column = <Key extends "start" | "freed" | "end">(key: Key): Uint32Array =>
        Uint32Array.from(rows, (row) => row[key]);
    const start = column("start");
    const end = column("end");
    return {
        head: {
            tick_ns: 1,
            markers: [],
            cards: [] as unknown[],
            phase_lanes: [],
            phases_merged: 0,
            phase_names: [],
            streams: ["default"],
            categories: [],
            stack_categories: { stack: [], category: [] },
        } as unknown as DeviceHeader,
        lastTick,
        complete: true,
        bins: { count: 1, other: new Float64Array(1) },
        units: {
            count: units,
            start: unitStart,
            end: unitEnd,
            offset: Float64Array.from(
                { length: units },
                (_, unit) => unit * slotsInUnit * slotBytes,
            ),
            size: new Array<number>(units).fill(slotsInUnit * slotBytes),
            pool: new Array<number>(units).fill(0),
            stream: new Array<number>(units).fill(0),
            small: new Array<number>(units).fill(0),
        },
        blocks: {
            count: rows.length,
            start,
            freed: pending ? column("freed") : end,
            end,
            unit: Uint32Array.from(rows, (row) => Math.floor(row.slot / slotsInUnit)),
            offset: Float64Array.from(rows, (row) => row.slot * slotBytes),
            size: Float64Array.from(rows, (row) => row.size),
            excess: new Int32Array(rows.length),
            stack: Uint32Array.from(rows, () => random(stacks)),
            stream: new Uint8Array(rows.length),
        },
        spanBlock: new Uint32Array(0),
        spanUnit: new Uint32Array(0),
        live: new LiveIndex(start, end),
        others: { time: [], bytes: [] },
        tracks: [],
        pools: [{ name: "", changes: [] }],
        phases: {
            count: 0,
            start: new Uint32Array(0),
            end: new Uint32Array(0),
            name: new Uint32Array(0),
            lane: new Uint8Array(0),
            ranges: new Uint32Array(0),
        },
    } as unknown as DeviceModel;
}

/** The same numbers. `reads` counts how often one of them is read. */
export function counted<Column extends Uint32Array | Float64Array>(
    column: Column,
    reads: { count: number },
): Column {
    return new Proxy(column, {
        get(target, key): unknown {
            if (typeof key === "string" && key >= "0" && key <= "9~") ++reads.count;
            const value: unknown = Reflect.get(target, key, target);
            return typeof value === "function" ? value.bind(target) : value;
        },
    });
}
