// Draws the layer above the map: blocks that prevent the release of free memory, search hits, the
// selected block, and the column of addresses at the cursor.
import { LineCoverage } from "../data/coverage";
import { follow, type HeapState } from "../data/heap";
import type { Hole } from "../data/hole";
import type { DeviceModel } from "../data/model";
import type { Colours } from "./colours";
import type { BlockLook } from "./crowd";
import { kindMixer } from "./kinds";
import type { MapFrame } from "./map";
import { pictureOf } from "./pixels";
import { same } from "./same";
import { isHatch, type MapWindow, mixer } from "./shares";
import type { Layer } from "./surface";
import { stripGap, stripWidth } from "./timeaxis";

// The height that the shapes span.
function extent(shapes: [number, number, number, number][]): number {
    let top = Infinity;
    let bottom = -Infinity;
    for (const [, y, , height] of shapes) {
        top = Math.min(top, y);
        bottom = Math.max(bottom, y + height);
    }
    return bottom - top;
}

export function drawBlocks(
    context: CanvasRenderingContext2D,
    frame: MapFrame,
    model: DeviceModel,
    rows: Iterable<number>,
    colour: string,
    halo: string,
    least: number,
): void {
    const { blocks, lastTick } = model;
    context.save();
    context.beginPath();
    context.rect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
    context.clip();
    const shapes: [number, number, number, number][] = [];
    for (const row of rows) {
        const left = frame.x(blocks.start[row]);
        const right = frame.x(Math.min(blocks.end[row], lastTick));
        const top = frame.y(blocks.offset[row]);
        const bottom = frame.y(blocks.offset[row] + blocks.size[row]);
        if (right < frame.left || left > frame.right || bottom < frame.top || top > frame.bottom) {
            continue;
        }
        shapes.push([
            left,
            top,
            Math.max(least, right - left),
            bottom - top - (bottom - top > 6 ? 0.7 : 0),
        ]);
    }
    // A shape is at least a visible line, centred on the block. Many lines in little room would
    // cover the free memory between them, so there they shrink towards their true height.
    const room = shapes.length > 0 ? extent(shapes) : 1;
    const smallest = Math.min(least, Math.max(0.2, (0.12 * room) / Math.max(1, shapes.length)));
    for (const shape of shapes) {
        const height = Math.max(smallest, shape[3]);
        shape[1] += (shape[3] - height) / 2;
        shape[3] = height;
    }
    if (smallest >= 2) {
        context.fillStyle = halo;
        context.globalAlpha = 0.7;
        for (const [x, y, w, h] of shapes) context.fillRect(x - 1, y - 1, w + 2, h + 2);
        context.globalAlpha = 1;
    }
    context.fillStyle = colour;
    for (const [x, y, w, h] of shapes) context.fillRect(x, y, w, h);
    context.restore();
}

export function outlineBlock(
    context: CanvasRenderingContext2D,
    frame: MapFrame,
    model: DeviceModel,
    row: number,
    colours: Colours,
): void {
    const { blocks, lastTick } = model;
    const [from, to] = [blocks.start[row], Math.min(blocks.end[row], lastTick)];
    outline(context, frame, [from, to], [blocks.offset[row], blocks.size[row]], colours);
}

/** Outlines a hole from the time since which it is free to the cursor. */
export function outlineHole(
    context: CanvasRenderingContext2D,
    frame: MapFrame,
    { since, offset, size }: Hole,
    tick: number,
    colours: Colours,
): void {
    outline(context, frame, [since, tick], [offset, size], colours);
}

function outline(
    context: CanvasRenderingContext2D,
    frame: MapFrame,
    [from, to]: [number, number],
    [offset, size]: [number, number],
    colours: Colours,
): void {
    context.save();
    context.beginPath();
    context.rect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
    context.clip();
    const [left, right] = [frame.x(from), frame.x(to)];
    const [top, bottom] = [frame.y(offset), frame.y(offset + size)];
    for (const [colour, width] of [
        [colours.halo, 4],
        [colours.mark, 2],
    ] as const) {
        context.strokeStyle = colour;
        context.lineWidth = width * colours.stroke;
        context.strokeRect(left, top, Math.max(3, right - left), Math.max(3, bottom - top));
    }
    context.restore();
    context.lineWidth = 1;
}

/** The column of addresses at the cursor, as it was drawn last. */
export interface Strip {
    of: readonly unknown[]; // what it depends on besides the heap
    heap: number; // of the heap's state
    inUse: LineCoverage[]; // by colour
}

export const noStrip = (): Strip => ({ of: [], heap: 0, inUse: [] });

/** Right of the map: the state of each address at the cursor's time. Changes `strip`. */
export function drawAtCursor(
    layer: Layer,
    frame: MapFrame,
    window: MapWindow,
    model: DeviceModel,
    heap: HeapState,
    { pins, kinds }: BlockLook,
    colours: Colours,
    strip: Strip,
): void {
    const { context, ratio } = layer;
    const left = frame.right + stripGap;
    const columns = Math.max(1, Math.round(stripWidth * ratio));
    const rows = Math.max(1, Math.round((frame.bottom - frame.top) * ratio));
    const { blocks, units } = model;
    const picture = pictureOf(layer, columns, rows);
    const of = [picture, window.a0, window.a1, kinds, colours];
    if (!same(of, strip.of)) {
        strip.of = of;
        strip.heap = 0;
        strip.inUse = Array.from(kinds?.names ?? "1", () => new LineCoverage(rows));
    }
    if (strip.heap !== heap.number) {
        const down = rows / (window.a1 - window.a0);
        const add = (to: LineCoverage, offset: number, size: number, sign: 1 | -1): void =>
            to.add((offset - window.a0) * down, (offset + size - window.a0) * down, sign);
        const [held, reserved] = [new LineCoverage(rows), new LineCoverage(rows)];
        for (const { unit, kept } of heap.units) {
            add(reserved, units.offset[unit], units.size[unit], 1);
            if (kept) add(held, units.offset[unit], units.size[unit], 1);
        }
        const { inUse } = strip;
        follow(
            heap,
            heap.live,
            strip.heap,
            () => inUse.forEach((line) => line.clear()),
            (live, sign) => {
                for (const block of live) {
                    const line = inUse[kinds ? kinds.of[block] : 0];
                    // A block of 0 bytes may have no kind.
                    if (line) add(line, blocks.offset[block], blocks.size[block], sign);
                }
            },
        );
        strip.heap = heap.number;
        const used = inUse.map((line) => line.shares());
        const [kept, all] = [held, reserved].map((line) => line.shares());
        const mixState = mixer(colours);
        const mixKinds = kinds && kindMixer(kinds, colours);
        const shares = [...used, all];
        const mix = (row: number, onHatch: boolean): number =>
            mixKinds?.(shares, row) ?? mixState(used[0][row], kept[row], all[row], onHatch);
        for (let row = 0; row < rows; ++row) {
            const plain = mix(row, false);
            const lined = mix(row, true);
            for (let column = 0; column < columns; ++column) {
                picture.pixels[row * columns + column] = isHatch(column, row) ? lined : plain;
            }
        }
    }
    context.putImageData(picture.image, Math.round(left * ratio), Math.round(frame.top * ratio));
    context.fillStyle = colours.pin;
    const shown = [...pins].filter(
        (block) => blocks.start[block] <= heap.tick && heap.tick < blocks.end[block],
    );
    const least = Math.min(
        2,
        Math.max(0.2, (0.12 * (frame.bottom - frame.top)) / Math.max(1, shown.length)),
    );
    for (const block of shown) {
        const top = Math.max(frame.top, frame.y(blocks.offset[block]));
        const bottom = Math.min(frame.bottom, frame.y(blocks.offset[block] + blocks.size[block]));
        if (bottom >= top) context.fillRect(left, top, stripWidth, Math.max(least, bottom - top));
    }
}
