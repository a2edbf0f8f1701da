// Where more blocks than pixels lie side by side: one pass over them adds up what they cover of each
// pixel, and the pixels are mixed by these shares. Rectangles would be drawn by the thousand for
// nothing to be seen.
import { LineCoverage } from "../data/coverage";
import type { UnitState } from "../data/heap";
import type { DeviceModel } from "../data/model";
import { type Colours, rgb } from "./colours";
import { pixelOf } from "./pixels";

export interface Box { x: number; y: number; width: number; height: number }

interface Lines { used: LineCoverage; pending: LineCoverage; pins: LineCoverage; marked: LineCoverage }
const lines = new Map<number, Lines>();

function linesOf(length: number): Lines {
    let known = lines.get(length);
    if (!known) {
        if (lines.size > 64) lines.clear();
        const line = (): LineCoverage => new LineCoverage(length);
        lines.set(length, (known = { used: line(), pending: line(), pins: line(), marked: line() }));
    }
    for (const line of [known.used, known.pending, known.pins, known.marked]) line.clear();
    return known;
}

/** A unit with its blocks from left to right. */
export function drawCrowd(
    context: CanvasRenderingContext2D, ratio: number, model: DeviceModel, state: UnitState, box: Box, tick: number,
    look: { isPin: (block: number) => boolean; isMarked: (block: number) => boolean }, colours: Colours,
): void {
    const { blocks, units } = model;
    const left = Math.round(box.x * ratio);
    const top = Math.round(box.y * ratio);
    const columns = Math.max(1, Math.round((box.x + box.width) * ratio) - left);
    const rows = Math.max(1, Math.round((box.y + box.height) * ratio) - top);
    const { used, pending, pins, marked } = linesOf(columns);
    const begin = units.offset[state.unit];
    const scale = columns / units.size[state.unit];
    for (const block of state.blocks) {
        const line = look.isPin(block) ? pins : look.isMarked(block) ? marked : blocks.freed[block] <= tick ? pending : used;
        const from = (blocks.offset[block] - begin) * scale;
        line.add(from, from + blocks.size[block] * scale);
    }
    const image = context.createImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    const [hole, hatch, cached, use, waiting, pin, mark] = [colours.hole, colours.hatch, colours.cached, colours.use, colours.pending, colours.pin, colours.mark].map(rgb);
    const shares = [used, pending, pins, marked].map((line) => line.shares());
    for (let column = 0; column < columns; ++column) {
        const [inUse, isPending, pinned, isMarked] = shares.map((line) => Math.max(0, line[column]));
        const free = Math.max(0, 1 - inUse - isPending - pinned - isMarked);
        const mix = (empty: [number, number, number]): number => {
            const channel = (i: 0 | 1 | 2): number => Math.min(255, free * empty[i] + inUse * use[i] + isPending * waiting[i] + pinned * pin[i] + isMarked * mark[i]);
            return pixelOf(channel(0), channel(1), channel(2));
        };
        const plain = mix(state.kept ? hole : cached);
        const lined = state.kept && free > 0.5 ? mix(hatch) : plain;
        for (let row = 0; row < rows; ++row) pixels[row * columns + column] = ((column + row) & 7) < 2 ? lined : plain;
    }
    context.putImageData(image, left, top);
}
