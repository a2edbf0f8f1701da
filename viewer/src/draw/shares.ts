// Draws the map where blocks are smaller than pixels: each pixel mixes the colours of its contents
// by area. The shares come from the overview in the file or from the exact events of a window.
import { CoverageGrid } from "../data/coverage";
import type { DeviceModel, MapPlanes } from "../data/model";
import type { WindowSweep } from "../data/sweep";
import { type Colours, rgb } from "./colours";
import { pictureOf, pixelOf, pixelOfColour } from "./pixels";
import type { Layer } from "./surface";

export interface MapWindow {
    t0: number;
    t1: number;
    a0: number;
    a1: number;
}

/** Mixes colours by shares from 0 to 1. Small rounding errors in the shares do no harm. */
export function mixer(
    colours: Colours,
): (inUse: number, kept: number, reserved: number, onHatch: boolean) => number {
    const [ground, use, hole, hatch, cached] = [
        colours.ground,
        colours.use,
        colours.hole,
        colours.hatch,
        colours.cached,
    ].map(rgb);
    const nothingPixel = pixelOfColour(colours.ground);
    const usePixel = pixelOfColour(colours.use);
    return (inUse, kept, reserved, onHatch) => {
        if (inUse >= 1) return usePixel;
        if (inUse <= 0 && kept <= 0 && reserved <= 0) return nothingPixel;
        const used = Math.max(0, inUse);
        const holes = Math.max(0, Math.min(1, kept) - used);
        const cache = Math.max(0, Math.min(1, reserved) - Math.max(used, kept));
        const nothing = Math.max(0, 1 - used - holes - cache);
        const lines = onHatch && holes > 0.5 ? hatch : hole;
        return pixelOf(
            nothing * ground[0] + used * use[0] + holes * lines[0] + cache * cached[0],
            nothing * ground[1] + used * use[1] + holes * lines[1] + cache * cached[1],
            nothing * ground[2] + used * use[2] + holes * lines[2] + cache * cached[2],
        );
    };
}

const hatchPeriod = 7;
const hatchWidth = 2;
const alike = 0.001; // a difference in shares that nobody sees

export function isHatch(column: number, row: number): boolean {
    return (column + row) % hatchPeriod < hatchWidth;
}

interface Cells {
    colours: Colours;
    plain: Uint32Array;
    hatched: Uint32Array;
}
const cellsOf = new WeakMap<MapPlanes, Cells>();

function cellPixels(map: MapPlanes, colours: Colours): Cells {
    const known = cellsOf.get(map);
    if (known?.colours === colours) return known;
    const count = map.columns * map.rows;
    const cells = { colours, plain: new Uint32Array(count), hatched: new Uint32Array(count) };
    const mix = mixer(colours);
    for (let cell = 0; cell < count; ++cell) {
        const [inUse, kept, reserved] = [
            map.in_use[cell] / 255,
            map.kept[cell] / 255,
            map.reserved[cell] / 255,
        ];
        cells.plain[cell] = mix(inUse, kept, reserved, false);
        cells.hatched[cell] = mix(inUse, kept, reserved, true);
    }
    cellsOf.set(map, cells);
    return cells;
}

/** Draws the overview of the whole trace: each pixel takes the cell at its middle. */
export function drawOverview(
    layer: Layer,
    left: number,
    top: number,
    columns: number,
    rows: number,
    model: DeviceModel,
    window: MapWindow,
    colours: Colours,
): void {
    const { map, lastTick, head } = model;
    const { image, pixels } = pictureOf(layer, columns, rows);
    const { plain, hatched } = cellPixels(map, colours);
    const cell = (position: number, count: number): number =>
        Math.max(0, Math.min(count - 1, Math.floor(position * count)));
    const cellOf = new Int32Array(columns);
    for (let column = 0; column < columns; ++column) {
        cellOf[column] = cell(
            (window.t0 + ((column + 0.5) / columns) * (window.t1 - window.t0)) / lastTick,
            map.columns,
        );
    }
    for (let row = 0; row < rows; ++row) {
        const from =
            cell(
                (window.a0 + ((row + 0.5) / rows) * (window.a1 - window.a0)) / head.axis_bytes,
                map.rows,
            ) * map.columns;
        let at = row * columns;
        let phase = row % hatchPeriod;
        for (let column = 0; column < columns; ++column) {
            pixels[at++] = (phase < hatchWidth ? hatched : plain)[from + cellOf[column]];
            if (++phase === hatchPeriod) phase = 0;
        }
    }
    layer.context.putImageData(image, left, top);
}

interface Grids {
    inUse: CoverageGrid;
    kept: CoverageGrid;
    reserved: CoverageGrid;
}
const gridsOf = new WeakMap<HTMLCanvasElement, Grids>();

function emptyGrids(layer: Layer, columns: number, rows: number): Grids {
    const known = gridsOf.get(layer.canvas);
    if (known?.inUse.columns === columns && known.inUse.rows === rows) {
        for (const grid of Object.values(known) as CoverageGrid[]) grid.clear();
        return known;
    }
    const grids = {
        inUse: new CoverageGrid(columns, rows),
        kept: new CoverageGrid(columns, rows),
        reserved: new CoverageGrid(columns, rows),
    };
    gridsOf.set(layer.canvas, grids);
    return grids;
}

function drawGrids(layer: Layer, left: number, top: number, grids: Grids, colours: Colours): void {
    const { columns, rows } = grids.inUse;
    const { image, pixels } = pictureOf(layer, columns, rows);
    const mix = mixer(colours);
    const inUse = new Float64Array(columns);
    const kept = new Float64Array(columns);
    const reserved = new Float64Array(columns);
    for (let row = 0; row < rows; ++row) {
        grids.inUse.sumRow(row, inUse);
        grids.kept.sumRow(row, kept);
        grids.reserved.sumRow(row, reserved);
        let at = row * columns;
        let phase = row % hatchPeriod;
        // Neighbouring cells are mostly alike, so the last mix is reused.
        let [used, held, all, plain, lined] = [-1, -1, -1, 0, 0];
        for (let column = 0; column < columns; ++column) {
            if (
                Math.abs(inUse[column] - used) +
                    Math.abs(kept[column] - held) +
                    Math.abs(reserved[column] - all) >
                alike
            ) {
                used = inUse[column];
                held = kept[column];
                all = reserved[column];
                plain = mix(used, held, all, false);
                lined = held - used > 0.5 ? mix(used, held, all, true) : plain;
            }
            pixels[at++] = phase < hatchWidth ? lined : plain;
            if (++phase === hatchPeriod) phase = 0;
        }
    }
    layer.context.putImageData(image, left, top);
}

/** Draws the exact events of a window. */
export function drawExact(
    layer: Layer,
    left: number,
    top: number,
    columns: number,
    rows: number,
    model: DeviceModel,
    window: MapWindow,
    sweep: WindowSweep,
    colours: Colours,
): void {
    const across = columns / (window.t1 - window.t0);
    const down = rows / (window.a1 - window.a0);
    const { blocks, units } = model;
    const grids = emptyGrids(layer, columns, rows);
    const add = (
        to: CoverageGrid,
        start: number,
        end: number,
        offset: number,
        size: number,
    ): void => {
        to.add(
            (start - window.t0) * across,
            (end - window.t0) * across,
            (offset - window.a0) * down,
            (offset + size - window.a0) * down,
        );
    };
    const last = Math.max(window.t1, model.lastTick);
    for (const row of sweep.blocks) {
        add(
            grids.inUse,
            blocks.start[row],
            Math.min(last, blocks.end[row]),
            blocks.offset[row],
            blocks.size[row],
        );
    }
    for (let unit = 0; unit < units.count; ++unit) {
        if (units.start[unit] > window.t1 || units.end[unit] < window.t0) continue;
        add(
            grids.reserved,
            units.start[unit],
            Math.min(last, units.end[unit]),
            units.offset[unit],
            units.size[unit],
        );
    }
    for (let i = 0; i < sweep.keptUnit.length; ++i) {
        const unit = sweep.keptUnit[i];
        add(grids.kept, sweep.keptFrom[i], sweep.keptTo[i], units.offset[unit], units.size[unit]);
    }
    drawGrids(layer, left, top, grids, colours);
}
