// What lies above the map: the blocks that pin, search hits, the selected block, the cursor and the
// column of addresses at the cursor.
import type { HeapState } from "../data/heap";
import type { DeviceModel } from "../data/model";
import { drawCursor } from "./chart";
import type { Colours } from "./colours";
import { hatched } from "./colours";
import { type MapFrame, stripWidth } from "./map";

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

/** Cursor line and, right of the map, what lies at each address at that time. */
export function drawAtCursor(
    context: CanvasRenderingContext2D, frame: MapFrame, model: DeviceModel, heap: HeapState,
    isPin: (block: number) => boolean, colours: Colours,
): void {
    const x = frame.x(heap.tick);
    if (x >= frame.left && x <= frame.right) drawCursor(context, x, frame.top, frame.bottom, colours);
    const left = frame.right + 6;
    context.fillStyle = colours.ground;
    context.fillRect(left, frame.top, stripWidth, frame.bottom - frame.top);
    const { blocks, units } = model;
    const bar = (offset: number, size: number, least: number): void => {
        const top = frame.y(offset);
        const bottom = frame.y(offset + size);
        if (bottom < frame.top || top > frame.bottom) return;
        context.fillRect(left, Math.max(frame.top, top), stripWidth, Math.max(least, Math.min(frame.bottom, bottom) - Math.max(frame.top, top)));
    };
    const hatch = hatched(context, colours);
    for (const state of heap.units) {
        context.fillStyle = state.kept ? hatch : colours.cached;
        bar(units.offset[state.unit], units.size[state.unit], 0.5);
    }
    const pins: number[] = [];
    context.fillStyle = colours.use;
    for (const block of heap.live) {
        if (isPin(block)) pins.push(block);
        else bar(blocks.offset[block], blocks.size[block], 0.2);
    }
    context.fillStyle = colours.pin;
    const least = Math.min(2, Math.max(0.2, (0.12 * (frame.bottom - frame.top)) / Math.max(1, pins.length)));
    for (const block of pins) bar(blocks.offset[block], blocks.size[block], least);
}
