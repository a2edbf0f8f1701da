// Draws units that have more blocks than pixels. One pass adds up how much of each pixel the blocks
// cover, and each pixel mixes the colours by these shares. Thousands of rectangles would be slower
// and look no better.
import { LineCoverage } from "../data/coverage";
import type { UnitState } from "../data/heap";
import type { DeviceModel } from "../data/model";
import { type Kinds, mostKinds } from "../data/kinds";
import { type Colours, rgb } from "./colours";
import { kindColour } from "./kinds";
import { type Picture, pixelOf, sized } from "./pixels";

/**
 * The colours of blocks. Blocks that the verdict names stand out. The others show their kind; null
 * = their state.
 */
export interface BlockLook {
    pins: ReadonlySet<number>;
    kinds: Kinds | null;
}

export interface Box {
    x: number;
    y: number;
    width: number;
    height: number;
}

/** What a drawn unit needs. It is kept, because a frame should allocate little. */
interface Canvas {
    lines: LineCoverage[]; // one for each colour of blocks
    picture: Picture;
}

const canvases = new Map<string, Canvas>(); // by size
const mostCanvases = 32;

function canvasOf(columns: number, rows: number, lines: number): Canvas {
    const key = `${columns} ${rows}`;
    let known = canvases.get(key);
    if (!known) {
        if (canvases.size >= mostCanvases) canvases.clear();
        canvases.set(key, (known = { lines: [], picture: sized(undefined, columns, rows) }));
    }
    known.lines.length = Math.min(known.lines.length, lines);
    for (const line of known.lines) line.clear();
    while (known.lines.length < lines) known.lines.push(new LineCoverage(columns));
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
    { pins, kinds }: BlockLook,
    colours: Colours,
): void {
    const { blocks, units } = model;
    const left = Math.round(box.x * ratio);
    const top = Math.round(box.y * ratio);
    const columns = Math.max(1, Math.round((box.x + box.width) * ratio) - left);
    const rows = Math.max(1, Math.round((box.y + box.height) * ratio) - top);
    const ofBlocks = kinds
        ? Array.from({ length: mostKinds + 1 }, (_, kind) => kindColour(colours, kind))
        : [colours.use, colours.pending];
    const parts = [...ofBlocks, colours.pin].map(rgb);
    const pinned = parts.length - 1;
    const { lines, picture } = canvasOf(columns, rows, parts.length);
    const begin = units.offset[state.unit];
    const scale = columns / units.size[state.unit];
    const { offset, size, freed } = blocks;
    const somePins = pins.size > 0;
    for (const block of state.blocks) {
        const line =
            somePins && pins.has(block)
                ? pinned
                : kinds
                  ? kinds.of[block]
                  : Number(freed[block] <= tick);
        const from = offset[block] - begin;
        lines[line].add(from * scale, (from + size[block]) * scale);
    }
    const shares = lines.map((line) => line.shares());
    const [hole, hatch, cached] = [colours.hole, colours.hatch, colours.cached].map(rgb);
    const { image, pixels } = picture;
    for (let column = 0; column < columns; ++column) {
        let [used, red, green, blue] = [0, 0, 0, 0];
        for (let part = 0; part <= pinned; ++part) {
            const share = Math.max(0, shares[part][column]);
            used += share;
            red += share * parts[part][0];
            green += share * parts[part][1];
            blue += share * parts[part][2];
        }
        const free = Math.max(0, 1 - used);
        const mix = (empty: [number, number, number]): number =>
            pixelOf(
                Math.min(255, red + free * empty[0]),
                Math.min(255, green + free * empty[1]),
                Math.min(255, blue + free * empty[2]),
            );
        const plain = mix(state.kept ? hole : cached);
        const lined = state.kept && free > 0.5 ? mix(hatch) : plain;
        for (let row = 0; row < rows; ++row) {
            pixels[row * columns + column] = ((column + row) & 7) < 2 ? lined : plain;
        }
    }
    context.putImageData(image, left, top);
}
