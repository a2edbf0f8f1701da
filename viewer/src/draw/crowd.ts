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

/** The colours of a unit's pixels. Rows differ only where free memory is hatched. */
interface Columns {
    of: readonly unknown[]; // what they depend on besides the unit's state
    plain: Uint32Array;
    lined: Uint32Array;
}

// While the cursor moves, most units keep their state.
const columnsOfState = new WeakMap<UnitState, Columns>();

// By size or number of pixels, and kept, because a frame should allocate little.
const pictures = new Map<string, Picture>();
const lineSets = new Map<number, LineCoverage[]>();
const mostKept = 32;

function pictureOf(columns: number, rows: number): Picture {
    const key = `${columns} ${rows}`;
    if (!pictures.has(key) && pictures.size >= mostKept) pictures.clear();
    const picture = sized(pictures.get(key), columns, rows);
    pictures.set(key, picture);
    return picture;
}

function linesOf(columns: number, count: number): LineCoverage[] {
    if (!lineSets.has(columns) && lineSets.size >= mostKept) lineSets.clear();
    const lines = lineSets.get(columns) ?? [];
    lineSets.set(columns, lines);
    lines.length = Math.min(lines.length, count);
    for (const line of lines) line.clear();
    while (lines.length < count) lines.push(new LineCoverage(columns));
    return lines;
}

/** Draws a unit with its blocks from left to right. */
export function drawCrowd(
    context: CanvasRenderingContext2D,
    ratio: number,
    model: DeviceModel,
    state: UnitState,
    box: Box,
    tick: number,
    look: BlockLook,
    colours: Colours,
): void {
    const left = Math.round(box.x * ratio);
    const top = Math.round(box.y * ratio);
    const columns = Math.max(1, Math.round((box.x + box.width) * ratio) - left);
    const rows = Math.max(1, Math.round((box.y + box.height) * ratio) - top);
    const { freed, end } = model.blocks;
    // The time changes colours only if blocks can wait for a stream.
    const of = [columns, look.pins, look.kinds, colours, freed === end ? 0 : tick];
    let known = columnsOfState.get(state);
    if (!known?.of.every((value, i) => value === of[i])) {
        known = { of, ...mixed(model, state, columns, tick, look, colours) };
        columnsOfState.set(state, known);
    }
    const { plain, lined } = known;
    const { image, pixels } = pictureOf(columns, rows);
    for (let row = 0; row < rows; ++row) {
        for (let column = 0; column < columns; ++column) {
            pixels[row * columns + column] =
                ((column + row) & 7) < 2 ? lined[column] : plain[column];
        }
    }
    context.putImageData(image, left, top);
}

function mixed(
    model: DeviceModel,
    state: UnitState,
    columns: number,
    tick: number,
    { pins, kinds }: BlockLook,
    colours: Colours,
): Pick<Columns, "plain" | "lined"> {
    const { blocks, units } = model;
    const ofBlocks = kinds
        ? Array.from({ length: mostKinds + 1 }, (_, kind) => kindColour(colours, kind))
        : [colours.use, colours.pending];
    const parts = [...ofBlocks, colours.pin].map(rgb);
    const pinned = parts.length - 1;
    const lines = linesOf(columns, parts.length);
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
    const [plain, lined] = [new Uint32Array(columns), new Uint32Array(columns)];
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
        plain[column] = mix(state.kept ? hole : cached);
        lined[column] = state.kept && free > 0.5 ? mix(hatch) : plain[column];
    }
    return { plain, lined };
}
