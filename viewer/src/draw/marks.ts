// What lies above the map: the blocks that pin, search hits, the selected block, and the column of
// addresses at the cursor.
import type { CoverageGrid } from "../data/coverage";
import type { HeapState } from "../data/heap";
import type { DeviceModel } from "../data/model";
import type { Colours } from "./colours";
import { type MapFrame, stripWidth } from "./map";
import { drawGrids, emptyGrids, type MapWindow } from "./shares";
import type { Layer } from "./surface";

// The height that the shapes are spread over.
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
    context: CanvasRenderingContext2D, frame: MapFrame, model: DeviceModel, rows: Iterable<number>,
    colour: string, halo: string, least: number,
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
        if (right < frame.left || left > frame.right || bottom < frame.top || top > frame.bottom) continue;
        shapes.push([left, top, Math.max(least, right - left), bottom - top - (bottom - top > 6 ? 0.7 : 0)]);
    }
    // At least a visible line, centred on the block. Many lines in little room would cover the very
    // holes that they keep open: there they shrink towards their true height.
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

export function outlineBlock(context: CanvasRenderingContext2D, frame: MapFrame, model: DeviceModel, row: number, colours: Colours): void {
    const { blocks, lastTick } = model;
    context.save();
    context.beginPath();
    context.rect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
    context.clip();
    const left = frame.x(blocks.start[row]);
    const right = frame.x(Math.min(blocks.end[row], lastTick));
    const top = frame.y(blocks.offset[row]);
    const bottom = frame.y(blocks.offset[row] + blocks.size[row]);
    for (const [colour, width] of [[colours.halo, 4], [colours.mark, 2]] as const) {
        context.strokeStyle = colour;
        context.lineWidth = width;
        context.strokeRect(left, top, Math.max(3, right - left), Math.max(3, bottom - top));
    }
    context.restore();
    context.lineWidth = 1;
}

/** Right of the map, what lies at each address at the cursor's time. */
export function drawAtCursor(
    layer: Layer, frame: MapFrame, window: MapWindow, model: DeviceModel, heap: HeapState, isPin: (block: number) => boolean, colours: Colours,
): void {
    const { context, ratio } = layer;
    const left = frame.right + 6;
    const columns = Math.max(1, Math.round(stripWidth * ratio));
    const rows = Math.max(1, Math.round((frame.bottom - frame.top) * ratio));
    const grids = emptyGrids(layer, columns, rows);
    const down = rows / (window.a1 - window.a0);
    const { blocks, units } = model;
    const add = (to: CoverageGrid, offset: number, size: number): void =>
        to.add(0, columns, (offset - window.a0) * down, (offset + size - window.a0) * down);
    for (const { unit, kept } of heap.units) {
        add(grids.reserved, units.offset[unit], units.size[unit]);
        if (kept) add(grids.kept, units.offset[unit], units.size[unit]);
    }
    const pins: number[] = [];
    for (const block of heap.live) {
        add(grids.inUse, blocks.offset[block], blocks.size[block]);
        if (isPin(block)) pins.push(block);
    }
    drawGrids(layer, Math.round(left * ratio), Math.round(frame.top * ratio), grids, colours);
    context.fillStyle = colours.pin;
    const least = Math.min(2, Math.max(0.2, (0.12 * (frame.bottom - frame.top)) / Math.max(1, pins.length)));
    for (const block of pins) {
        const top = Math.max(frame.top, frame.y(blocks.offset[block]));
        const bottom = Math.min(frame.bottom, frame.y(blocks.offset[block] + blocks.size[block]));
        if (bottom >= top) context.fillRect(left, top, stripWidth, Math.max(least, bottom - top));
    }
}
