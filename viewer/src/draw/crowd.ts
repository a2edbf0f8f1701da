// Draws units that have more blocks than pixels. One pass adds up how much of each pixel the blocks
// cover, and each pixel mixes the colours by these shares. Thousands of rectangles would be slower
// and look no better.
import { LineCoverage } from "../data/coverage";
import type { UnitState } from "../data/heap";
import type { DeviceModel } from "../data/model";
import { type Colours, rgb } from "./colours";
import { pixelOf } from "./pixels";

export interface Box {
    x: number;
    y: number;
    width: number;
    height: number;
}

/** What a drawn unit needs. It is kept, because a frame should allocate little. */
interface Canvas {
    used: LineCoverage;
    pending: LineCoverage;
    pins: LineCoverage;
    image: ImageData;
    pixels: Uint32Array;
}

const canvases = new Map<string, Canvas>(); // by size
const mostCanvases = 32;

function canvasOf(context: CanvasRenderingContext2D, columns: number, rows: number): Canvas {
    const key = `${columns} ${rows}`;
    let known = canvases.get(key);
    if (!known) {
        if (canvases.size >= mostCanvases) canvases.clear();
        const image = context.createImageData(columns, rows);
        known = {
            used: new LineCoverage(columns),
            pending: new LineCoverage(columns),
            pins: new LineCoverage(columns),
            image,
            pixels: new Uint32Array(image.data.buffer),
        };
        canvases.set(key, known);
    }
    for (const line of [known.used, known.pending, known.pins]) line.clear();
    return known;
}

/** Draws a unit with its blocks from left to right. */
export function drawCrowd(
    context: CanvasRenderingContext2D,
    ratio: number,
    model: DeviceModel,
    state: UnitState,
    box: Box,
    tick: number,
    namedPins: ReadonlySet<number>,
    colours: Colours,
): void {
    const { blocks, units } = model;
    const left = Math.round(box.x * ratio);
    const top = Math.round(box.y * ratio);
    const columns = Math.max(1, Math.round((box.x + box.width) * ratio) - left);
    const rows = Math.max(1, Math.round((box.y + box.height) * ratio) - top);
    const { used, pending, pins, image, pixels } = canvasOf(context, columns, rows);
    const begin = units.offset[state.unit];
    const scale = columns / units.size[state.unit];
    const { offset, size, freed } = blocks;
    const somePins = namedPins.size > 0;
    for (const block of state.blocks) {
        const line =
            somePins && namedPins.has(block) ? pins : freed[block] <= tick ? pending : used;
        const from = (offset[block] - begin) * scale;
        line.add(from, from + size[block] * scale);
    }
    const [hole, hatch, cached, use, waiting, pin] = [
        colours.hole,
        colours.hatch,
        colours.cached,
        colours.use,
        colours.pending,
        colours.pin,
    ].map(rgb);
    const shares = [used.shares(), pending.shares(), pins.shares()];
    for (let column = 0; column < columns; ++column) {
        const [inUse, isPending, pinned] = shares.map((line) => Math.max(0, line[column]));
        const free = Math.max(0, 1 - inUse - isPending - pinned);
        const mix = (empty: [number, number, number]): number => {
            const channel = (i: 0 | 1 | 2): number =>
                Math.min(
                    255,
                    free * empty[i] + inUse * use[i] + isPending * waiting[i] + pinned * pin[i],
                );
            return pixelOf(channel(0), channel(1), channel(2));
        };
        const plain = mix(state.kept ? hole : cached);
        const lined = state.kept && free > 0.5 ? mix(hatch) : plain;
        for (let row = 0; row < rows; ++row) {
            pixels[row * columns + column] = ((column + row) & 7) < 2 ? lined : plain;
        }
    }
    context.putImageData(image, left, top);
}
