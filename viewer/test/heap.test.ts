// The state at the cursor follows small moves by the difference alone. It must equal the state that
// is computed anew, whatever moves came before.
import assert from "node:assert/strict";
import { test } from "node:test";
import { heapAt, type HeapState, liveByStack, liveBytes } from "../src/data/heap";
import { countLive, wantedStacks } from "../src/data/hits";
import type { Kinds } from "../src/data/kinds";
import { type DeviceModel, noUnit } from "../src/data/model";
import { light as colours } from "../src/draw/colours";
import { drawCrowd } from "../src/draw/crowd";
import type { MapFrame } from "../src/draw/map";
import { drawAtCursor, noStrip } from "../src/draw/marks";
import { drawSegmentMarks } from "../src/draw/segmentmarks";
import type { Layer } from "../src/draw/surface";
import "./image";
import { madeDevice, randomNumbers } from "./made";

const lastTick = 100_000;

function devices(): Record<string, DeviceModel> {
    const made = (pending: boolean): DeviceModel =>
        madeDevice({ blocks: 20_000, slots: 2048, lastTick, pending });
    const outside = made(false);
    for (let row = 0; row < outside.blocks.count; row += 97) outside.blocks.unit[row] = noUnit;
    const spanning = made(false);
    const rows = Uint32Array.from(spanning.blocks.unit.keys()).filter(
        (row) => spanning.blocks.unit[row] === 3,
    );
    return {
        plain: made(false),
        "with blocks that wait for streams": made(true),
        "with blocks outside the units": outside,
        "with blocks in two units": {
            ...spanning,
            spanBlock: rows,
            spanUnit: new Uint32Array(rows.length).fill(4),
        },
    };
}

/** Moves by a few events, by many, and back. */
function* moves(count: number): Generator<number> {
    const random = randomNumbers(11);
    let tick = 50_000;
    for (let i = 0; i < count; ++i) {
        const step = [1, 3, 20, 40_000][random(4)];
        tick = Math.max(0, Math.min(lastTick, tick + (random(2) === 0 ? step : -step)));
        yield tick;
    }
}

// The same device, of which no state is known.
const anew = (device: DeviceModel): DeviceModel => ({ ...device });

function figures({ number, change, units, ...rest }: HeapState): unknown {
    assert.ok(number > 0 && change !== undefined);
    const states = units.map(({ unit, blocks, used, free, kept }) => [
        unit,
        blocks,
        used,
        free,
        kept,
    ]);
    return { ...rest, states };
}

test("a state that follows the last one equals one that is computed anew", () => {
    for (const [name, device] of Object.entries(devices())) {
        let followed = 0;
        let shared = 0;
        let last: HeapState | null = null;
        const stacks = Uint8Array.from({ length: 11 }, (_, node) => node % 2);
        const some = Uint8Array.from({ length: device.blocks.count }, (_, row) =>
            Number(row % 3 > 0),
        );
        for (const tick of moves(120)) {
            const heap = heapAt(device, tick);
            const fresh = anew(device);
            assert.deepEqual(figures(heap), figures(heapAt(fresh, tick)), `${name} at ${tick}`);
            const wanted = { ...wantedStacks(stacks), blocks: some };
            const counts = countLive(device, heap, wanted);
            // countLive() and liveBytes() know one device at a time.
            const bytes = Array.from(liveBytes(device, heap, some));
            assert.deepEqual(counts, countLive(fresh, heapAt(fresh, tick), wanted));
            assert.deepEqual(bytes, Array.from(liveBytes(fresh, heapAt(fresh, tick), some)));
            if (heap.change && last) {
                ++followed;
                const before = new Set(last.units);
                shared += heap.units.filter((state) => before.has(state)).length;
            }
            last = heap;
        }
        assert.ok(followed > 20, `${name}: ${followed} states followed`);
        assert.equal(shared > 0, name === "plain", `${name}: ${shared} units are the same objects`);
    }
});

test("sums and counts that follow the states equal those of all live blocks", () => {
    const { plain } = devices();
    const wanted = wantedStacks(Uint8Array.from({ length: 11 }, (_, node) => Number(node > 3)));
    const { stack, size } = plain.blocks;
    for (const tick of moves(200)) {
        const heap = heapAt(plain, tick);
        const rows = [...heap.live].filter((row) => stack[row] > 3);
        assert.deepEqual(countLive(plain, heap, wanted), {
            blocks: rows.length,
            bytes: rows.reduce((sum, row) => sum + size[row], 0),
        });
        const bytes = new Map<number, number>();
        for (const row of heap.live) {
            bytes.set(stack[row], (bytes.get(stack[row]) ?? 0) + size[row]);
        }
        assert.deepEqual(
            liveByStack(plain, heap),
            new Map([...bytes].sort(([left], [right]) => left - right)),
        );
    }
});

const kindsFor = ({ blocks }: DeviceModel): Kinds => ({
    by: "stack",
    names: ["one", "other", "others"],
    of: Uint8Array.from({ length: blocks.count }, (_, row) => row % 3),
});

test("units that keep their state keep their picture, and only then", () => {
    for (const [name, device] of Object.entries(devices())) {
        const fresh = anew(device);
        const some = Array.from(device.blocks.start.keys()).filter((row) => row % 7 === 0);
        const kinds = kindsFor(device);
        const looks = [[], some].flatMap((pins) =>
            [null, kinds].map((shown) => ({ pins: new Set(pins), kinds: shown })),
        );
        const wanted = [0, 1].map((odd) =>
            wantedStacks(Uint8Array.from({ length: 11 }, (_, node) => Number(node % 2 === odd))),
        );
        let look = 0;
        for (const tick of moves(160)) {
            look = (look + Number(tick % 13 === 0)) % looks.length;
            const width = 16 + 8 * Number(tick % 7 === 0);
            const pictures = [device, fresh].map((model) => {
                const shown: unknown[] = [];
                const context = {
                    putImageData: ({ data }: ImageData) => shown.push([...data]),
                    fillRect: (...box: number[]) => shown.push(box),
                } as unknown as CanvasRenderingContext2D;
                const heap = heapAt(model === fresh ? anew(model) : model, tick);
                for (const state of heap.units) {
                    const box = { x: 0, y: 0, width, height: 3 };
                    drawCrowd(context, 1, model, state, box, tick, looks[look], colours);
                }
                const placed = heap.units.map((state) => ({ state, x: 0, y: 0, width, height: 3 }));
                const marked = wanted[look % 2];
                drawSegmentMarks(context, 1, model, placed, tick, marked, -1, null, colours);
                return shown;
            });
            assert.deepEqual(pictures[0], pictures[1], `${name} at ${tick}`);
        }
    }
});

test("a unit whose blocks change follows its last state by the difference", () => {
    const { plain } = devices();
    let followed = 0;
    let last: HeapState | null = null;
    for (const tick of moves(60)) {
        const heap = heapAt(plain, tick);
        for (const { unit, number, change, blocks, line } of heap.units) {
            const before = last?.units.find((state) => state.unit === unit);
            if (!change || number === before?.number) continue;
            assert.ok(change.from === before?.number && line === before.line);
            const rows = new Set([...before.blocks, ...change.begun]);
            for (const row of change.ended) assert.ok(rows.delete(row));
            assert.deepEqual(rows, new Set(blocks));
            ++followed;
        }
        last = heap;
    }
    assert.ok(followed > 20, `${followed} states`);
});

test("the column at the cursor that follows the states equals one that is drawn anew", () => {
    const cases = Object.entries(devices()).flatMap(([name, device]) =>
        [null, kindsFor(device)].map((kinds) => ({ name, device, kinds })),
    );
    for (const { name, device, kinds } of cases) {
        const { offset, size } = device.units;
        const last = offset.length - 1;
        const highest = offset[last] + size[last];
        const pins = new Set(
            Array.from(device.blocks.start.keys()).filter((row) => row % 50 === 0),
        );
        const strip = noStrip();
        const canvases = [{}, {}];
        let pinned = 0;
        let followed = 0;
        for (const tick of moves(60)) {
            const window = {
                t0: 0,
                t1: lastTick,
                a0: tick % 7 === 0 ? highest / 2 : 0,
                a1: highest,
            };
            const frame = {
                top: 0,
                bottom: 30,
                right: 100,
                y: (at: number) => (30 * at) / highest,
            } as MapFrame;
            const heap = heapAt(device, tick);
            followed += Number(heap.change?.from === strip.heap);
            const drawn = [strip, noStrip()].map((known, which) => {
                const shown: unknown[] = [];
                const context = {
                    putImageData: ({ data }: ImageData) => shown.push([...data]),
                    fillRect: (...box: number[]) => shown.push(box),
                };
                const layer = { canvas: canvases[which], context, ratio: 1 } as unknown as Layer;
                drawAtCursor(layer, frame, window, device, heap, { pins, kinds }, colours, known);
                return shown;
            });
            assert.deepEqual(drawn[0], drawn[1], `${name} at ${tick}`);
            pinned += drawn[0].length - 1;
        }
        assert.ok(pinned > 100, `${name}: ${pinned}`);
        assert.ok(followed > 20, `${name}: ${followed}`);
    }
});
