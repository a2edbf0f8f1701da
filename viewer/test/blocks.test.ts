// Columns of a file become blocks: how "never" and "unknown" are stored, and which widths need
// which arrays.
import assert from "node:assert/strict";
import { test } from "node:test";
import { blockLayout, blocksOf, emptyBlocks, never, noUnit, placeBlocks } from "../src/data/blocks";
import type { Columns } from "../src/data/columns";

const widths = (name: string, width: number): Parameters<typeof blockLayout>[0] => [
    { id: "ft-0-blocks-0", rows: 1, bytes: width, columns: [[name, width, 0]] },
];

const unknown = 2 ** 48 - 1;

// A block that stays, one that is freed, one that waits, and one that waits for ever. The last one
// lies in no unit.
const columns = (excess: number): Columns => ({
    start: Uint32Array.of(10, 20, 30, 40),
    held: Uint32Array.of(never, 5, 6, 7),
    pending: Uint32Array.of(0, 0, 3, never),
    unit: Uint32Array.of(0, 1, 1, noUnit),
    offset: Float64Array.of(0, 8, 16, 24),
    size: Float64Array.of(512, 1024, 5 * 2 ** 32, 512),
    excess: Float64Array.of(0, excess, 12, unknown),
    stack: Uint32Array.of(1, 2, 70_000, 4),
    stream: Uint16Array.of(0, 1, 300, 0),
});
const wide = { pending: true, size: true, excess: true, stack: true, stream: true };

test("a block ends after its lifetime, then waits for streams, or never ends", () => {
    const { freed, end } = blocksOf(columns(0), Float64Array.of(1000, 2000), wide);
    assert.deepEqual([...freed], [never, 25, 36, 47]);
    assert.deepEqual([...end], [never, 25, 39, never]);
    const { freed: alike, end: ends } = blocksOf(columns(0), Float64Array.of(1000, 2000), {
        ...wide,
        pending: false,
    });
    assert.deepEqual([...ends], [never, 25, 36, 47]);
    assert.equal(alike, ends);
});

test("a block lies in its unit or at its own address, unknown requests stay unknown", () => {
    const blocks = blocksOf(columns(7), Float64Array.of(1000, 2000), wide);
    assert.deepEqual([...blocks.offset], [1000, 2008, 2016, 24]);
    assert.deepEqual([...blocks.excess], [0, 7, 12, -1]);
    assert.deepEqual([...blocks.size], [512, 1024, 5 * 2 ** 32, 512]);
    assert.deepEqual([...blocks.stack], [1, 2, 70_000, 4]);
    assert.deepEqual([...blocks.stream], [0, 1, 300, 0]);
});

test("columns keep every number that their width in the file allows", () => {
    const most = { size: 4, excess: 3, stack: 2, stream: 1 } as const;
    for (const [name, width] of Object.entries(most) as [keyof typeof most, number][]) {
        for (const given of [width, width + 1]) {
            const column = emptyBlocks(1, blockLayout(widths(name, given)))[name];
            column[0] = 256 ** given - 1;
            assert.equal(column[0], 256 ** given - 1, `${name} of ${given} bytes`);
        }
    }
    assert.equal(blockLayout(widths("pending", 0)).pending, false);
    assert.equal(blockLayout(widths("pending", 1)).pending, true);
    assert.equal(blockLayout([...widths("size", 6), ...widths("size", 2)]).size, true);
});

test("blocks use the memory of earlier ones if they fit, and nothing of them is left", () => {
    const units = Float64Array.of(1000, 2000);
    for (const layout of [wide, { ...wide, pending: false }]) {
        const fresh = blocksOf(columns(7), units, layout);
        const spare = emptyBlocks(5, layout);
        for (const column of Object.values(spare)) {
            if (ArrayBuffer.isView(column)) (column as Uint32Array).fill(77);
        }
        const again = blocksOf(columns(7), units, layout, spare);
        assert.deepEqual(again, fresh);
        assert.equal(again.start.buffer, spare.start.buffer);
        assert.deepEqual(blocksOf(columns(7), units, layout, emptyBlocks(3, layout)), fresh);
    }
});

test("packs follow one another, and no more of them than the file announces", () => {
    const part = blocksOf(columns(7), Float64Array.of(1000, 2000), wide);
    const all = emptyBlocks(8, wide);
    placeBlocks(all, part, 0);
    placeBlocks(all, part, 4);
    for (const name of [
        "start",
        "freed",
        "end",
        "unit",
        "offset",
        "size",
        "excess",
        "stack",
        "stream",
    ] as const) {
        assert.deepEqual([...all[name]], [...part[name], ...part[name]], name);
    }
    assert.throws(() => placeBlocks(all, part, 5), /more blocks than it announces/);
});
