// Pictures of many blocks: each pixel against the areas of its blocks, and the work of a step.
import assert from "node:assert/strict";
import { test } from "node:test";
import { heapAt } from "../src/data/heap";
import { type Kinds, kindsOf, mostKinds } from "../src/data/kinds";
import { LiveIndex } from "../src/data/liveindex";
import type { DeviceModel } from "../src/data/model";
import { Stacks } from "../src/data/stacks";
import { finish, rowsInStep } from "../src/data/steps";
import { sweepWindow, type WindowSweep } from "../src/data/sweep";
import { type Colours, light, rgb } from "../src/draw/colours";
import { drawCrowd } from "../src/draw/crowd";
import { kindColour, kindShares } from "../src/draw/kinds";
import { drawMap, edgesVisible, mapFrame } from "../src/draw/map";
import { type Picture, sized } from "../src/draw/pixels";
import { drawSegments } from "../src/draw/segments";
import { exactShares, isHatch, type MapWindow } from "../src/draw/shares";
import type { Layer } from "../src/draw/surface";
import { chartLegend, mapLegend } from "../src/ui/legends";
import type { PageView } from "../src/ui/view";
import type { Image } from "./image";
import "./image";
import { counted, madeDevice, slotBytes } from "./made";

type Rectangle = [start: number, end: number, offset: number, size: number];
type Triple = [number, number, number];

const colours: Colours = light;

/** Some kinds, without the names that a trace would give them. */
function kindsFor(device: DeviceModel, count: number): Kinds {
    return {
        by: "stack",
        names: Array.from({ length: count }, (_, kind) => `kind ${kind}`),
        of: Uint8Array.from(device.blocks.stack, (stack) => stack % count),
    };
}

/** The share of the cell (column, row) that some rectangles cover. They do not overlap. */
function covered(
    rectangles: Iterable<Rectangle>,
    window: MapWindow,
    { columns, rows }: Picture,
    column: number,
    row: number,
): number {
    const across = (window.t1 - window.t0) / columns;
    const down = (window.a1 - window.a0) / rows;
    const [left, top] = [window.t0 + column * across, window.a0 + row * down];
    let area = 0;
    for (const [start, end, offset, size] of rectangles) {
        const width = Math.min(left + across, end) - Math.max(left, start);
        const height = Math.min(top + down, offset + size) - Math.max(top, offset);
        if (width > 0 && height > 0) area += width * height;
    }
    return area / (across * down);
}

function blocksOf(
    { blocks, lastTick }: DeviceModel,
    sweep: WindowSweep,
    isOne: (row: number) => boolean = () => true,
): Rectangle[] {
    return [...sweep.blocks]
        .filter(isOne)
        .map((row) => [
            blocks.start[row],
            Math.min(lastTick, blocks.end[row]),
            blocks.offset[row],
            blocks.size[row],
        ]);
}

function unitsOf({ units, lastTick }: DeviceModel): Rectangle[] {
    return Array.from({ length: units.count }, (_, unit) => [
        units.start[unit],
        Math.min(lastTick, units.end[unit]),
        units.offset[unit],
        units.size[unit],
    ]);
}

function mixed(parts: [share: number, colour: string][]): Triple {
    const sum: Triple = [0, 0, 0];
    for (const [share, colour] of parts) {
        rgb(colour).forEach((value, channel) => (sum[channel] += share * value));
    }
    return sum;
}

function assertPixel({ image, columns }: Picture, at: [number, number], wanted: Triple): void {
    const [column, row] = at;
    wanted.forEach((value, channel) => {
        const drawn = image.data[4 * (row * columns + column) + channel];
        assert.ok(Math.abs(drawn - value) <= 1.5, `pixel ${at.join()}: ${drawn}, not ${value}`);
    });
}

const windows: MapWindow[] = [
    { t0: 0, t1: 1_000_000, a0: 0, a1: 256 * slotBytes },
    { t0: 200_123, t1: 700_456, a0: 20.5 * slotBytes, a1: 177 * slotBytes },
];

test("blocks coloured by kind are mixed by area", () => {
    const device = madeDevice({ blocks: 3000 });
    for (const window of windows) {
        const sweep = sweepWindow(device, window.t0, window.t1, 64, Infinity)!;
        for (const count of [1, 5, mostKinds + 1]) {
            const kinds = kindsFor(device, count);
            const picture = sized(undefined, 31, 23);
            finish(kindShares(picture, device, window, sweep, kinds, colours));
            const rectangles = kinds.names.map((_, kind) =>
                blocksOf(device, sweep, (row) => kinds.of[row] === kind),
            );
            const units = unitsOf(device);
            for (let cell = 0; cell < 31 * 23; cell += 5) {
                const at: [number, number] = [cell % 31, Math.floor(cell / 31)];
                const shares = rectangles.map((some) => covered(some, window, picture, ...at));
                const used = shares.reduce((sum, share) => sum + share, 0);
                const reserved = Math.max(used, covered(units, window, picture, ...at));
                assertPixel(
                    picture,
                    at,
                    mixed([
                        ...shares.map((share, kind): [number, string] => [
                            share,
                            kindColour(colours, kind),
                        ]),
                        [reserved - used, colours.freeKind],
                        [1 - reserved, colours.ground],
                    ]),
                );
            }
        }
    }
});

test("blocks coloured by state are mixed by area", () => {
    const device = madeDevice({ blocks: 3000 });
    for (const window of windows) {
        const sweep = sweepWindow(device, window.t0, window.t1, 64, Infinity)!;
        const picture = sized(undefined, 31, 23);
        // The second time, what the first one added is gone.
        for (let time = 0; time < 2; ++time) {
            finish(exactShares(picture, device, window, sweep, colours));
        }
        const blocks = blocksOf(device, sweep);
        const units = unitsOf(device);
        const kept = sweep.keptUnit.map((unit, at): Rectangle => [
            sweep.keptFrom[at],
            sweep.keptTo[at],
            device.units.offset[unit],
            device.units.size[unit],
        ]);
        for (let cell = 0; cell < 31 * 23; cell += 3) {
            const at: [number, number] = [cell % 31, Math.floor(cell / 31)];
            const used = covered(blocks, window, picture, ...at);
            const held = Math.max(used, covered(kept, window, picture, ...at));
            const reserved = Math.max(held, covered(units, window, picture, ...at));
            const lined = held - used > 0.5 && isHatch(...at);
            if (Math.abs(held - used - 0.5) < 0.01) continue; // with or without lines
            assertPixel(
                picture,
                at,
                mixed([
                    [used, colours.use],
                    [held - used, lined ? colours.hatch : colours.hole],
                    [reserved - held, colours.cached],
                    [1 - reserved, colours.ground],
                ]),
            );
        }
    }
});

test("blocks are drawn one by one only if they are large enough for their areas to add up", () => {
    for (const [blocks, slots, drawnAlone] of [
        [120, 4, true],
        [3000, 4, false], // narrower than a pixel
        [400, 256, false], // lower than three pixels
    ] as const) {
        const device = madeDevice({ blocks, slots });
        const window = { t0: 0, t1: device.lastTick, a0: 0, a1: slots * slotBytes };
        const sweep = sweepWindow(device, window.t0, window.t1, 64, Infinity)!;
        const frame = mapFrame({ width: 400, height: 200, ratio: 1 } as Layer, window);
        assert.equal(edgesVisible(frame, device, sweep), drawnAlone, `${blocks} in ${slots}`);
    }
});

test("no step of a picture looks at more blocks than a frame has time for", () => {
    const device = madeDevice({ blocks: 150_000, slots: 2048 });
    const window = { t0: 0, t1: device.lastTick, a0: 0, a1: 2048 * slotBytes };
    const sweep = sweepWindow(device, 0, device.lastTick, 64, Infinity)!;
    assert.ok(sweep.blocks.length > 4 * rowsInStep, `${sweep.blocks.length} blocks`);
    const reads = { count: 0 };
    device.blocks.offset = counted(device.blocks.offset, reads);
    const picture = sized(undefined, 400, 300);
    for (const steps of [
        exactShares(picture, device, window, sweep, colours),
        kindShares(picture, device, window, sweep, kindsFor(device, 9), colours),
    ]) {
        let all = 0;
        do {
            all += reads.count;
            reads.count = 0;
        } while (!steps.next().done && reads.count <= rowsInStep);
        assert.ok(reads.count <= rowsInStep, `${reads.count} blocks in one step`);
        assert.equal(all, sweep.blocks.length);
    }
});

test("a segment with more blocks than pixels has the colours of kinds, and of pins", () => {
    const device = madeDevice({ blocks: 3000 });
    const heap = heapAt(device, 500_000);
    const state = heap.units.find(({ blocks }) => blocks.length > 30)!;
    const unitBytes = device.units.size[state.unit];
    const width = 9;
    const pins = new Set([state.blocks[3]]);
    for (const kinds of [null, kindsFor(device, 9)]) {
        let drawn: Image | null = null;
        const context = { putImageData: (image: Image) => (drawn = image) };
        drawCrowd(
            context as unknown as CanvasRenderingContext2D,
            1,
            device,
            state,
            { x: 0, y: 0, width, height: 8 },
            heap.tick,
            { pins, kinds },
            colours,
        );
        const { data } = drawn!;
        for (let column = 0; column < width; ++column) {
            const [from, to] = [column, column + 1].map(
                (at) => device.units.offset[state.unit] + (at * unitBytes) / width,
            );
            const parts: [number, string][] = [];
            let free = 1;
            for (const block of state.blocks) {
                const { offset, size, freed } = device.blocks;
                const within =
                    Math.min(to, offset[block] + size[block]) - Math.max(from, offset[block]);
                if (within <= 0) continue;
                const share = (within * width) / unitBytes;
                free -= share;
                const colour = pins.has(block)
                    ? colours.pin
                    : kinds
                      ? kindColour(colours, kinds.of[block])
                      : freed[block] <= heap.tick
                        ? colours.pending
                        : colours.use;
                parts.push([share, colour]);
            }
            // A row without lines: lines are at places of 0 and 1 modulo 8.
            const row = (2 + 8 - (column % 8)) % 8;
            parts.push([free, kinds ? colours.freeKind : colours.hole]);
            mixed(parts).forEach((value, channel) => {
                const got = data[4 * (row * width + column) + channel];
                assert.ok(Math.abs(got - value) <= 1.5, `column ${column}: ${got}, not ${value}`);
            });
        }
    }
});

test("kinds say what they are sorted by", () => {
    const device = madeDevice({ blocks: 200 });
    const stacks = { count: 11, label: String, telling: Number } as unknown as Stacks;
    for (const by of ["age", "stream", "pool", "category", "stack"] as const) {
        assert.equal(kindsOf(device, stacks, by)!.by, by);
    }
});

/** A layer that keeps its rectangles, and the colour of its topmost rectangle at a point. */
function recording(): { layer: Layer; at: (x: number, y: number) => unknown } {
    const filled: { colour: unknown; box: number[] }[] = [];
    const context: Record<string, unknown> = new Proxy<Record<string, unknown>>(
        {
            fillRect: (...box: number[]) => filled.push({ colour: context.fillStyle, box }),
            measureText: () => ({ width: 10 }),
        },
        { get: (target, key: string) => target[key] ?? (() => undefined), has: () => false },
    );
    const layer = { context, width: 400, height: 200, ratio: 1 } as unknown as Layer;
    const at = (x: number, y: number): unknown =>
        filled.findLast(
            ({ box: [left, top, width, height] }) =>
                left <= x && x < left + width && top <= y && y < top + height,
        )?.colour;
    return { layer, at };
}

test("a full segment has edges between its blocks, none in the colour of holes", () => {
    const made = madeDevice({ blocks: 2, slots: 2, lastTick: 1000 });
    const always = { start: Uint32Array.of(0, 0), end: Uint32Array.of(2000, 2000) };
    const place = { offset: Float64Array.of(0, 500), size: Float64Array.of(500, 500) };
    const device = {
        ...made,
        head: { ...made.head, totals: [], axis: [] },
        units: { ...made.units, ...always, count: 1, offset: Float64Array.of(0), size: [1000] },
        blocks: { ...made.blocks, ...always, ...place, freed: always.end },
        live: new LiveIndex(always.start, always.end),
    } as unknown as DeviceModel;
    const window = { t0: 0, t1: 1000, a0: 0, a1: 1000 };
    const map = recording();
    drawMap(map.layer, device, window, sweepWindow(device, 0, 1000, 8, 9)!, colours);
    const frame = mapFrame(map.layer, window);
    const y = frame.y(500);
    assert.deepEqual(
        [y - 2, y - 0.3, y + 2].map((at) => map.at(frame.x(500), at)),
        [colours.useLong, colours.line, colours.useLong],
    );
    const segments = recording();
    const look = { pins: new Set<number>(), kinds: null };
    const [placed] = drawSegments(
        segments.layer,
        device,
        heapAt(device, 10),
        "worst",
        look,
        colours,
    );
    const x = placed.x + placed.width / 2;
    assert.deepEqual(
        [x - 2, x - 0.3, x + 2].map((at) => segments.at(at, placed.y + 2)),
        [colours.use, colours.line, colours.use],
    );
});

/** Segments of 1000 bytes at tick 0, each with one block of so many bytes. */
function segmentsWith(sizes: number[]): DeviceModel {
    const made = madeDevice({ blocks: 1, slots: 1, lastTick: 1000 });
    const count = sizes.length;
    const always = { start: new Uint32Array(count), end: new Uint32Array(count).fill(2000) };
    const rows = Float64Array.from(sizes.keys());
    const offset = rows.map((row) => row * 1000);
    return {
        ...made,
        head: { ...made.head, totals: [], axis: [] },
        units: {
            ...made.units,
            ...always,
            count,
            offset,
            size: new Float64Array(count).fill(1000),
            pool: new Uint8Array(count),
        },
        blocks: {
            ...made.blocks,
            ...always,
            count,
            offset,
            size: Float64Array.from(sizes),
            freed: always.end,
            unit: Uint32Array.from(rows),
            stack: new Uint32Array(count),
            excess: new Float64Array(count),
        },
        live: new LiveIndex(always.start, always.end),
    } as unknown as DeviceModel;
}

test("segments in use keep their size and fill the room when one of them is partly empty", () => {
    const placed = [1000, 300].map((first) => {
        const device = segmentsWith([first, ...new Array<number>(299).fill(1000)]);
        const look = { pins: new Set<number>(), kinds: null };
        const layer = { ...recording().layer, width: 600, height: 760 } as Layer;
        return drawSegments(layer, device, heapAt(device, 10), "worst", look, colours);
    });
    const sizes = placed.map((all) =>
        all.filter(({ state }) => state.unit > 0).map(({ width, height }) => [width, height]),
    );
    assert.equal(sizes[0].length, 299);
    assert.deepEqual(sizes[0], sizes[1]);
    // The other one has a scale of its own.
    const alone = placed[1].find(({ state }) => state.unit === 0)!;
    assert.ok(alone.width > 400 && alone.height === 44, `${alone.width} x ${alone.height}`);
    for (const all of placed) {
        const bottom = Math.max(...all.map(({ y, height }) => y + height));
        assert.ok(bottom > 600 && bottom <= 760, `down to ${bottom} of 760`);
        const right = Math.max(...all.map(({ x, width }) => x + width));
        assert.ok(right > 540 && right <= 600, `to ${right} of 600`);
    }
});

test("the legends name holes only if the device has one at some time", () => {
    const texts = (held: number): string[] => {
        const none = new Float64Array(2);
        const bins = new Proxy(
            { held: Float64Array.of(0, held) },
            { get: (known, key) => (key === "held" ? known.held : none) },
        );
        const head = { totals: [], cards: [], markers: [] };
        const view = { culprit: -1, card: 0 };
        const page = { colours, kinds: null, model: { head, bins }, view } as unknown as PageView;
        return [...mapLegend(page), ...chartLegend(page)].map(({ text }) => text);
    };
    assert.deepEqual(
        texts(512).filter((text) => text.startsWith("hole")),
        ["hole", "holes"],
    );
    assert.deepEqual(
        texts(0).filter((text) => text.startsWith("hole")),
        [],
    );
});
