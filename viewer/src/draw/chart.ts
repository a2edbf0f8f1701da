// Draws memory over time: reserved memory as stacked areas, the capacity, memory outside the pool
// from above, markers, tracks and phases. An area shows the mean of a bin. The line shows the bin's
// maximum.
import { formatBytes, ticks } from "../data/format";
import type { HeapState } from "../data/heap";
import type { Bins, DeviceModel } from "../data/model";
import type { Track } from "../data/overtime";
import { drawAreaPaths } from "./areapaths";
import { type AreaData, binsBelow, drawAreas, meanIn, highestIn } from "./areas";
import { type Colours, hatched } from "./colours";
import { drawLanes, laneHeight, lanesHeight } from "./lanes";
import { drawMarkers, markersHeight } from "./markers";
import {
    axisHeight,
    drawTimes,
    plotLeft,
    plotRight,
    stripWidth,
    timeX,
    type Window,
} from "./timeaxis";
import { type Layer, fitText, font } from "./surface";
import { drawTracks, drawTracksAt, trackAt, tracksHeight } from "./tracks";

const top = markersHeight;

/** Reserved memory of a replay, drawn over the recorded areas. */
export interface Overlay {
    name: string;
    times: Uint32Array;
    bytes: Float64Array;
    endTick: number;
}

/** The lane at a height of the chart; -1 = none. */
export function laneAt(layer: Layer, model: DeviceModel, y: number): number {
    const lane = Math.floor((y - lanesTop(layer, model)) / laneHeight);
    return lane >= 0 && lane < model.head.phase_lanes.length ? lane : -1;
}

/** The track at a height of the chart. */
export function trackUnder(layer: Layer, model: DeviceModel, y: number): Track | undefined {
    return y < lanesTop(layer, model) ? trackAt(model, y - tracksTop(layer, model)) : undefined;
}

/** The height of what is below the areas: tracks and lanes. */
export function heightBelow(model: DeviceModel): number {
    return tracksHeight(model) + lanesHeight(model);
}

function lanesTop(layer: Layer, model: DeviceModel): number {
    return layer.height - axisHeight - lanesHeight(model);
}

const lanesGap = 3; // above the lanes

function tracksTop(layer: Layer, model: DeviceModel): number {
    return lanesTop(layer, model) - lanesGap - tracksHeight(model);
}

export const layers: [name: keyof Bins, label: string][] = [
    ["requested", "requested"],
    ["internal", "rounding and slack"],
    ["pending", "waiting for streams"],
    ["held", "holes"],
    ["releasable", "cached"],
];

export function layerColour(colours: Colours, name: string): string {
    const table: Record<string, string> = {
        requested: colours.use,
        internal: colours.internal,
        pending: colours.pending,
        held: colours.hole,
        releasable: colours.cached,
        other: colours.other,
    };
    return table[name];
}

export function chartScale(model: DeviceModel): number {
    let most = 1;
    const { bins, head } = model;
    for (let i = 0; i < bins.count; ++i) {
        most = Math.max(most, bins.reserved_max[i] + bins.other[i]);
    }
    const ceiling = head.total ?? head.capacity;
    return ceiling ? Math.max(ceiling, most) : most * 1.05;
}

/** The position of the areas, and the pixel of a number of bytes. */
function chartFrame(
    layer: Layer,
    model: DeviceModel,
): { bottom: number; most: number; y: (bytes: number) => number } {
    const bottom = tracksTop(layer, model);
    const most = chartScale(model);
    return { bottom, most, y: (bytes) => bottom - (bytes / most) * (bottom - top) };
}

/** The memory that a column of pixels shows: means over its time, and the most. */
export interface ColumnMemory {
    requested: number;
    held: number;
    releasable: number;
    most: number; // reserved
    changes: boolean; // whether memory changes within its time
}

/** What the areas show at `x`; null = nothing. */
export function memoryAt(
    layer: Layer,
    data: AreaData,
    window: Window,
    x: number,
): ColumnMemory | null {
    const left = Math.round(plotLeft * layer.ratio);
    const columns = Math.round(plotRight(layer) * layer.ratio) - left;
    const column = Math.min(columns - 1, Math.floor(x * layer.ratio) - left);
    const [begin, end] = binsBelow(data, window, columns, column);
    if (!(end > begin)) return null;
    const { bins } = data;
    const mean = (name: keyof Bins): number => meanIn(bins[name] as Float64Array, begin, end);
    const most = highestIn(bins.reserved_max, begin, end);
    const reserved = layers.reduce((sum, [name]) => sum + mean(name), 0);
    const allocated = mean("requested") + mean("internal");
    const tolerance = 1; // bytes, because means are rounded
    return {
        requested: mean("requested"),
        held: mean("held"),
        releasable: mean("releasable"),
        most,
        changes:
            most - reserved > tolerance ||
            highestIn(bins.allocated_max, begin, end) - allocated > tolerance,
    };
}

export function drawChart(
    layer: Layer,
    model: DeviceModel,
    data: AreaData,
    window: Window,
    overlay: Overlay | null,
    colours: Colours,
): void {
    const { context, width, height } = layer;
    const { bottom, most, y } = chartFrame(layer, model);
    const right = plotRight(layer);
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, height);
    const areas = layers.map(([name]): [Float64Array, string] => [
        data.bins[name] as Float64Array,
        name === "held" ? "" : layerColour(colours, name),
    ]);
    const frame = {
        left: plotLeft,
        right,
        top,
        bottom,
        most,
        capacity: model.head.total ?? model.head.capacity,
    };
    const draw = "putImageData" in context ? drawAreas : drawAreaPaths; // SVG has no pixels
    draw(layer, data, window, frame, areas, colours);
    if (overlay) {
        context.save();
        context.beginPath();
        context.rect(plotLeft, 0, right - plotLeft, bottom);
        context.clip();
        drawOverlay(layer, overlay, window, y, colours);
        context.restore();
    }
    drawSizes(layer, most, frame.capacity, bottom, y, colours);
    if (model.head.limit) drawLimit(layer, model.head.limit, y, colours);
    drawMarkers(layer, model, window, bottom, colours);
    drawTracks(layer, model, window, bottom, colours);
    drawLanes(layer, model, window, lanesTop(layer, model), colours);
    drawTimes(layer, model.head.tick_ns, window, 0, colours);
}

// The capacity is labelled with the sizes at the left, where no curve is.
function drawSizes(
    layer: Layer,
    most: number,
    capacity: number | null,
    bottom: number,
    y: (bytes: number) => number,
    colours: Colours,
): void {
    const { context } = layer;
    const right = plotRight(layer);
    const line = (at: number): void => {
        context.beginPath();
        context.moveTo(plotLeft, at);
        context.lineTo(right, at);
        context.stroke();
    };
    const steps = ticks(0, most, Math.max(2, (bottom - top) / 22), true);
    context.font = font(11);
    context.textAlign = "right";
    context.strokeStyle = colours.paper;
    context.globalAlpha = 0.5;
    for (const at of steps) line(y(at));
    context.globalAlpha = 1;
    context.fillStyle = colours.faint;
    const ceiling = capacity ? y(capacity) : -Infinity;
    for (const at of steps) {
        if (y(at) > ceiling + 16) {
            context.fillText(
                at === 0 ? "0" : formatBytes(at),
                plotLeft - 6,
                y(at) + (at === 0 ? 1 : 4),
            );
        }
    }
    if (!capacity) return;
    context.strokeStyle = context.fillStyle = colours.ink;
    context.setLineDash([5, 3]);
    line(ceiling);
    context.setLineDash([]);
    context.fillText("capacity", plotLeft - 6, ceiling - 7);
    context.font = font(11, "bold");
    context.fillText(formatBytes(capacity), plotLeft - 6, ceiling + 5);
}

// Draws the memory fraction: the share of the card that the pool may use.
function drawLimit(
    layer: Layer,
    limit: number,
    y: (bytes: number) => number,
    colours: Colours,
): void {
    const { context } = layer;
    const right = plotRight(layer);
    context.strokeStyle = context.fillStyle = colours.ink;
    context.setLineDash([2, 3]);
    context.beginPath();
    context.moveTo(plotLeft, y(limit));
    context.lineTo(right, y(limit));
    context.stroke();
    context.setLineDash([]);
    context.font = font(11);
    context.textAlign = "right";
    context.fillText(`limit ${formatBytes(limit)}`, right - 4, y(limit) - 4);
}

function drawOverlay(
    layer: Layer,
    overlay: Overlay,
    window: Window,
    y: (bytes: number) => number,
    colours: Colours,
): void {
    const { context } = layer;
    const { times, bytes } = overlay;
    for (const [colour, size] of [
        [colours.paper, 4],
        [colours.good, 2],
    ] as const) {
        context.strokeStyle = colour;
        context.lineWidth = size * colours.stroke;
        context.beginPath();
        for (let i = 0; i < times.length; ++i) {
            const until = i + 1 < times.length ? times[i + 1] : overlay.endTick;
            if (until < window.t0 || times[i] > window.t1) continue;
            context.lineTo(timeX(layer, window, times[i]), y(bytes[i]));
            context.lineTo(timeX(layer, window, until), y(bytes[i]));
        }
        context.stroke();
    }
    context.lineWidth = 1;
    // At the left, because memory is low there in most runs.
    context.font = font(11, "bold");
    context.textAlign = "left";
    const text = fitText(
        context,
        `reserved, replayed with ${overlay.name}`,
        (plotRight(layer) - plotLeft) / 2,
    );
    const at = plotLeft + 6;
    context.fillStyle = colours.paper;
    context.globalAlpha = 0.85;
    context.fillRect(at - 3, top + 4, context.measureText(text).width + 6, 15);
    context.globalAlpha = 1;
    context.fillStyle = colours.good;
    context.fillText(text, at, top + 15);
}

/** At the right: the split of reserved memory at the cursor. */
export function drawSplit(
    layer: Layer,
    context: CanvasRenderingContext2D,
    model: DeviceModel,
    heap: HeapState,
    colours: Colours,
): void {
    const { y } = chartFrame(layer, model);
    const left = layer.width - stripWidth;
    const parts: [name: string, bytes: number][] = [
        ["requested", heap.requested],
        ["internal", heap.allocated - heap.requested],
        ["pending", heap.pending],
        ["held", heap.held],
        ["releasable", heap.releasable],
    ];
    context.fillStyle = colours.ground;
    context.fillRect(left, top, stripWidth, y(0) - top);
    let below = 0;
    for (const [name, bytes] of parts) {
        context.fillStyle =
            name === "held" ? hatched(context, colours) : layerColour(colours, name);
        context.fillRect(left, y(below + bytes), stripWidth, y(below) - y(below + bytes));
        below += bytes;
    }
    drawTracksAt(layer, context, model, heap.tick, tracksTop(layer, model), colours);
}

export function drawCursor(
    context: CanvasRenderingContext2D,
    x: number,
    topY: number,
    bottomY: number,
    colours: Colours,
): void {
    context.strokeStyle = colours.halo;
    context.globalAlpha = 0.8;
    context.lineWidth = 3;
    context.beginPath();
    context.moveTo(x, topY);
    context.lineTo(x, bottomY);
    context.stroke();
    context.globalAlpha = 1;
    context.strokeStyle = colours.ink;
    context.lineWidth = 1.5 * colours.stroke;
    context.stroke();
    context.lineWidth = 1;
}

/** Draws the second cursor: growth is measured from it. */
export function drawMark(
    context: CanvasRenderingContext2D,
    x: number,
    topY: number,
    bottomY: number,
    colours: Colours,
): void {
    context.strokeStyle = context.fillStyle = colours.mark;
    context.lineWidth = 1.5 * colours.stroke;
    context.setLineDash([4, 3]);
    context.beginPath();
    context.moveTo(x, topY);
    context.lineTo(x, bottomY);
    context.stroke();
    context.setLineDash([]);
    context.lineWidth = 1;
    context.font = font(11, "bold");
    context.textAlign = "left";
    context.fillText("mark", x + 4, bottomY - 4);
}
