// Stepping through events, and the block under the pointer, each compared with brute force.
import assert from "node:assert/strict";
import { test } from "node:test";
import { noUnit } from "../src/data/blocks";
import { eventAfter, eventBefore } from "../src/data/events";
import { heapAt, holesOf } from "../src/data/heap";
import { LiveIndex } from "../src/data/liveindex";
import { blockUnder, byAddress, partAt } from "../src/data/under";
import { counted, madeDevice, randomNumbers, slotBytes } from "./made";

test("stepping visits every event of every kind, forwards and backwards", () => {
    for (const pending of [true, false]) {
        const device = madeDevice({ blocks: 500, lastTick: 20_000, slots: 96, pending });
        const { blocks, units, lastTick } = device;
        const markers = [7, 1234.6, 9999, 19_998.2];
        device.head.markers = markers.map((time) => ({ time_ns: time, kind: "oom", text: "" }));
        const all = new Set([
            ...blocks.start,
            ...blocks.freed,
            ...blocks.end,
            ...Array.from(units.start),
            ...Array.from(units.end),
            ...markers.map(Math.floor),
            lastTick,
        ]);
        const inside = [...all].filter((tick) => tick <= lastTick).sort((a, b) => a - b);
        const seen: number[] = [];
        for (let tick = -1; tick < lastTick; tick = seen.at(-1)!) {
            seen.push(eventAfter(device, tick));
        }
        assert.deepEqual(seen, inside);
        const back: number[] = [];
        for (let tick = lastTick; tick > 0; tick = back.at(-1)!) {
            back.push(eventBefore(device, tick));
        }
        assert.deepEqual(back.reverse(), (inside[0] === 0 ? inside : [0, ...inside]).slice(0, -1));
        const random = randomNumbers(4);
        for (let i = 0; i < 200; ++i) {
            const tick = random(lastTick);
            assert.equal(
                eventAfter(device, tick),
                inside.find((time) => time > tick),
            );
            assert.equal(eventBefore(device, tick), inside.findLast((time) => time < tick) ?? 0);
        }
    }
    const empty = madeDevice({ blocks: 0, slots: 0 });
    assert.equal(eventAfter(empty, 5), empty.lastTick);
    assert.equal(eventBefore(empty, 5), 0);
});

test("the pointer finds the block, a blocking block nearby, or the hole", () => {
    const device = madeDevice({ blocks: 3000, lastTick: 50_000, slots: 200 });
    const { blocks, units } = device;
    const random = randomNumbers(12);
    const live = (tick: number): number[] =>
        [...blocks.start.keys()].filter(
            (row) => blocks.start[row] <= tick && tick < blocks.end[row],
        );
    const pins = byAddress(
        device,
        live(30_000).filter((row) => row % 3 === 0),
    );
    let found = 0;
    for (let i = 0; i < 800; ++i) {
        const tick = random(51_000);
        const at = random(200 * slotBytes + 5000);
        for (const slack of [0, 3000, 9000]) {
            const touches = (row: number, margin: number): boolean =>
                blocks.offset[row] - margin <= at &&
                at < blocks.offset[row] + blocks.size[row] + margin;
            const here = live(tick).filter((row) => touches(row, pins.includes(row) ? slack : 0));
            const least = Math.min(...here.map((row) => blocks.size[row]));
            const block = blockUnder(device, tick, at, pins, slack);
            if (here.length === 0) {
                assert.equal(block, -1);
            } else {
                assert.ok(
                    here.includes(block) && blocks.size[block] === least,
                    `${block} of ${here.join()} at ${tick}, ${at}`,
                );
            }
            found += here.length;
        }
    }
    assert.ok(found > 300, `${found} hits`);
    for (const tick of [0, 20_000, 49_999]) {
        for (const state of heapAt(device, tick).units) {
            for (let i = 0; i < 50; ++i) {
                const at = units.offset[state.unit] + random(units.size[state.unit]);
                const block =
                    state.blocks.find(
                        (row) =>
                            blocks.offset[row] <= at && at < blocks.offset[row] + blocks.size[row],
                    ) ?? -1;
                const hole =
                    block >= 0
                        ? null
                        : (holesOf(device, state).find(
                              ([from, size]) => from <= at && at < from + size,
                          ) ?? null);
                assert.deepEqual(partAt(device, state, at), { block, hole });
            }
        }
    }
});

test("a move of the pointer checks only a few of the live blocks", () => {
    const device = madeDevice({ blocks: 60_000, slots: 20_000, lastTick: 1_000_000 });
    const { blocks } = device;
    const reads = { count: 0 };
    blocks.offset = counted(blocks.offset, reads);
    device.live = new LiveIndex(blocks.start, counted(blocks.end, reads));
    const tick = blocks.start[45_000];
    assert.ok(device.live.at(tick).length > 10_000, "many live");
    const none = new Uint32Array(0);
    blockUnder(device, tick, 5, none, 0); // sorts once
    reads.count = 0;
    for (let i = 0; i < 100; ++i) blockUnder(device, tick + i, i * slotBytes, none, 0);
    assert.ok(reads.count < 100 * 600, `${reads.count / 100} reads a move`);
});

test("a block without a unit between two blocks of a unit does not part them", () => {
    const device = madeDevice({ blocks: 500, lastTick: 20_000, slots: 96, pending: false });
    const { blocks } = device;
    const busy = heapAt(device, 10_000).units.find((state) => state.blocks.length > 2)!;
    const [first, middle, ...others] = busy.blocks;
    const used = busy.used - blocks.size[middle];
    blocks.unit[middle] = noUnit;
    const changed = { ...device }; // another device, because states are known of this one
    const state = heapAt(changed, 10_000).units.find(({ unit }) => unit === busy.unit)!;
    assert.deepEqual([...state.blocks], [first, ...others]);
    assert.equal(state.used, used);
});
