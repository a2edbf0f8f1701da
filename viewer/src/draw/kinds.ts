// Draws the map coloured by kind of block (age, phase, stream, pool, stack) instead of by state.
// Free memory is pale, whatever keeps it.
import { CoverageGrid } from "../data/coverage";
import { type Kinds, mostKinds } from "../data/kinds";
import type { DeviceModel } from "../data/model";
import type { WindowSweep } from "../data/sweep";
import { type Colours, rgb } from "./colours";
import { drawAxes, mapFrame } from "./map";
import type { MapWindow } from "./shares";
import type { Layer } from "./surface";

const mostCells = 400_000; // cells of each kind's grid

export function kindColour(colours: Colours, kind: number): string {
    return kind >= mostKinds ? colours.otherKind : colours.kinds[kind];
}

export function drawKinds(
    layer: Layer,
    model: DeviceModel,
    window: MapWindow,
    sweep: WindowSweep,
    kinds: Kinds,
    colours: Colours,
): void {
    const { context, width, height } = layer;
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, height);
    const frame = mapFrame(layer, window);
    const full = (frame.right - frame.left) * (frame.bottom - frame.top);
    const step = Math.max(1 / layer.ratio, Math.sqrt(full / mostCells));
    const columns = Math.max(1, Math.round((frame.right - frame.left) / step));
    const rows = Math.max(1, Math.round((frame.bottom - frame.top) / step));
    const across = columns / (window.t1 - window.t0);
    const down = rows / (window.a1 - window.a0);
    const { blocks, units } = model;
    const end = Math.max(window.t1, model.lastTick);
    const add = (
        grid: CoverageGrid,
        start: number,
        stop: number,
        offset: number,
        size: number,
    ): void =>
        grid.add(
            (start - window.t0) * across,
            (Math.min(end, stop) - window.t0) * across,
            (offset - window.a0) * down,
            (offset + size - window.a0) * down,
        );
    const reserved = new CoverageGrid(columns, rows);
    for (let unit = 0; unit < units.count; ++unit) {
        if (units.start[unit] <= window.t1 && units.end[unit] >= window.t0) {
            add(reserved, units.start[unit], units.end[unit], units.offset[unit], units.size[unit]);
        }
    }
    const grids: (CoverageGrid | undefined)[] = [];
    for (const row of sweep.blocks) {
        const kind = kinds.of[row];
        const grid = (grids[kind] ??= new CoverageGrid(columns, rows));
        add(grid, blocks.start[row], blocks.end[row], blocks.offset[row], blocks.size[row]);
    }
    const image = context.createImageData(columns, rows);
    const sums = [0, 1, 2].map(() => new Float32Array(columns * rows));
    const used = new Float32Array(columns * rows);
    grids.forEach((grid, kind) => {
        if (!grid) return;
        const shares = grid.shares();
        const colour = rgb(kindColour(colours, kind));
        for (let at = 0; at < shares.length; ++at) {
            if (shares[at] <= 0) continue;
            used[at] += shares[at];
            for (let channel = 0; channel < 3; ++channel) {
                sums[channel][at] += shares[at] * colour[channel];
            }
        }
    });
    const held = reserved.shares();
    const free = rgb(colours.freeKind);
    const ground = rgb(colours.ground);
    for (let at = 0; at < used.length; ++at) {
        const scale = used[at] > 1 ? 1 / used[at] : 1;
        const unused = Math.max(0, Math.min(1, held[at]) - Math.min(1, used[at]));
        const nothing = Math.max(0, 1 - Math.min(1, used[at]) - unused);
        for (let channel = 0; channel < 3; ++channel) {
            image.data[at * 4 + channel] =
                sums[channel][at] * scale + unused * free[channel] + nothing * ground[channel];
        }
        image.data[at * 4 + 3] = 255;
    }
    const canvas = new OffscreenCanvas(columns, rows);
    canvas.getContext("2d")!.putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(
        canvas,
        frame.left,
        frame.top,
        frame.right - frame.left,
        frame.bottom - frame.top,
    );
    drawAxes(layer, frame, model, window, colours);
}
