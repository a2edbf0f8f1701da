// Draws units that have more blocks than pixels. One pass adds up how much of each pixel the blocks
// cover, and each pixel mixes the colours by these shares. Thousands of rectangles would be slower
// and look no better.
import { LineCoverage } from "../data/coverage";
import { follow, type UnitState } from "../data/heap";
import type { DeviceModel } from "../data/model";
import { type Kinds, mostKinds } from "../data/kinds";
import { type Colours, rgb } from "./colours";
import { kindColour } from "./kinds";
import { type Picture, pixelOf, sized } from "./pixels";
import { same } from "./same";
import { mostly } from "./shares";

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
    number: number; // of the unit's state
    lines: LineCoverage[]; // by colour
    plain: Uint32Array; // both may be longer than needed
    lined: Uint32Array;
}

// Indexed by UnitState.line. While the cursor moves, most units keep their state, and the others
// change little.
const columnsOf = new WeakMap<object, Columns>();

// By size, and kept, because a frame should allocate little.
const pictures = new Map<string, Picture>();
const mostKept = 32;

function pictureOf(columns: number, rows: number): Picture {
    const key = `${columns} ${rows}`;
    if (!pictures.has(key) && pictures.size >= mostKept) pictures.clear();
    const picture = sized(pictures.get(key), columns, rows);
    pictures.set(key, picture);
    return picture;
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
    // Not of the place, so that a segment that moves keeps its picture.
    const columns = Math.max(1, Math.round(box.width * ratio));
    const rows = Math.max(1, Math.round((box.y + box.height) * ratio) - top);
    const { freed, end } = model.blocks;
    // The time changes colours only if blocks can wait for a stream.
    const waiting = freed === end ? 0 : tick;
    const of = [columns, state.kept, look.pins, look.kinds, colours, waiting];
    const { plain, lined } = columnsAt(model, state, of, columns, tick, look, colours);
    const { image, pixels } = pictureOf(columns, rows);
    for (let row = 0; row < rows; ++row) {
        for (let column = 0; column < columns; ++column) {
            pixels[row * columns + column] =
                ((column + row) & 7) < 2 ? lined[column] : plain[column];
        }
    }
    context.putImageData(image, left, top);
}

function columnsAt(
    model: DeviceModel,
    state: UnitState,
    of: readonly unknown[],
    columns: number,
    tick: number,
    { pins, kinds }: BlockLook,
    colours: Colours,
): Columns {
    const { blocks, units } = model;
    let known = columnsOf.get(state.line);
    const isSame = known && same(known.of, of);
    if (known && isSame && known.number === state.number) return known;
    const ofBlocks = kinds
        ? Array.from({ length: mostKinds + 1 }, (_, kind) => kindColour(colours, kind))
        : [colours.use, colours.pending];
    const parts = [...ofBlocks, colours.pin].map(rgb);
    if (!known || !isSame) {
        known ??= {
            of,
            number: 0,
            lines: [],
            plain: new Uint32Array(0),
            lined: new Uint32Array(0),
        };
        columnsOf.set(state.line, known);
        known.of = of;
        known.number = 0;
        known.lines.length = Math.min(known.lines.length, parts.length);
        while (known.lines.length < parts.length) known.lines.push(new LineCoverage(columns));
        if (known.plain.length < columns) {
            known.plain = new Uint32Array(Math.ceil(1.25 * columns));
            known.lined = new Uint32Array(known.plain.length);
        }
    }
    const { lines } = known;
    const pinned = parts.length - 1;
    const begin = units.offset[state.unit];
    const scale = columns / units.size[state.unit];
    const { offset, size, freed, end } = blocks;
    const canWait = freed !== end;
    const somePins = pins.size > 0;
    follow(
        state,
        state.blocks,
        known.number,
        () => lines.forEach((line) => line.clear(columns)),
        (rows, sign) => {
            for (const block of rows) {
                const line =
                    somePins && pins.has(block)
                        ? pinned
                        : kinds
                          ? kinds.of[block]
                          : Number(canWait && freed[block] <= tick);
                const from = offset[block] - begin;
                lines[line].add(from * scale, (from + size[block]) * scale, sign);
            }
        },
    );
    known.number = state.number;
    mix(known, state, parts, kinds !== null, colours);
    return known;
}

// Mixes the colours of the pixels that changed.
function mix(
    { lines, plain, lined }: Columns,
    state: UnitState,
    parts: [red: number, green: number, blue: number][],
    byKind: boolean,
    colours: Colours,
): void {
    const changed = lines.map((line) => line.update());
    const shares = lines.map((line) => line.shares());
    const hatched = state.kept && !byKind;
    const empty = rgb(byKind ? colours.freeKind : state.kept ? colours.hole : colours.cached);
    const hatch = rgb(colours.hatch);
    const behind = Math.max(...changed.map(([, end]) => end));
    for (let column = Math.min(...changed.map(([first]) => first)); column < behind; ++column) {
        let [used, red, green, blue] = [0, 0, 0, 0];
        for (let part = 0; part < parts.length; ++part) {
            const share = Math.max(0, shares[part][column]);
            used += share;
            red += share * parts[part][0];
            green += share * parts[part][1];
            blue += share * parts[part][2];
        }
        const free = Math.max(0, 1 - used);
        const over = (ground: [number, number, number]): number =>
            pixelOf(
                Math.min(255, red + free * ground[0]),
                Math.min(255, green + free * ground[1]),
                Math.min(255, blue + free * ground[2]),
            );
        plain[column] = over(empty);
        lined[column] = hatched && free > mostly ? over(hatch) : plain[column];
    }
}
