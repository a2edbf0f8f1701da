// Memory over time: the exact split of what is reserved, stacked, with the capacity and what others
// use from above, markers and phases. Areas are means of a bin, the line is the highest of it.
import { formatBytes, formatMoment, ticks } from "../data/format";
import type { Marker } from "../data/header";
import type { Bins, DeviceModel } from "../data/model";
import { drawAreaPaths } from "./areapaths";
import { drawAreas } from "./areas";
import type { Colours } from "./colours";
import { drawLanes, laneHeight, lanesHeight } from "./lanes";
import { type Layer, fitText, font } from "./surface";

export const chartLeft = 64;
const top = 18;
const axisHeight = 16;

export interface ChartData {
    bins: Bins;
    from: number;  // ticks of the bins' edges
    to: number;
}

export interface Window { t0: number; t1: number }

/** Reserved memory of a replay, laid over the recorded areas. */
export interface Overlay { name: string; times: Uint32Array; bytes: Float64Array; endTick: number }

/** Where the lanes begin, and which is at a height of the chart; -1 = none. */
export function laneAt(layer: Layer, model: DeviceModel, y: number): number {
    const lane = Math.floor((y - lanesTop(layer, model)) / laneHeight);
    return lane >= 0 && lane < model.head.phase_lanes.length ? lane : -1;
}

function lanesTop(layer: Layer, model: DeviceModel): number {
    return layer.height - axisHeight - lanesHeight(model);
}

export const layers: [name: keyof Bins & string, label: string][] = [
    ["requested", "requested"], ["internal", "rounding and slack"], ["pending", "waiting for streams"],
    ["held", "holes held open"], ["releasable", "cached, releasable"],
];

export function layerColour(colours: Colours, name: string): string {
    const table: Record<string, string> = {
        requested: colours.use, internal: colours.internal, pending: colours.pending,
        held: colours.hole, releasable: colours.cached, other: colours.other,
    };
    return table[name];
}

export function chartScale(model: DeviceModel): number {
    let most = 1;
    const { bins, head } = model;
    for (let i = 0; i < bins.count; ++i) most = Math.max(most, bins.reserved_max[i] + bins.other[i]);
    return head.capacity ? Math.max(head.capacity, most) : most * 1.05;
}

export function timeX(layer: Layer, window: Window, tick: number): number {
    return chartLeft + ((tick - window.t0) / (window.t1 - window.t0)) * (layer.width - chartLeft);
}

export function drawChart(layer: Layer, model: DeviceModel, data: ChartData, window: Window, overlay: Overlay | null, colours: Colours): void {
    const { context, width, height } = layer;
    const bottom = lanesTop(layer, model) - 3;
    const most = chartScale(model);
    const y = (bytes: number): number => bottom - (bytes / most) * (bottom - top);
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, height);
    const areas = layers.map(([name]): [Float64Array, string] => [data.bins[name] as Float64Array, name === "held" ? "" : layerColour(colours, name)]);
    const frame = { left: chartLeft, top, bottom, most, capacity: model.head.capacity };
    const draw = "putImageData" in context ? drawAreas : drawAreaPaths;  // SVG has no pixels
    draw(layer, data, window.t0, window.t1, frame, areas, colours);
    if (overlay) {
        context.save();
        context.beginPath();
        context.rect(chartLeft, 0, width - chartLeft, bottom);
        context.clip();
        drawOverlay(layer, overlay, window, y, colours);
        context.restore();
    }
    drawSizes(layer, most, y, colours);
    if (model.head.capacity) {
        context.strokeStyle = colours.ink;
        context.setLineDash([5, 3]);
        context.beginPath();
        context.moveTo(chartLeft, y(model.head.capacity));
        context.lineTo(width, y(model.head.capacity));
        context.stroke();
        context.setLineDash([]);
        context.font = font(11);
        context.fillStyle = colours.ink;
        context.textAlign = "left";
        context.fillText(`capacity ${formatBytes(model.head.capacity)}`, chartLeft + 6, y(model.head.capacity) + 12);
    }
    drawMarkers(layer, model, window, bottom, colours);
    drawLanes(layer, model, window, bottom + 3, colours);
    drawTimes(layer, model, window, height - 4, colours);
}

function drawSizes(layer: Layer, most: number, y: (bytes: number) => number, colours: Colours): void {
    const { context, width } = layer;
    context.font = font(11);
    context.textAlign = "right";
    context.fillStyle = colours.faint;
    context.strokeStyle = colours.paper;
    context.globalAlpha = 0.5;
    const steps = ticks(0, most, 4, true);
    for (const at of steps) {
        context.beginPath();
        context.moveTo(chartLeft, y(at));
        context.lineTo(width, y(at));
        context.stroke();
    }
    context.globalAlpha = 1;
    for (const at of steps) context.fillText(at === 0 ? "0" : formatBytes(at), chartLeft - 6, y(at) + 4);
}

export function markerColour(colours: Colours, marker: Marker): string {
    return marker.kind === "oom" ? colours.oom : marker.kind === "retry" ? colours.retry : colours.faint;
}

function drawMarkers(layer: Layer, model: DeviceModel, window: Window, bottom: number, colours: Colours): void {
    const { context, width } = layer;
    context.font = font(11, "bold");
    const labels: [from: number, to: number][] = [];
    let lastKind = "";
    let lastX = -Infinity;
    // OOM first: where labels would overlap, they win.
    const weight = (marker: Marker): number => (marker.kind === "oom" ? 2 : marker.kind === "retry" ? 1 : 0);
    const markers = [...model.head.markers].sort((a, b) => weight(b) - weight(a));
    for (const marker of markers) {
        const x = timeX(layer, window, marker.time_ns / model.head.tick_ns);
        if (x < chartLeft - 1 || x > width + 1) continue;
        if (marker.kind === lastKind && x - lastX < 1) continue;
        lastKind = marker.kind;
        lastX = x;
        context.strokeStyle = context.fillStyle = markerColour(colours, marker);
        const main = marker.kind === "oom" || marker.kind === "retry";
        context.globalAlpha = main ? 1 : 0.8;
        if (main) {
            context.beginPath();
            context.moveTo(x, top - 2);
            context.lineTo(x, bottom);
            context.stroke();
        }
        context.beginPath();
        if (marker.kind === "oom") {
            context.moveTo(x - 6, top - 12);
            context.lineTo(x + 6, top - 12);
            context.lineTo(x, top - 1);
        } else if (marker.kind === "burst") {  // a small tower: cudaMallocs in a row
            context.rect(x - 1, top - 9, 3, 8);
        } else if (marker.kind === "empty_cache") {  // an open square: what was emptied
            context.rect(x - 3, top - 8, 6, 6);
        } else {
            context.arc(x, top - 6, main ? 4 : 2.5, 0, 7);
        }
        if (marker.kind === "empty_cache") context.stroke();
        else context.fill();
        context.globalAlpha = 1;
        if (!main) continue;
        const text = marker.kind === "oom" ? "OOM" : "retry";
        const size = context.measureText(text).width;
        const left = x + 9 + size > width;
        const begin = left ? x - 9 - size : x + 9;
        if (labels.some(([from, to]) => begin < to + 4 && begin + size > from - 4)) continue;
        context.textAlign = "left";
        context.fillText(text, begin, top - 4);
        labels.push([begin, begin + size]);
    }
}

function drawOverlay(layer: Layer, overlay: Overlay, window: Window, y: (bytes: number) => number, colours: Colours): void {
    const { context, width } = layer;
    const { times, bytes } = overlay;
    for (const [colour, size] of [[colours.paper, 4], [colours.good, 2]] as const) {
        context.strokeStyle = colour;
        context.lineWidth = size;
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
    // At the left, where memory is low in most runs.
    context.font = font(11, "bold");
    context.textAlign = "left";
    const text = fitText(context, `reserved, replayed with ${overlay.name}`, (width - chartLeft) / 2);
    const at = chartLeft + 6;
    context.fillStyle = colours.paper;
    context.globalAlpha = 0.85;
    context.fillRect(at - 3, top + 16, context.measureText(text).width + 6, 15);
    context.globalAlpha = 1;
    context.fillStyle = colours.good;
    context.fillText(text, at, top + 27);
}

function drawTimes(layer: Layer, model: DeviceModel, window: Window, y: number, colours: Colours): void {
    const { context, width } = layer;
    const tickNs = model.head.tick_ns;
    const steps = ticks(window.t0 * tickNs, window.t1 * tickNs, Math.max(2, (width - chartLeft) / 140));
    const step = steps.length > 1 ? steps[1] - steps[0] : (window.t1 - window.t0) * tickNs;
    context.font = font(11);
    context.fillStyle = colours.faint;
    for (const at of steps) {
        const x = timeX(layer, window, at / tickNs);
        context.textAlign = x > width - 40 ? "right" : x < chartLeft + 30 ? "left" : "center";
        context.fillText(formatMoment(at, step), x, y);
    }
}

/** The marker whose sign is at a place of the chart. */
export function markerAt(layer: Layer, model: DeviceModel, window: Window, x: number, y: number): Marker | null {
    if (y > top) return null;
    const { markers, tick_ns } = model.head;
    let best: Marker | null = null;
    let nearest = 6;
    for (const marker of markers) {
        const distance = Math.abs(timeX(layer, window, marker.time_ns / tick_ns) - x);
        if (distance < nearest || (distance === nearest && marker.kind === "oom")) {
            nearest = distance;
            best = marker;
        }
    }
    return best;
}

export function drawCursor(context: CanvasRenderingContext2D, x: number, topY: number, bottomY: number, colours: Colours): void {
    context.strokeStyle = colours.halo;
    context.globalAlpha = 0.8;
    context.lineWidth = 3;
    context.beginPath();
    context.moveTo(x, topY);
    context.lineTo(x, bottomY);
    context.stroke();
    context.globalAlpha = 1;
    context.strokeStyle = colours.ink;
    context.lineWidth = 1.5;
    context.stroke();
    context.lineWidth = 1;
}

/** The second cursor, that growth is measured from. */
export function drawMark(context: CanvasRenderingContext2D, x: number, topY: number, bottomY: number, colours: Colours): void {
    context.strokeStyle = context.fillStyle = colours.mark;
    context.lineWidth = 1.5;
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
