// The sweep over a window: its results at the window's edges, and the limited work between two
// pauses.
import assert from "node:assert/strict";
import { test } from "node:test";
import { heapAt } from "../src/data/heap";
import { LiveIndex } from "../src/data/liveindex";
import { never } from "../src/data/model";
import { emptyBins, peakTick, sweepInSteps, sweepWindow } from "../src/data/sweep";
import { counted, madeDevice } from "./made";

test("the sweep equals the heap at every time of its window", () => {
    const device = madeDevice({ blocks: 900, lastTick: 4000, slots: 130 });
    device.units.pool = [0, 1, 2]; // one pool that is always kept, one that changes
    device.pools = [
        { name: "", changes: [] },
        { name: "kept", changes: [] },
        { name: "at times", changes: [700, 1100, 3950] },
    ];
    for (const [from, to] of [
        [0, 4000],
        [1000, 1200],
        [1000.5, 1100.25],
        [3900, 4000],
        [0, 1],
    ]) {
        // One bin per tick: the state during the bin is the heap at that tick.
        const bins = Math.ceil(to - from);
        const sweep = sweepWindow(device, from, from + bins, bins, Infinity)!;
        for (let i = 0; i < bins; i += Math.ceil(bins / 90)) {
            const first = heapAt(device, from + i);
            const next = heapAt(device, from + i + 0.999);
            const share = 1 - ((from + i) % 1);
            for (const part of ["requested", "pending", "held", "releasable"] as const) {
                const mean = share * first[part] + (1 - share) * next[part];
                assert.ok(
                    Math.abs(sweep.bins[part][i] - mean) < 1e-3 * (1 + mean),
                    `${part} at ${from + i}: ${sweep.bins[part][i]}, not ${mean}`,
                );
            }
        }
    }
});

test("memory of others is read at the window's own times", () => {
    const device = madeDevice({ blocks: 10, lastTick: 4000 });
    device.bins = { ...emptyBins(4), other: Float64Array.of(10, 20, 30, 40) };
    assert.deepEqual(
        [...sweepWindow(device, 2000, 4000, 4, Infinity)!.bins.other],
        [30, 30, 40, 40],
    );
});

test("in a window that begins at a block's free, the block waits from the beginning", () => {
    const device = madeDevice({ blocks: 300, lastTick: 4000, slots: 64 });
    const { freed, end } = device.blocks;
    const rows = [...freed.keys()].filter(
        (row) => freed[row] < end[row] && end[row] <= device.lastTick,
    );
    assert.ok(rows.length > 10);
    for (const row of rows) {
        const { bins } = sweepWindow(device, freed[row], freed[row] + 1, 1, Infinity)!;
        assert.equal(bins.pending[0], heapAt(device, freed[row]).pending);
    }
});

test("an empty segment counts as held only if its pool keeps it", () => {
    const device = madeDevice({ blocks: 10, lastTick: 4000, slots: 64 });
    device.blocks.start.fill(4000);
    device.live = new LiveIndex(device.blocks.start, device.blocks.end);
    device.units.start = [0];
    device.units.end = [never];
    device.pools = [
        { name: "", changes: [] },
        { name: "kept", changes: [] },
    ];
    for (const pool of [0, 1]) {
        device.units.pool = [pool];
        const { bins } = sweepWindow(device, 10, 20, 1, Infinity)!;
        assert.deepEqual(
            [bins.held[0], bins.releasable[0]],
            pool === 1 ? [device.units.size[0], 0] : [0, device.units.size[0]],
        );
    }
});

test("a window without length is empty", () => {
    const { bins } = sweepWindow(madeDevice({ blocks: 10 }), 1000, 1000, 3, Infinity)!;
    for (const part of ["requested", "allocated_max", "allocated_min", "reserved_max"] as const) {
        assert.deepEqual([...bins[part]], [0, 0, 0], part);
    }
});

test("the peak is the middle of the first bin with the most reserved memory", () => {
    const device = madeDevice({ blocks: 10, lastTick: 800 });
    device.bins = { ...emptyBins(4), reserved_max: Float64Array.of(1, 5, 5, 2) };
    assert.equal(peakTick(device), 300);
});

test("the work between two pauses of a sweep is limited for any number of blocks", () => {
    const device = madeDevice({ blocks: 160_000, slots: 40_000, lastTick: 3_000_000 });
    const { blocks } = device;
    // Half of the blocks live to the end, so that many live throughout the window.
    for (let row = 0; row < blocks.count; row += 2) blocks.freed[row] = blocks.end[row] = never;
    const reads = { count: 0 };
    for (const name of ["start", "freed", "end", "unit"] as const) {
        blocks[name] = counted(blocks[name], reads);
    }
    blocks.offset = counted(blocks.offset, reads);
    blocks.size = counted(blocks.size as Float64Array, reads);
    device.live = new LiveIndex(blocks.start, blocks.end);
    for (const [from, to] of [
        [0, device.lastTick],
        [1_500_000, 2_500_000],
    ]) {
        const steps = sweepInSteps(device, from, to, 2048);
        let most = 0;
        let pauses = 0;
        for (;;) {
            reads.count = 0;
            const { done } = steps.next();
            most = Math.max(most, reads.count);
            ++pauses;
            if (done) break;
        }
        assert.ok(most < 180_000, `${most} numbers looked at between two pauses`);
        assert.ok(pauses > 40, `${pauses} pauses`);
    }
});
