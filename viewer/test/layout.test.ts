// The initial view and its labels: the rules of the first window, of the lanes and of the signs
// above the chart, on made-up models.
import assert from "node:assert/strict";
import { test } from "node:test";
import { activeWindow } from "../src/data/firstwindow";
import { type DeviceModel, never } from "../src/data/model";
import { laneKind, laneNames, laneParts } from "../src/draw/lanes";
import { groupMarkers, groupWord, placeWords } from "../src/draw/markers";

interface Range {
    lane: number;
    start: number;
    end: number;
    name: number;
}
interface Given {
    reserved?: number[];
    steps?: number;
    lastStart?: number;
    cards?: number[];
    markers?: number[];
    lanes?: string[];
    ranges?: Range[];
    names?: string[];
}

/** A trace of 1000 ticks of 10 ns. */
function made({
    reserved = [0],
    steps,
    lastStart = 1000,
    cards = [],
    markers = [],
    lanes = ["NVTX", "steps"],
    ranges = [],
    names = [],
}: Given): DeviceModel {
    const all =
        steps === undefined
            ? ranges
            : [
                  { lane: 0, start: 0, end: 900, name: 0 },
                  { lane: 1, start: steps, end: never, name: 1 },
              ];
    return {
        lastTick: 1000,
        bins: { count: reserved.length, reserved_max: Float64Array.from(reserved) },
        units: { count: 2, start: [0, Math.min(lastStart, 900)] },
        phases: {
            count: all.length,
            start: Uint32Array.from(all, (range) => range.start),
            end: Uint32Array.from(all, (range) => range.end),
            name: Uint32Array.from(all, (range) => range.name),
            lane: Uint8Array.from(all, (range) => range.lane),
            ranges: new Uint32Array(all.length).fill(1),
        },
        head: {
            tick_ns: 10,
            phase_lanes: lanes,
            phase_names: names,
            last_start_ns: lastStart * 10,
            cards: cards.map((at) => ({ time_ns: at * 10 })),
            markers: markers.map((at) => ({ time_ns: at * 10, kind: "burst", text: "" })),
        },
    } as unknown as DeviceModel;
}

const levels = (of: number, ...changes: [from: number, bytes: number][]): number[] =>
    Array.from({ length: of }, (_, i) =>
        changes.reduce((bytes, [from, next]) => (i >= from ? next : bytes), 0),
    );

test("the first window begins where a tenth of the peak is reserved", () => {
    // 5 % from the beginning, 11 % from 80 % of the time on, all from 90 % on.
    const [from, to] = activeWindow(
        made({ reserved: levels(100, [0, 5], [80, 11], [90, 100]), lastStart: 1000 }),
    );
    assert.equal(from, 800 - 0.08 * 200);
    assert.equal(to, 1000);
});

test("the first window begins with the first step if that is earlier", () => {
    const [from] = activeWindow(
        made({ reserved: levels(100, [0, 5], [80, 11], [90, 100]), steps: 700 }),
    );
    assert.equal(from, 700 - 0.08 * 300);
    const [later] = activeWindow(
        made({ reserved: levels(100, [0, 5], [80, 11], [90, 100]), steps: 900 }),
    );
    assert.equal(later, 800 - 0.08 * 200);
});

test("the first window includes every card's moment and a late burst", () => {
    const [from, to] = activeWindow(
        made({
            reserved: levels(100, [60, 100]),
            lastStart: 700,
            cards: [550, 750],
            markers: [800],
        }),
    );
    assert.ok(from < 550 && from > 500, `${from}`);
    assert.equal(to, 800 + 0.08 * 250);
});

test("the whole run is shown if most of it matters or nothing happens", () => {
    assert.deepEqual(activeWindow(made({ reserved: levels(100, [20, 100]) })), [0, 1000]);
    assert.deepEqual(activeWindow(made({ reserved: [0, 0, 0], lastStart: 0 })), [0, 1000]);
    assert.deepEqual(activeWindow(made({ reserved: [], lastStart: 0 })), [0, 1000]);
    assert.deepEqual(activeWindow(made({ reserved: levels(100, [0, 100]) })), [0, 1000]);
});

const step = (lane: number, start: number, end: number, name = 0): Range => ({
    lane,
    start,
    end,
    name,
});

test("adjacent thin ranges become one band with their number, wide ones keep a box", () => {
    // One pixel per tick: ten ranges of 2 px in a row, one of 50 px, two thin ones far apart, one
    // thin one.
    const thin = Array.from({ length: 10 }, (_, i) => step(0, 100 + 2 * i, 102 + 2 * i, i));
    const model = made({
        lanes: ["NVTX", "steps"],
        ranges: [
            ...thin,
            step(0, 120, 170),
            step(0, 200, 201),
            step(1, 210, 211),
            step(0, 220, 221),
        ],
    });
    const [first, second] = laneParts(model, { t0: 0, t1: 1000 }, (tick) => tick, 0, 1000);
    assert.deepEqual(
        first.map(({ from, to, count }) => [from, to, count]),
        [
            [100, 120, 10],
            [120, 170, 1],
            [200, 201, 1],
            [220, 221, 1],
        ],
    );
    assert.deepEqual(
        second.map(({ from, first, count }) => [from, first, count]),
        [[210, 12, 1]],
    );
});

test("every range in the window is in exactly one part at any zoom", () => {
    let seed = 3;
    const random = (below: number): number =>
        (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % below;
    for (let round = 0; round < 200; ++round) {
        const ranges: Range[] = [];
        const at = [0, 0];
        for (let i = 0; i < 60; ++i) {
            const lane = random(2);
            const start = at[lane] + random(20);
            at[lane] = start + 1 + random(30);
            ranges.push(step(lane, start, random(30) === 0 ? never : at[lane]));
        }
        ranges.sort((a, b) => a.start - b.start);
        const t0 = random(400);
        const t1 = t0 + 1 + random(600);
        const parts = laneParts(
            made({ ranges }),
            { t0, t1 },
            (tick) => ((tick - t0) / (t1 - t0)) * 100,
            0,
            100,
        );
        parts.forEach((lane, index) => {
            const inside = ranges.filter(
                (range) =>
                    range.lane === index && range.start <= t1 && Math.min(range.end, 1000) >= t0,
            ).length;
            assert.equal(
                lane.reduce((sum, part) => sum + part.count, 0),
                inside,
            );
            for (const part of lane) {
                assert.ok(part.from >= 0 && part.to <= 100 && part.from <= part.to);
            }
        });
    }
});

test("a lane has the common name of its ranges, else its kind and number", () => {
    const ranges = [
        step(0, 0, 9, 0),
        step(1, 0, 9, 1),
        step(2, 1, 4, 2),
        step(3, 1, 3, 3),
        step(2, 5, 8, 4),
        step(1, 20, 29, 1),
        step(3, 21, 23, 4),
    ];
    const model = made({
        lanes: ["steps", "NVTX", "NVTX", "NVTX", "cells"],
        ranges,
        names: ["step 1", "train", "forward", "attention", "backward"],
    });
    assert.deepEqual(laneNames(model), ["steps", "train", "NVTX 2", "NVTX 3", "cells"]);
    assert.deepEqual(
        [0, 1, 4].map((lane) => laneKind(model, lane)),
        ["steps", "NVTX 1", "cells"],
    );
});

test("signs at the same place show their number, and out of memory wins", () => {
    const words = (signs: [x: number, oom: boolean][]): string[] =>
        groupMarkers(signs.map(([x, oom]) => ({ x, oom }))).map(groupWord);
    assert.deepEqual(
        words([
            [100, false],
            [105, false],
            [110, true],
            [300, false],
            [309, false],
            [400, false],
        ]),
        ["OOM", "2 retries", "retry"],
    );
    assert.deepEqual(
        words([
            [10, true],
            [20, true],
        ]),
        ["2 OOMs"],
    );
});

test("labels never overlap, and the more important of two stays", () => {
    const groups = groupMarkers(
        [
            [100, false],
            [140, true],
            [180, false],
            [495, false],
        ].map(([x, oom]) => ({ x: x as number, oom: oom as boolean })),
    );
    // The second label has two neighbours and room for one word: it is placed at its right, the
    // others elsewhere.
    const places = placeWords(groups, [25, 25, 25, 25], 64, 500);
    assert.deepEqual(places, [66, null, 189, 461]);
    assert.deepEqual(placeWords(groups, [25, 20, 25, 25], 64, 500), [66, 149, 189, 461]);
    assert.deepEqual(
        placeWords(
            groupMarkers([
                { x: 66, oom: false },
                { x: 84, oom: false },
            ]),
            [25, 25],
            64,
            500,
        ),
        [null, 93],
    );
    let seed = 9;
    const random = (below: number): number =>
        (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % below;
    for (let round = 0; round < 300; ++round) {
        const signs = Array.from({ length: 1 + random(12) }, () => ({
            x: 64 + random(436),
            oom: random(4) === 0,
        })).sort((a, b) => a.x - b.x);
        const found = groupMarkers(signs);
        const widths = found.map((group) => 6 * groupWord(group).length);
        const put = placeWords(found, widths, 64, 500);
        const spans = put.flatMap((begin, i) =>
            begin === null ? [] : [[begin, begin + widths[i]]],
        );
        for (const [from, to] of spans) {
            assert.ok(from >= 64 && to <= 500);
            for (const { x } of signs) {
                assert.ok(
                    to <= x - 4 || from >= x + 4,
                    `a word at ${from} to ${to} over the sign at ${x}`,
                );
            }
        }
        spans.sort((a, b) => a[0] - b[0]);
        for (let i = 1; i < spans.length; ++i) assert.ok(spans[i][0] > spans[i - 1][1]);
        if (signs.length === 1) assert.notEqual(put[0], null);
    }
});
