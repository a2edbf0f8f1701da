// Two runs: the axis that both share, their memory along it, and the same place in the other run.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ComparedLine, Header, Pair } from "../src/data/header";
import { type DeviceModel, never } from "../src/data/model";
import {
    bytesAt,
    chosenAxis,
    commonAxes,
    comparedDevice,
    counterpart,
    courseOf,
    difference,
    largestFirst,
    lineIn,
    runLabel,
    sideOf,
    spanView,
    switchedTimes,
} from "../src/data/tworuns";

interface Made {
    steps: number[]; // ticks
    lastTick: number;
    bins: number[]; // reserved bytes; half of them are allocated
    tickNs?: number;
    names?: string[];
}

function run({ steps, lastTick, bins, tickNs = 1, names }: Made): DeviceModel {
    return {
        head: {
            tick_ns: tickNs,
            phase_lanes: steps.length > 0 ? ["steps"] : [],
            phase_names: names ?? steps.map((_, at) => `step ${at + 1}`),
        },
        lastTick,
        phases: {
            count: steps.length,
            start: Uint32Array.from(steps),
            end: new Uint32Array(steps.length).fill(never),
            name: Uint32Array.from(steps.keys()),
            lane: new Uint8Array(steps.length),
            ranges: new Uint32Array(steps.length).fill(1),
        },
        bins: {
            count: bins.length,
            reserved_max: Float64Array.from(bins),
            allocated_max: Float64Array.from(bins, (bytes) => bytes / 2),
        },
    } as unknown as DeviceModel;
}

const fast = run({ steps: [100, 200, 300], lastTick: 400, bins: [1, 2, 3, 4] });
const slow = run({ steps: [100, 300, 500, 700], lastTick: 900, bins: [1, 2, 3, 4, 5, 6, 7, 8, 9] });
const models: Pair<DeviceModel> = [fast, slow];

test("with steps in both runs, the n-th step of one stands over the n-th of the other", () => {
    const [byStep, byTime] = commonAxes(models);
    assert.deepEqual([byStep.unit, byStep.from, byStep.to], ["step", -1, 4]);
    assert.deepEqual([byTime.unit, byTime.from, byTime.to], ["time", 0, 900]);
    assert.equal(chosenAxis([byStep, byTime], "time"), byTime);
    assert.equal(chosenAxis([byTime], "step"), byTime);
    for (const [tickOfFast, tickOfSlow, at] of [
        [0, 0, -1],
        [100, 100, 0],
        [150, 200, 0.5],
        [300, 500, 2],
        [400, 700, 3],
    ]) {
        assert.equal(byStep.at(0, tickOfFast), at);
        assert.equal(byStep.at(1, tickOfSlow), at);
        assert.equal(byStep.tick(0, at), tickOfFast);
        assert.equal(byStep.tick(1, at), tickOfSlow);
    }
    assert.equal(byStep.tick(0, 3.9), 400, "the fast run has ended there");
});

test("a run without steps, or with steps that the file leaves out, is compared by time", () => {
    const none = run({ steps: [], lastTick: 900, bins: [1] });
    const one = run({ steps: [5], lastTick: 900, bins: [1] });
    const gap = run({ steps: [5, 9], lastTick: 900, bins: [1], names: ["step 1", "step 3"] });
    for (const other of [none, one, gap]) {
        assert.deepEqual(
            commonAxes([fast, other]).map(({ unit }) => unit),
            ["time"],
        );
    }
});

test("times of runs with different ticks are the same nanoseconds", () => {
    const coarse = run({ steps: [], lastTick: 90, bins: [1], tickNs: 10 });
    const [byTime] = commonAxes([fast, coarse]);
    assert.equal(byTime.at(1, 30), 300);
    assert.deepEqual(switchedTimes(byTime, 0, times(300, 100, 400)), times(30, 10, 40));
});

const times = (cursor: number, t0: number, t1: number, r0 = -1, r1 = -1) => ({
    ...{ t0, t1, cursor, r0, r1 },
    ...{ s0: -1, s1: -1 },
});

test("switching keeps the step, the window and the range, and back again leads to the start", () => {
    const [byStep] = commonAxes(models);
    const here = times(250, 100, 300, 200, 300);
    const there = switchedTimes(byStep, 0, here);
    assert.deepEqual(there, times(400, 100, 500, 300, 500));
    assert.deepEqual(switchedTimes(byStep, 1, there), here);
});

test("a course has the most of each column, and ends with its run", () => {
    for (const axis of commonAxes(models)) {
        for (const side of [0, 1] as const) {
            for (const columns of [3, 9, 50]) {
                const course = courseOf(models[side], side, axis, columns, "reserved_max");
                const { bins, lastTick } = models[side];
                const expected = new Array<number>(columns).fill(-1);
                // by small steps through the run
                for (let tick = 0; tick < lastTick; tick += 0.25) {
                    const share = (axis.at(side, tick) - axis.from) / (axis.to - axis.from);
                    const at = Math.min(columns - 1, Math.floor(share * columns + 1e-9));
                    const bin = Math.floor((tick / lastTick) * bins.count);
                    expected[at] = Math.max(expected[at], bins.reserved_max[bin]);
                }
                course.forEach((bytes, at) => assert.equal(bytes, expected[at], `column ${at}`));
            }
        }
    }
});

test("the bytes at a position are those of its bin, and unknown after the end", () => {
    const [byStep, byTime] = commonAxes(models);
    assert.equal(bytesAt(fast, 0, byTime, 250, "reserved_max"), 3);
    assert.equal(bytesAt(fast, 0, byTime, 250, "allocated_max"), 1.5);
    assert.equal(bytesAt(fast, 0, byTime, 401, "reserved_max"), null);
    assert.equal(bytesAt(fast, 0, byTime, 400, "reserved_max"), 4);
    assert.equal(bytesAt(slow, 1, byStep, 0.5, "reserved_max"), 3);
    assert.equal(bytesAt(fast, 0, byStep, 3.5, "reserved_max"), null);
});

test("a span is selected with room on both sides, a moment is not", () => {
    assert.deepEqual(spanView(10, [1000, 1500]), {
        ...{ cursor: 100, r0: 100, r1: 150 },
        ...{ t0: 50, t1: 200 },
    });
    assert.deepEqual(spanView(10, [1000, 1005]), { cursor: 100, r0: -1, r1: -1 });
});

const line = (label: string, a: number | null, b: number | null): ComparedLine => ({
    ...{ label, label_a: label, a, b },
    stacks: [],
});

test("lines with the largest difference come first, unknown ones last", () => {
    const lines = [line("x", 5, null), line("y", 5, 4), line("z", 1, 9)];
    assert.deepEqual(
        largestFirst(lines).map(({ label }) => label),
        ["z", "y", "x"],
    );
    assert.equal(difference(lines[0]), null);
    assert.equal(difference(lines[2]), 8);
});

test("devices belong to the run of their process, and have a counterpart in the other run", () => {
    const device = (process: number, index: number) => ({ process, index, name: "card" });
    const header = {
        strings: ["t.py:1 f", "t.py:2 f"],
        devices: [device(0, 0), device(0, 1), device(1, 0)],
        comparison: {
            processes: [1, 0],
            devices: [
                { gpu: 0, devices: [2, 0] },
                { gpu: 1, devices: [null, 1] },
            ],
        },
    } as unknown as Header;
    assert.deepEqual(
        [0, 1, 2].map((at) => sideOf(header, at)),
        [1, 1, 0],
    );
    assert.deepEqual(
        [0, 1, 2].map((at) => counterpart(header, at)),
        [2, null, 0],
    );
    assert.equal(comparedDevice(header, 1)!.gpu, 1);
    assert.equal(runLabel(header, 2), "A · GPU 0 card");
    const moved = { ...line("t.py:2 f", 1, 2), label_a: "t.py:1 f" };
    assert.deepEqual([lineIn(header, moved, 0), lineIn(header, moved, 1)], [0, 1]);
    assert.equal(lineIn(header, line("none", 1, 2), 0), -1);
    assert.equal(sideOf({ ...header, comparison: null }, 0), null);
    assert.equal(counterpart({ ...header, comparison: null }, 0), null);
});
