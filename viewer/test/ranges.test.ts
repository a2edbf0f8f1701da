// Ranges of time: their figures and their lines, compared with a pass over all blocks.
import assert from "node:assert/strict";
import { test } from "node:test";
import { EventIndex, type RangeFigures } from "../src/data/eventindex";
import type { StackTables } from "../src/data/header";
import { type DeviceModel, never } from "../src/data/model";
import { amount, lineRows, linesInSteps } from "../src/data/rangelines";
import { laterOf, phaseOf, phaseRange, type Range, rangeBefore } from "../src/data/ranges";
import { Stacks } from "../src/data/stacks";
import { finish } from "../src/data/steps";
import { clampView, initialView, rangesOf } from "../src/state/store";
import { madeDevice, randomNumbers } from "./made";

const figuresOf = (model: DeviceModel, range: Range): RangeFigures =>
    finish(EventIndex.inSteps(model)).figures(...range);

/** What a pass over all blocks and all ticks with an event says about a range. */
function bruteForce({ blocks }: DeviceModel, [from, to]: Range): Partial<RangeFigures> {
    const { start, freed, size, count } = blocks;
    const inside = (tick: number): boolean => tick > from && tick <= to;
    const at = (tick: number): number => {
        let bytes = 0;
        for (let row = 0; row < count; ++row) {
            if (start[row] <= tick && freed[row] > tick) bytes += size[row];
        }
        return bytes;
    };
    const sum = { allocations: 0, allocatedBytes: 0, frees: 0, freedBytes: 0 };
    const ticks = [from];
    for (let row = 0; row < count; ++row) {
        if (inside(start[row])) {
            ++sum.allocations;
            sum.allocatedBytes += size[row];
            ticks.push(start[row]);
        }
        if (freed[row] !== never && inside(freed[row])) {
            ++sum.frees;
            sum.freedBytes += size[row];
            ticks.push(freed[row]);
        }
    }
    let [peak, peakTick] = [-1, from];
    for (const tick of ticks.sort((a, b) => a - b)) {
        const bytes = at(tick);
        if (bytes > peak) [peak, peakTick] = [bytes, tick];
    }
    return { from, to, before: at(from), after: at(to), ...sum, peak, peakTick };
}

test("the figures of a range equal a pass over all blocks", () => {
    for (const pending of [false, true]) {
        const model = madeDevice({ blocks: 3000, lastTick: 4000, slots: 64, pending, seed: 3 });
        const index = finish(EventIndex.inSteps(model));
        const random = randomNumbers(9);
        const ranges: Range[] = [
            [0, 4000],
            [0, 1],
            [3999, 4000],
        ];
        for (let i = 0; i < 60; ++i) {
            const from = random(3999);
            ranges.push([from, from + 1 + random(4000 - from)]);
        }
        for (const range of ranges) {
            const { rows, freeRows, ...figures } = index.figures(...range);
            assert.deepEqual(figures, bruteForce(model, range), `${range.join()}`);
            assert.equal(rows[1] - rows[0], figures.allocations);
            assert.equal(freeRows.length, figures.frees);
        }
    }
});

test("a device without blocks has a range without events", () => {
    const { rows, freeRows, ...figures } = figuresOf(madeDevice({ blocks: 0 }), [5, 10]);
    assert.deepEqual([...rows, freeRows.length], [0, 0, 0]);
    assert.deepEqual(Object.values(figures), [5, 10, 0, 0, 0, 0, 0, 0, 0, 5]);
});

// Eleven stacks, as madeDevice() uses them. Stacks 1 and 2 have the same line.
const tables: StackTables = {
    strings: ["", ...Array.from({ length: 10 }, (_, at) => `line ${at}`)],
    frames: {
        function: new Array<number>(11).fill(0),
        file: new Array<number>(11).fill(0),
        line: new Array<number>(11).fill(1),
        python: new Array<number>(11).fill(1),
        label: [0, 1, 1, 3, 4, 5, 6, 7, 8, 9, 10],
        library: new Array<number>(11).fill(0),
    },
    stacks: {
        parent: new Array<number>(11).fill(0),
        frame: Array.from({ length: 11 }, (_, at) => at),
        telling: new Array<number>(11).fill(0),
    },
};

test("the lines of a range add up to its figures", () => {
    const stacks = new Stacks(tables);
    const model = madeDevice({ blocks: 2000, lastTick: 4000, slots: 64 });
    const figures = figuresOf(model, [700, 2900]);
    const lines = finish(linesInSteps(model, stacks, figures));
    const total = (key: "allocated" | "freed" | "allocations" | "frees"): number =>
        lines.reduce((sum, line) => sum + line[key], 0);
    assert.equal(total("allocated"), figures.allocatedBytes);
    assert.equal(total("freed"), figures.freedBytes);
    assert.equal(total("allocations"), figures.allocations);
    assert.equal(total("frees"), figures.frees);
    const { start, stack, size } = model.blocks;
    let wanted = 0;
    for (let row = 0; row < model.blocks.count; ++row) {
        if (start[row] > 700 && start[row] <= 2900 && [1, 2].includes(stack[row])) {
            wanted += size[row];
        }
    }
    assert.equal(lines.find(({ line }) => stacks.lineName(line) === "line 0")?.allocated, wanted);
    assert.deepEqual([...stacks.ofLine(1)].slice(0, 4), [0, 1, 1, 0]);
    assert.equal(stacks.lineName(0), "no stack recorded");
});

test("the rows of one range are sorted by amount, those of two by difference", () => {
    const change = (line: number, allocated: number, freed: number) => ({
        line,
        allocated,
        freed,
        allocations: 1,
        frees: 1,
    });
    const first = [change(1, 100, 0), change(2, 50, 250)];
    const second = [change(1, 90, 0), change(3, 70, 10)];
    const shown = (...of: Parameters<typeof lineRows>): [number, number][] =>
        lineRows(...of).map(({ line, weight }) => [line, weight]);
    assert.deepEqual(shown([first], "change", 0), [
        [2, -200],
        [1, 100],
    ]);
    assert.deepEqual(shown([first], "allocated", 0), [
        [1, 100],
        [2, 50],
    ]);
    assert.deepEqual(shown([first, second], "change", 1), [
        [2, 200],
        [3, 60],
        [1, -10],
    ]);
    assert.deepEqual(shown([first, second], "change", 0)[0], [2, -200]);
    assert.deepEqual([laterOf([]), laterOf([[5, 9]])], [0, 0]);
    const [early, late]: Range[] = [
        [1, 4],
        [5, 9],
    ];
    assert.deepEqual([laterOf([late, early]), laterOf([early, late])], [0, 1]);
    assert.equal(amount(undefined, "change"), 0);
});

/** Steps of 100 ticks from 100 on, each with a forward phase in its middle. */
function withSteps(): DeviceModel {
    const steps = [0, 1, 2, 3];
    const rows = steps.flatMap((step) => [
        { start: 100 + 100 * step, end: 200 + 100 * step, name: step, lane: 0 },
        { start: 120 + 100 * step, end: 160 + 100 * step, name: 4, lane: 1 },
    ]);
    const model = madeDevice({ blocks: 20, lastTick: 450 });
    Object.assign(model.head, {
        phase_lanes: ["steps", "phases"],
        phase_names: ["step 0", "step 1", "step 2", "step 3", "forward"],
    });
    const column = (key: "start" | "end" | "name"): Uint32Array =>
        Uint32Array.from(rows, (row) => row[key]);
    return {
        ...model,
        phases: {
            count: rows.length,
            start: column("start"),
            end: column("end"),
            name: column("name"),
            lane: Uint8Array.from(rows, ({ lane }) => lane),
            ranges: new Uint32Array(rows.length).fill(1),
        },
    };
}

test("a range snaps to the phase at the cursor, then to the step around it", () => {
    const model = withSteps();
    const phase = phaseRange(model, 330, null);
    assert.deepEqual(phase, [320, 360]);
    const step = phaseRange(model, 330, phase);
    assert.deepEqual(step, [300, 400]);
    assert.deepEqual(phaseRange(model, 330, step), phase, "and back to the innermost");
    assert.equal(phaseRange(model, 50, null), null);
    assert.equal(phaseOf(model, [300, 400]), 4);
    assert.equal(phaseOf(model, [300, 401]), -1);
    assert.deepEqual(phaseRange(model, 430, null), [420, 450], "not beyond the trace");
});

test("a range is compared with the step or phase before it, or with as much time", () => {
    const model = withSteps();
    assert.deepEqual(rangeBefore(model, [300, 400]), [200, 300]);
    assert.deepEqual(rangeBefore(model, [320, 360]), [220, 260]);
    assert.deepEqual(rangeBefore(model, [310, 330]), [290, 310]);
    assert.deepEqual(rangeBefore(model, [0, 300]), [300, 450]);
    assert.deepEqual(rangeBefore(model, [100, 200]), [0, 100], "the first step");
});

test("an empty, incomplete or reversed range becomes a valid one or none", () => {
    const ranges = (change: Partial<typeof initialView>): Range[] =>
        rangesOf(clampView({ ...initialView, ...change }, 1000, 4096));
    assert.deepEqual(ranges({}), []);
    assert.deepEqual(ranges({ r0: 10 }), []);
    assert.deepEqual(ranges({ r0: 10, r1: 10 }), []);
    assert.deepEqual(ranges({ r0: 90.5, r1: 10.2 }), [[10, 90]]);
    assert.deepEqual(ranges({ r0: 500, r1: 5000 }), [[500, 1000]]);
    assert.deepEqual(ranges({ s0: 5, s1: 9 }), [], "no second one without a first");
    assert.deepEqual(ranges({ r0: 1, r1: 2, s0: 5, s1: 9 }), [
        [1, 2],
        [5, 9],
    ]);
});
