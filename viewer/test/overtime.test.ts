// Memory that changes over time, against brute force.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
    bytesAt,
    mostIn,
    mostWords,
    type OverTime,
    peakOf,
    type SideMemory,
    tracksOf,
} from "../src/data/overtime";
import { randomNumbers } from "./made";

function made(changes: number, span: number, seed: number): OverTime {
    const random = randomNumbers(seed);
    return {
        time: Uint32Array.from({ length: changes }, () => random(span)).sort(),
        bytes: Array.from({ length: changes }, () => random(1000)),
    };
}

test("the value at a tick is that of the last change up to it", () => {
    const over = { time: [5, 5, 9], bytes: [100, 300, 0] };
    assert.deepEqual(
        [0, 4, 5, 8, 9, 99].map((tick) => bytesAt(over, tick)),
        [0, 0, 300, 300, 0, 0],
    );
    assert.deepEqual(peakOf(over), { tick: 5, bytes: 300 });
    assert.deepEqual(peakOf({ time: [], bytes: [] }), { tick: 0, bytes: 0 });
});

test("the most of each part of a window equals brute force", () => {
    for (let seed = 1; seed <= 60; ++seed) {
        const over = made(seed % 7 === 0 ? 0 : seed * 3, 400, seed);
        const [from, to] = seed % 2 === 0 ? [0, 400] : [37, 237];
        // Parts of whole ticks, so that edges are exact, and parts shorter than a tick.
        for (const columns of [1, 10, 200, 800]) {
            const expected = Array.from({ length: columns }, (_, column) => {
                const begin = from + (column * (to - from)) / columns;
                const end = from + ((column + 1) * (to - from)) / columns;
                let most = bytesAt(over, begin);
                for (let i = 0; i < over.time.length; ++i) {
                    const time = over.time[i];
                    const inside = time > from && time >= begin && time < end;
                    if (inside) most = Math.max(most, over.bytes[i]);
                }
                return most;
            });
            assert.deepEqual(
                [...mostIn(over, from, to, columns)],
                expected,
                `seed ${seed}, ${columns} columns`,
            );
        }
    }
});

test("only kinds with memory have a track", () => {
    const some = { time: [3, 8], bytes: [64, 0], partNs: 0 };
    const none = { time: [], bytes: [], partNs: 0 };
    const names = (pinned: SideMemory, managed: SideMemory): string[] =>
        tracksOf((name) => (name === "pinned" ? pinned : managed)).map(({ what }) => what);
    assert.deepEqual(names(none, none), []);
    assert.deepEqual(names(some, none), ["pinned host memory"]);
    assert.deepEqual(names(some, some), ["pinned host memory", "managed memory"]);
});

test("a value that is the most of a part of the time says so", () => {
    const some = { time: [3, 8], bytes: [64, 0], partNs: 0 };
    const wordsOf = (partNs: number): string => mostWords(tracksOf(() => ({ ...some, partNs }))[0]);
    assert.deepEqual([wordsOf(0), wordsOf(5)], ["", "at most "]);
});
