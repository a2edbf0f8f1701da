// Stepping through events, and what is under the pointer, each against all there are.
import assert from "node:assert/strict";
import { test } from "node:test";
import { eventAfter, eventBefore } from "../src/data/events";
import { madeDevice, randomNumbers } from "./made";

test("events are stepped through one by one, of every kind, on and back", () => {
    for (const pending of [true, false]) {
        const device = madeDevice({ blocks: 500, lastTick: 20_000, slots: 96, pending });
        const { blocks, units, lastTick } = device;
        const markers = [7, 1234.6, 9999, 19_998.2];
        device.head.markers = markers.map((time_ns) => ({ time_ns, kind: "oom", text: "" }));
        const all = new Set([...blocks.start, ...blocks.freed, ...blocks.end, ...Array.from(units.start), ...Array.from(units.end), ...markers.map(Math.floor), lastTick]);
        const inside = [...all].filter((tick) => tick <= lastTick).sort((a, b) => a - b);
        const seen: number[] = [];
        for (let tick = -1; tick < lastTick; tick = seen.at(-1)!) seen.push(eventAfter(device, tick));
        assert.deepEqual(seen, inside);
        const back: number[] = [];
        for (let tick = lastTick + 1; tick > 0; tick = back.at(-1)!) back.push(eventBefore(device, tick));
        assert.deepEqual(back.reverse(), inside[0] === 0 ? inside : [0, ...inside]);
        const random = randomNumbers(4);
        for (let i = 0; i < 200; ++i) {
            const tick = random(lastTick);
            assert.equal(eventAfter(device, tick), inside.find((time) => time > tick));
            assert.equal(eventBefore(device, tick), inside.findLast((time) => time < tick) ?? 0);
        }
    }
    const empty = madeDevice({ blocks: 0, slots: 0 });
    assert.equal(eventAfter(empty, 5), empty.lastTick);
    assert.equal(eventBefore(empty, 5), 0);
});
