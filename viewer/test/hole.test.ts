// One free range at a time, compared with a pass over all blocks.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Card } from "../src/data/header";
import { heapAt } from "../src/data/heap";
import { freePartAt, holeAt, holesBySize } from "../src/data/hole";
import type { DeviceModel } from "../src/data/model";
import { madeDevice, randomNumbers } from "./made";

const model = madeDevice({ blocks: 1500, lastTick: 5000, slots: 128 });
const { blocks, units } = model;
const rows = [...Array(blocks.count).keys()];
const live = (row: number, tick: number): boolean =>
    blocks.start[row] <= tick && tick < blocks.end[row];

/** Whether a byte of a unit is free at a tick. */
function isFree(byte: number, tick: number): boolean {
    return !rows.some(
        (row) =>
            live(row, tick) &&
            blocks.offset[row] <= byte &&
            byte < blocks.offset[row] + blocks.size[row],
    );
}

test("a hole is free from edge to edge, and as long as it says", () => {
    const random = randomNumbers(4);
    let seen = 0;
    for (let i = 0; i < 200; ++i) {
        const tick = 500 + random(4000);
        const heap = heapAt(model, tick);
        const at = random(128 * 4096);
        const hole = holeAt(model, heap, at);
        const inUnit = heap.units.some(
            ({ unit }) => units.offset[unit] <= at && at < units.offset[unit] + units.size[unit],
        );
        assert.equal(hole !== null, inUnit && isFree(at, tick), `${tick} ${at}`);
        if (!hole) continue;
        ++seen;
        const { offset, size, before, after, since, last } = hole;
        const end = offset + size;
        assert.ok(offset <= at && at < end);
        for (const byte of [offset, Math.floor(offset + size / 2), end - 1]) {
            assert.ok(isFree(byte, tick) && isFree(byte, since), `${byte}`);
        }
        const overlaps = (row: number): boolean =>
            blocks.offset[row] < end && blocks.offset[row] + blocks.size[row] > offset;
        const users = rows.filter((row) => blocks.start[row] <= tick && overlaps(row));
        const ends = users.map((row) => blocks.end[row]);
        assert.equal(since, Math.max(units.start[hole.unit], ...ends));
        if (last >= 0) assert.ok(overlaps(last) && blocks.end[last] === since);
        if (before >= 0) assert.equal(blocks.offset[before] + blocks.size[before], offset);
        else assert.equal(offset, units.offset[hole.unit]);
        if (after >= 0) assert.equal(blocks.offset[after], end);
        else assert.equal(end, units.offset[hole.unit] + units.size[hole.unit]);
    }
    assert.ok(seen > 20, `${seen} holes`);
});

test("free memory at any time is that of the state at this time", () => {
    const random = randomNumbers(6);
    const kinds = new Set<boolean | undefined>();
    const made = madeDevice({ blocks: 400, lastTick: 5000, slots: 128 });
    const { count } = made.units;
    const [start, end] = [new Uint32Array(count), new Uint32Array(count).fill(5000)];
    const always = { ...made, units: { ...made.units, start, end } }; // segments are empty at times
    for (let i = 0; i < 3000; ++i) {
        const device = i % 2 ? model : always;
        const tick = random(5000);
        const at = random(128 * 4096);
        const free = freePartAt(device, tick, at);
        const hole = holeAt(device, heapAt(device, tick), at);
        kinds.add(free?.kept);
        assert.deepEqual(
            free,
            hole && {
                offset: hole.offset,
                size: hole.size,
                kept: hole.kept,
                since: hole.since,
                last: hole.last,
            },
            `${tick} ${at}`,
        );
    }
    assert.deepEqual(kinds, new Set([undefined, true, false]));
});

test("without its neighbour, a hole joins what is free beyond it", () => {
    const heap = heapAt(model, 2500);
    let seen = 0;
    for (const offset of holesBySize(model, heap)) {
        const hole = holeAt(model, heap, offset)!;
        if (hole.after < 0) continue;
        const rest = { ...heap, units: heap.units.map((unit) => ({ ...unit })) };
        const state = rest.units.find(({ unit }) => unit === hole.unit)!;
        state.blocks = state.blocks.filter((block) => block !== hole.after);
        const joined = holeAt(model, rest, offset)!;
        assert.equal(joined.size, hole.size + blocks.size[hole.after] + hole.beyondAfter);
        ++seen;
    }
    assert.ok(seen > 5, `${seen} holes`);
});

test("holes are listed by size, only those that cannot be released", () => {
    const heap = heapAt(model, 2500);
    const sizes = holesBySize(model, heap).map((offset) => holeAt(model, heap, offset)!.size);
    assert.deepEqual(
        sizes,
        [...sizes].sort((a, b) => b - a),
    );
    assert.equal(
        sizes.reduce((sum, size) => sum + size, 0),
        heap.held,
    );
});

test("a hole names the failed requests at whose moment its address was free", () => {
    const heap = heapAt(model, 2500);
    const offset = holesBySize(model, heap)[0];
    const card = (kind: string, requested: number | null, tick: number): Card =>
        ({ kind, requested, time_ns: tick }) as Card;
    const times = [1000, 2500, 4000];
    const head = {
        ...model.head,
        cards: [...times.map((time) => card("oom", 1e9, time)), card("no_oom", null, 2500)],
    };
    const withCards: DeviceModel = { ...model, head };
    const { failed } = holeAt(withCards, heap, offset)!;
    assert.deepEqual(
        failed.map(({ card, size }) => [card, size]),
        times.flatMap((tick, at) => {
            const then = holeAt(model, heapAt(model, tick), offset);
            return then ? [[at, then.size]] : [];
        }),
    );
    assert.ok(failed.some((one) => one.card === 1 && one.requested === 1e9));
});
