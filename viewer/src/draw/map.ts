// Address x time. Few blocks: rectangles with edges. Many: shares of area per pixel from the exact
// events. While a large window moves: the planes that the file brings along.
import { CoverageGrid } from "../data/coverage";
import { addressAt, type DeviceModel } from "../data/model";
import type { WindowSweep } from "../data/sweep";
import { type Colours, hatched, rgb } from "./colours";
import { type Layer, font } from "./surface";
import { formatBytes, ticks } from "../data/format";

export const mapLeft = 64;
export const stripWidth = 18;  // the state at the cursor, at the right
const rectangleLimit = 4000;

export interface MapWindow { t0: number; t1: number; a0: number; a1: number }

export interface MapFrame {
    x: (tick: number) => number;
    y: (offset: number) => number;
    left: number;
    right: number;
    top: number;
    bottom: number;
}

export function mapFrame(layer: Layer, window: MapWindow): MapFrame {
    const left = mapLeft;
    const right = layer.width - stripWidth - 6;
    const top = 0;
    const bottom = layer.height;
    return {
        left, right, top, bottom,
        x: (tick) => left + ((tick - window.t0) / (window.t1 - window.t0)) * (right - left),
        y: (offset) => top + ((offset - window.a0) / (window.a1 - window.a0)) * (bottom - top),
    };
}

export type MapMode = "rectangles" | "exact shares" | "overview";

export function drawMap(layer: Layer, model: DeviceModel, window: MapWindow, sweep: WindowSweep | null, colours: Colours): MapMode {
    const { context, width, height } = layer;
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, height);
    const frame = mapFrame(layer, window);
    let mode: MapMode = "overview";
    if (sweep) mode = edgesVisible(frame, model, sweep) ? "rectangles" : "exact shares";
    if (mode === "rectangles") drawRectangles(layer, frame, model, window, sweep!, colours);
    else if (mode === "exact shares") drawShares(layer, frame, exactShares(layer, frame, model, window, sweep!), colours);
    else drawShares(layer, frame, overviewShares(layer, frame, model, window), colours);
    drawOffsets(layer, frame, model, window, colours);
    return mode;
}

// Edges help where blocks are pixels high. Thinner ones would only mix with what lies below them.
function edgesVisible(frame: MapFrame, model: DeviceModel, sweep: WindowSweep): boolean {
    if (sweep.blocks.length > rectangleLimit) return false;
    const { blocks } = model;
    let visible = 0;
    let thin = 0;
    for (const row of sweep.blocks) {
        const top = frame.y(blocks.offset[row]);
        const bottom = frame.y(blocks.offset[row] + blocks.size[row]);
        if (bottom < frame.top || top > frame.bottom) continue;
        ++visible;
        if (bottom - top < 3) ++thin;
    }
    return thin * 4 <= visible;
}

interface Shares { columns: number; rows: number; in_use: Float32Array; kept: Float32Array; reserved: Float32Array }

function pixelSize(layer: Layer, frame: MapFrame): [columns: number, rows: number] {
    return [Math.max(1, Math.round((frame.right - frame.left) * layer.ratio)), Math.max(1, Math.round((frame.bottom - frame.top) * layer.ratio))];
}

function exactShares(layer: Layer, frame: MapFrame, model: DeviceModel, window: MapWindow, sweep: WindowSweep): Shares {
    const [columns, rows] = pixelSize(layer, frame);
    const across = columns / (window.t1 - window.t0);
    const down = rows / (window.a1 - window.a0);
    const { blocks, units } = model;
    const grid = (): CoverageGrid => new CoverageGrid(columns, rows);
    const inUse = grid();
    const kept = grid();
    const reserved = grid();
    const add = (to: CoverageGrid, start: number, end: number, offset: number, size: number): void => {
        to.add((start - window.t0) * across, (end - window.t0) * across, (offset - window.a0) * down, (offset + size - window.a0) * down);
    };
    const end = Math.max(window.t1, model.lastTick);
    for (const row of sweep.blocks) add(inUse, blocks.start[row], Math.min(end, blocks.end[row]), blocks.offset[row], blocks.size[row]);
    for (let unit = 0; unit < units.count; ++unit) {
        if (units.start[unit] > window.t1 || units.end[unit] < window.t0) continue;
        add(reserved, units.start[unit], Math.min(end, units.end[unit]), units.offset[unit], units.size[unit]);
    }
    for (let i = 0; i < sweep.keptUnit.length; ++i) {
        const unit = sweep.keptUnit[i];
        add(kept, sweep.keptFrom[i], sweep.keptTo[i], units.offset[unit], units.size[unit]);
    }
    return { columns, rows, in_use: inUse.shares(), kept: kept.shares(), reserved: reserved.shares() };
}

function overviewShares(layer: Layer, frame: MapFrame, model: DeviceModel, window: MapWindow): Shares {
    const [columns, rows] = pixelSize(layer, frame);
    const { map, lastTick, head } = model;
    const shares: Shares = {
        columns, rows, in_use: new Float32Array(columns * rows), kept: new Float32Array(columns * rows),
        reserved: new Float32Array(columns * rows),
    };
    const cellOf = new Int32Array(columns);
    for (let column = 0; column < columns; ++column) {
        const tick = window.t0 + ((column + 0.5) / columns) * (window.t1 - window.t0);
        cellOf[column] = Math.max(0, Math.min(map.columns - 1, Math.floor((tick / lastTick) * map.columns)));
    }
    for (let row = 0; row < rows; ++row) {
        const offset = window.a0 + ((row + 0.5) / rows) * (window.a1 - window.a0);
        const from = Math.max(0, Math.min(map.rows - 1, Math.floor((offset / head.axis_bytes) * map.rows))) * map.columns;
        for (let column = 0; column < columns; ++column) {
            const at = row * columns + column;
            const cell = from + cellOf[column];
            shares.in_use[at] = map.in_use[cell] / 255;
            shares.kept[at] = map.kept[cell] / 255;
            shares.reserved[at] = map.reserved[cell] / 255;
        }
    }
    return shares;
}

function drawShares(layer: Layer, frame: MapFrame, shares: Shares, colours: Colours): void {
    const { columns, rows } = shares;
    const image = layer.context.createImageData(columns, rows);
    const [ground, use, hole, hatch, cached] = [colours.ground, colours.use, colours.hole, colours.hatch, colours.cached].map(rgb);
    const pixels = image.data;
    for (let row = 0; row < rows; ++row) {
        for (let column = 0; column < columns; ++column) {
            const at = row * columns + column;
            // Bytes of rounding in the planes must not make a share negative.
            const inUse = Math.min(1, shares.in_use[at]);
            const holes = Math.max(0, Math.min(1, shares.kept[at]) - inUse);
            const cache = Math.max(0, Math.min(1, shares.reserved[at]) - Math.max(inUse, shares.kept[at]));
            const nothing = Math.max(0, 1 - inUse - holes - cache);
            const lines = holes > 0.5 && (row + column) % 7 < 2 ? hatch : hole;
            const to = at * 4;
            for (let channel = 0; channel < 3; ++channel) {
                pixels[to + channel] = nothing * ground[channel] + inUse * use[channel] + holes * lines[channel] + cache * cached[channel];
            }
            pixels[to + 3] = 255;
        }
    }
    layer.context.putImageData(image, Math.round(frame.left * layer.ratio), Math.round(frame.top * layer.ratio));
}

function drawRectangles(layer: Layer, frame: MapFrame, model: DeviceModel, window: MapWindow, sweep: WindowSweep, colours: Colours): void {
    const { context } = layer;
    const { blocks, units } = model;
    const end = Math.max(window.t1, model.lastTick);
    context.save();
    context.beginPath();
    context.rect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
    context.clip();
    context.fillStyle = colours.ground;
    context.fillRect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
    const rectangle = (start: number, stop: number, offset: number, size: number, gap: number): void => {
        const left = Math.max(frame.left, frame.x(start));
        const right = Math.min(frame.right, frame.x(Math.min(end, stop)));
        const top = frame.y(offset);
        const height = frame.y(offset + size) - top;
        if (right < frame.left || left > frame.right || top > frame.bottom || top + height < frame.top) return;
        const edge = height > 3 && right - left > 3 ? gap : 0;
        context.fillRect(left, top, Math.max(0.3, right - left - edge), Math.max(0.1, height - edge));
    };
    context.fillStyle = colours.cached;
    for (let unit = 0; unit < units.count; ++unit) {
        if (units.start[unit] <= window.t1 && units.end[unit] >= window.t0) rectangle(units.start[unit], units.end[unit], units.offset[unit], units.size[unit], 0);
    }
    context.fillStyle = hatched(context, colours);
    for (let i = 0; i < sweep.keptUnit.length; ++i) {
        const unit = sweep.keptUnit[i];
        rectangle(sweep.keptFrom[i], sweep.keptTo[i], units.offset[unit], units.size[unit], 0);
    }
    const long = model.lastTick / 4;
    for (const row of sweep.blocks) {
        context.fillStyle = Math.min(end, blocks.end[row]) - blocks.start[row] > long ? colours.useLong : colours.use;
        rectangle(blocks.start[row], blocks.end[row], blocks.offset[row], blocks.size[row], 0.7);
    }
    context.restore();
}

function drawOffsets(layer: Layer, frame: MapFrame, model: DeviceModel, window: MapWindow, colours: Colours): void {
    const { context } = layer;
    context.font = font(11);
    context.textAlign = "right";
    context.fillStyle = colours.faint;
    const steps = ticks(window.a0, window.a1, Math.max(2, layer.height / 70), true);
    for (const at of steps) {
        context.fillText("+" + (at === 0 ? "0" : formatBytes(at)), frame.left - 6, Math.max(10, Math.min(layer.height - 3, frame.y(at) + 4)));
    }
    // Where the axis leaves out addresses that were never reserved.
    context.strokeStyle = colours.faint;
    context.globalAlpha = 0.35;
    const gaps = model.head.axis.filter(([, , offset]) => offset > window.a0 && offset < window.a1);
    if (gaps.length < layer.height / 6) {
        for (const [, , offset] of gaps) {
            context.beginPath();
            context.moveTo(frame.left, frame.y(offset));
            context.lineTo(frame.right, frame.y(offset));
            context.stroke();
        }
    }
    context.globalAlpha = 1;
}

/** "0x7f12…": where a point of the map lies in the process. */
export function addressText(model: DeviceModel, offset: number): string {
    return "0x" + addressAt(model.head, offset).toString(16);
}
