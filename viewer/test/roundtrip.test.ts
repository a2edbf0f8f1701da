// Reads pages written by the C++ writer: FRAGTRACE_PAGES holds the pages of make_page.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type Columns, packedBytes, readPack } from "../src/data/columns";
import { CoverageGrid } from "../src/data/coverage";
import { type Header, parseHeader } from "../src/data/header";
import { heapAt, holesOf } from "../src/data/heap";
import { heldByStack, keptByPools } from "../src/data/held";
import { cardTick, type DeviceModel, forUnits, makeModel, othersAt } from "../src/data/model";
import { bytesAt } from "../src/data/overtime";
import { Stacks } from "../src/data/stacks";
import { sweepWindow } from "../src/data/sweep";
import { sharesOf } from "./made";

const folder = process.env.FRAGTRACE_PAGES;
if (!folder) throw new Error("FRAGTRACE_PAGES is not set");

async function readAll(name: string): Promise<{ header: Header; models: DeviceModel[] }> {
    const html = readFileSync(join(folder!, name), "utf8");
    const textOf = (id: string): string | undefined => html.split(`id="${id}">`)[1]?.split("</")[0];
    const header = parseHeader(textOf("ft-header")!);
    const models: DeviceModel[] = [];
    for (const head of header.devices) {
        const packs = new Map<string, Columns>();
        for (const description of head.packs) {
            const packed = packedBytes(textOf(description.id), description);
            packs.set(description.id, await readPack(packed, description));
        }
        models.push(makeModel(head, packs));
    }
    return { header, models };
}

const read = async (name: string): Promise<DeviceModel> => (await readAll(name)).models[0];

// The heap computed only from the columns.
function bruteForce(model: DeviceModel, tick: number) {
    const { blocks, units } = model;
    const sums = { requested: 0, allocated: 0, pending: 0, reserved: 0, held: 0, releasable: 0 };
    const used = new Map<number, number>();
    for (let row = 0; row < blocks.count; ++row) {
        if (blocks.start[row] > tick || blocks.end[row] <= tick) continue;
        if (blocks.freed[row] <= tick) {
            sums.pending += blocks.size[row];
        } else {
            sums.allocated += blocks.size[row];
            sums.requested += blocks.size[row] - blocks.excess[row];
        }
        forUnits(model, row, (unit) => {
            const from = Math.max(blocks.offset[row], units.offset[unit]);
            const to = Math.min(
                blocks.offset[row] + blocks.size[row],
                units.offset[unit] + units.size[unit],
            );
            used.set(unit, (used.get(unit) ?? 0) + to - from);
        });
    }
    for (let unit = 0; unit < units.count; ++unit) {
        if (units.start[unit] > tick || units.end[unit] <= tick) continue;
        sums.reserved += units.size[unit];
        const free = units.size[unit] - (used.get(unit) ?? 0);
        const pool = model.pools[units.pool[unit]];
        const poolKeeps =
            units.pool[unit] > 0 &&
            pool.changes.filter((change) => change <= tick).length % 2 === 0;
        if (used.has(unit) || poolKeeps) sums.held += free;
        else sums.releasable += free;
    }
    return sums;
}

test("the checkerboard page is read back unchanged", async () => {
    const model = await read("checkerboard.html");
    assert.equal(model.blocks.count, 188);
    const card = model.head.cards[0];
    const bar = (label: string): number | undefined =>
        card.bars.find((one) => one.label === label)?.bytes;
    const heap = heapAt(model, Math.floor(card.time_ns / model.head.tick_ns));
    assert.equal(heap.live.length, 94);
    assert.equal(heap.units.length, 94);
    assert.equal(heap.reserved, 94 * 20 * 2 ** 20);
    assert.equal(heap.requested, 94 * (10 * 2 ** 20 - 512));
    assert.equal(heap.held, bar("free, in holes"));
    assert.equal(
        Math.max(...heap.units.flatMap((state) => holesOf(model, state).map(([, size]) => size))),
        bar("largest free block"),
    );
    assert.deepEqual(new Set(card.culprits[0].blocks), new Set(heap.live));
    assert.equal(
        [...heldByStack(model, heap).values()].reduce((sum, bytes) => sum + bytes, 0),
        heap.held,
    );
});

test("at every card the blocked bytes per stack equal the analyzer's table", async () => {
    let rows = 0;
    for (const name of ["checkerboard.html", "run.html", "shares.html"]) {
        const { header, models } = await readAll(name);
        const stacks = new Stacks(header);
        const line = (node: number): string => stacks.label(stacks.telling(node));
        for (const model of models) {
            for (const [at, card] of model.head.cards.entries()) {
                const heap = heapAt(model, cardTick(model.head, card));
                const held = new Map<string, number>();
                for (const [node, bytes] of heldByStack(model, heap)) {
                    if (node > 0) held.set(line(node), (held.get(line(node)) ?? 0) + bytes);
                }
                const table = new Map(
                    card.culprits.map((row): [string, number] => [line(row.stack), row.held_open]),
                );
                assert.deepEqual([...held].sort(), [...table].sort(), `${name}, card ${at}`);
                assert.equal(
                    [...table.values()].reduce((sum, bytes) => sum + bytes, 0) + keptByPools(heap),
                    heap.held,
                );
                rows += table.size;
            }
        }
    }
    assert.ok(rows > 40, `${rows} rows`);
});

test("states at the cursor add up to reserved and equal brute force", async () => {
    const run = await read("run.html");
    assert.ok(run.blocks.count > 5000);
    for (const model of [run, (await readAll("two.html")).models[1]]) {
        for (let i = 0; i <= 40; ++i) {
            const tick = Math.floor((model.lastTick * i) / 40);
            const heap = heapAt(model, tick);
            const { requested, allocated, pending, reserved, held, releasable } = heap;
            assert.deepEqual(
                { requested, allocated, pending, reserved, held, releasable },
                bruteForce(model, tick),
            );
            assert.equal(reserved, allocated + pending + held + releasable);
        }
    }
});

test("at every moment the page equals the recorded state to the byte", async () => {
    for (const name of ["private-pools.html", "expandable.html"]) {
        const model = await read(name);
        const moments = JSON.parse(
            readFileSync(join(folder, `${name}.moments.json`), "utf8"),
        ) as number[][];
        assert.ok(moments.length > 300, `${moments.length} moments of ${name}`);
        for (const [time, ...expected] of moments) {
            const tick = Math.floor(time / model.head.tick_ns);
            const { requested, allocated, pending, reserved, releasable } = heapAt(model, tick);
            assert.deepEqual(
                [requested, allocated, pending, reserved, releasable, othersAt(model, tick)],
                expected,
                `${name} at ${time} ns`,
            );
            const { bins } = sweepWindow(model, tick, tick + 1, 1, Infinity)!;
            assert.deepEqual(
                [bins.requested[0], bins.pending[0], bins.reserved_max[0], bins.releasable[0]],
                [requested, pending, reserved, releasable],
                `${name}, the sweep at ${time} ns`,
            );
        }
    }
});

test("pinned memory has its values and its peak, and a trace without such memory has no track", async () => {
    const { tracks, lastTick } = await read("run.html");
    assert.deepEqual(
        tracks.map(({ what }) => what),
        ["pinned host memory"],
    );
    const gib = 2 ** 30;
    assert.deepEqual(
        [0, 0.2, 0.3, 0.9].map((part) => bytesAt(tracks[0], part * lastTick)),
        [0, gib / 2, 3 * gib, gib / 2],
    );
    assert.equal(tracks[0].peak.bytes, 3 * gib);
    assert.ok(Math.abs(tracks[0].peak.tick / lastTick - 0.25) < 0.01);
    assert.deepEqual((await read("checkerboard.html")).tracks, []);
});

test("a private pool keeps its segments while it has users", async () => {
    // The pool is used until 3.5 s, and again from 6.5 s on. It has one empty segment of 20 MiB.
    const model = (await readAll("two.html")).models[1];
    const kept = (seconds: number): number =>
        keptByPools(heapAt(model, (seconds * 1e9) / model.head.tick_ns));
    assert.deepEqual(
        [1, 3.4, 3.5, 6.4, 6.5, 9].map(kept),
        [20, 20, 0, 0, 20, 20].map((mib) => mib * 2 ** 20),
    );
});

test("the bins of the writer equal the page's own sweep", async () => {
    const models = [
        await read("checkerboard.html"),
        await read("run.html"),
        (await readAll("two.html")).models[1],
        await read("private-pools.html"),
        await read("expandable.html"),
    ];
    for (const [name, model] of models.entries()) {
        const sweep = sweepWindow(model, 0, model.lastTick, model.bins.count, Infinity)!;
        for (const part of [
            "requested",
            "internal",
            "pending",
            "held",
            "releasable",
            "allocated_max",
            "allocated_min",
            "reserved_max",
        ] as const) {
            for (let i = 0; i < model.bins.count; ++i) {
                const difference = Math.abs(sweep.bins[part][i] - model.bins[part][i]);
                // Means are cut to whole bytes, and in one of the two the last bin ends at a whole
                // tick.
                assert.ok(
                    difference <= 2 + model.bins[part][i] * 1e-6,
                    `${name} ${part} bin ${i}: ${sweep.bins[part][i]} and ${model.bins[part][i]}`,
                );
            }
        }
    }
});

test("a part of the time has the same states as the whole run", async () => {
    const model = await read("run.html");
    const from = Math.floor(model.lastTick * 0.4);
    const to = Math.floor(model.lastTick * 0.43);
    const sweep = sweepWindow(model, from, to, 64, Infinity)!;
    for (const tick of [from, to]) {
        const heap = heapAt(model, tick);
        const keptNow = sweep.keptUnit.filter(
            (_, i) =>
                sweep.keptFrom[i] <= tick && (tick < sweep.keptTo[i] || sweep.keptTo[i] === to),
        );
        for (const state of heap.units) {
            if (state.kept && tick === from) assert.ok(keptNow.includes(state.unit));
        }
    }
    let most = 0;
    for (let tick = from; tick <= to; tick += 499) {
        most = Math.max(most, heapAt(model, tick).allocated);
    }
    assert.ok(Math.max(...sweep.bins.allocated_max) >= most);
    assert.equal(sweepWindow(model, 0, model.lastTick, 64, 10), null);
});

test("the map's planes equal the shares of the area", async () => {
    const model = await read("run.html");
    const { map, blocks, units, lastTick, head } = model;
    const check = (
        plane: Uint8Array,
        fill: (grid: CoverageGrid, across: number, up: number) => void,
    ): void => {
        const grid = new CoverageGrid(map.columns, map.rows);
        fill(grid, map.columns / (head.end_ns / head.tick_ns), map.rows / head.axis_bytes);
        const shares = sharesOf(grid);
        for (let i = 0; i < plane.length; i += 7) {
            assert.ok(Math.abs(Math.max(0, shares[i]) * 255 - plane[i]) <= 1, `cell ${i}`);
        }
    };
    check(map.in_use, (grid, across, up) => {
        for (let row = 0; row < blocks.count; ++row) {
            grid.add(
                blocks.start[row] * across,
                Math.min(blocks.end[row], lastTick) * across,
                blocks.offset[row] * up,
                (blocks.offset[row] + blocks.size[row]) * up,
            );
        }
    });
    check(map.reserved, (grid, across, up) => {
        for (let unit = 0; unit < units.count; ++unit) {
            grid.add(
                units.start[unit] * across,
                Math.min(units.end[unit], lastTick) * across,
                units.offset[unit] * up,
                (units.offset[unit] + units.size[unit]) * up,
            );
        }
    });
});
