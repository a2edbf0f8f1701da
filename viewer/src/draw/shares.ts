// Draws the map where blocks are smaller than pixels: each pixel mixes the colours of its contents
// by area. The shares come from the overview in the file or from the exact events of a window.
import { CoverageGrid, eachRow } from "../data/coverage";
import type { DeviceModel, MapPlanes } from "../data/model";
import { each } from "../data/steps";
import type { WindowSweep } from "../data/sweep";
import { type Colours, rgb } from "./colours";
import { type Picture, pictureOf, pixelOf, pixelOfColour } from "./pixels";
import type { Layer } from "./surface";

export interface MapWindow {
    t0: number;
    t1: number;
    a0: number;
    a1: number;
}

/** More than a half. Shares that were summed up in different ways differ by rounding. */
export const mostly = 0.5 + 1e-9;

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
        const lines = onHatch && holes > mostly ? hatch : hole;
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

/** The pixels of an overview's cells, made when one is drawn first. 0 = not made yet. */
interface Cells {
    colours: Colours;
    plain: Uint32Array;
    hatched: Uint32Array;
    make: (cell: number, onHatch: boolean) => number;
}
const cellsOf = new WeakMap<MapPlanes, Cells>();

function cellPixels(map: MapPlanes, colours: Colours): Cells {
    const known = cellsOf.get(map);
    if (known?.colours === colours) return known;
    const count = map.columns * map.rows;
    const mix = mixer(colours);
    const cells: Cells = {
        colours,
        plain: new Uint32Array(count),
        hatched: new Uint32Array(count),
        make: (cell, onHatch) =>
            ((onHatch ? cells.hatched : cells.plain)[cell] = mix(
                map.in_use[cell] / 255,
                map.kept[cell] / 255,
                map.reserved[cell] / 255,
                onHatch,
            )),
    };
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
    const { plain, hatched, make } = cellPixels(map, colours);
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
        let phase = row % hatchPeriod;
        for (let column = 0; column < columns; ++column) {
            const at = from + cellOf[column];
            const onHatch = phase < hatchWidth;
            pixels[row * columns + column] = (onHatch ? hatched : plain)[at] || make(at, onHatch);
            if (++phase === hatchPeriod) phase = 0;
        }
    }
    layer.context.putImageData(image, left, top);
}

const gridsOf = new WeakMap<Picture, CoverageGrid[]>();

/** Empty grids of the picture's size. They are reused while the picture's size stays. */
export function* emptyGrids(picture: Picture, count: number): Generator<void, CoverageGrid[]> {
    let grids = gridsOf.get(picture);
    if (!grids) gridsOf.set(picture, (grids = []));
    for (let at = 0; at < count; ++at) {
        if (at < grids.length) grids[at].clear();
        else grids.push(new CoverageGrid(picture.columns, picture.rows));
        yield;
    }
    return grids.slice(0, count);
}

/** Adds blocks or units, given by their ticks and their bytes on the axis, to grids of a window. */
export type Adder = (
    grid: CoverageGrid,
    start: number,
    end: number,
    offset: number,
    size: number,
) => void;

export function adder({ columns, rows }: Picture, window: MapWindow): Adder {
    const across = columns / (window.t1 - window.t0);
    const down = rows / (window.a1 - window.a0);
    return (grid, start, end, offset, size) =>
        grid.add(
            (start - window.t0) * across,
            (end - window.t0) * across,
            (offset - window.a0) * down,
            (offset + size - window.a0) * down,
        );
}

/** Adds the units that exist at some time of the window. */
export function* addUnits(
    grid: CoverageGrid,
    add: Adder,
    { units }: DeviceModel,
    window: MapWindow,
): Generator<void, void> {
    yield* each(units.count, (unit) => {
        if (units.start[unit] <= window.t1 && units.end[unit] >= window.t0) {
            add(grid, units.start[unit], units.end[unit], units.offset[unit], units.size[unit]);
        }
    });
}

/** Draws the exact events of a window, in steps. */
export function* exactShares(
    picture: Picture,
    model: DeviceModel,
    window: MapWindow,
    sweep: WindowSweep,
    colours: Colours,
): Generator<void, void> {
    const { blocks, units } = model;
    const grids = yield* emptyGrids(picture, 3);
    const [inUse, kept, reserved] = grids;
    const add = adder(picture, window);
    yield* each(sweep.blocks.length, (at) => {
        const row = sweep.blocks[at];
        add(inUse, blocks.start[row], blocks.end[row], blocks.offset[row], blocks.size[row]);
    });
    yield* addUnits(reserved, add, model, window);
    yield* each(sweep.keptUnit.length, (at) => {
        const unit = sweep.keptUnit[at];
        add(kept, sweep.keptFrom[at], sweep.keptTo[at], units.offset[unit], units.size[unit]);
    });
    const { columns, pixels } = picture;
    const mix = mixer(colours);
    yield* eachRow(grids, (row, [inUseShares, keptShares, reservedShares]) => {
        let at = row * columns;
        let phase = row % hatchPeriod;
        // Neighbouring cells are mostly alike, so the last mix is reused.
        let [used, held, all, plain, lined] = [-1, -1, -1, 0, 0];
        for (let column = 0; column < columns; ++column) {
            if (
                Math.abs(inUseShares[column] - used) +
                    Math.abs(keptShares[column] - held) +
                    Math.abs(reservedShares[column] - all) >
                alike
            ) {
                used = inUseShares[column];
                held = keptShares[column];
                all = reservedShares[column];
                plain = mix(used, held, all, false);
                lined = held - used > 0.5 ? mix(used, held, all, true) : plain;
            }
            pixels[at++] = phase < hatchWidth ? lined : plain;
            if (++phase === hatchPeriod) phase = 0;
        }
    });
}
