// Memory over time: the exact split of what is reserved, stacked, with the capacity and what others
// use from above, markers and phases. Areas are means of a bin, the line is the highest of it.
import { formatBytes, formatMoment, ticks } from "../data/format";
import type { Marker, Phase } from "../data/header";
import type { Bins, DeviceModel } from "../data/model";
import { drawAreas } from "./areas";
import type { Colours } from "./colours";
import { type Layer, fitText, font } from "./surface";

export const chartLeft = 64;
const top = 18;
const phaseHeight = 13;
const axisHeight = 16;

export interface ChartData {
    bins: Bins;
    from: number;  // ticks of the bins' edges
    to: number;
}

export interface Window { t0: number; t1: number }

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

export function drawChart(layer: Layer, model: DeviceModel, data: ChartData, window: Window, colours: Colours): void {
    const { context, width, height } = layer;
    const bottom = height - axisHeight - phaseHeight - 3;
    const most = chartScale(model);
    const y = (bytes: number): number => bottom - (bytes / most) * (bottom - top);
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, height);
    drawAreas(layer, data, window.t0, window.t1, { left: chartLeft, top, bottom, most, capacity: model.head.capacity },
        layers.map(([name]) => [data.bins[name] as Float64Array, name === "held" ? "" : layerColour(colours, name)]), colours);
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
    drawPhases(layer, model.head.phases, model.head.tick_ns, window, bottom + 3, colours);
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
    const markers = [...model.head.markers].sort((a, b) => Number(b.kind === "oom") - Number(a.kind === "oom"));
    for (const marker of markers) {
        const x = timeX(layer, window, marker.time_ns / model.head.tick_ns);
        if (x < chartLeft - 1 || x > width + 1) continue;
        if (marker.kind === lastKind && x - lastX < 1) continue;
        lastKind = marker.kind;
        lastX = x;
        context.strokeStyle = context.fillStyle = markerColour(colours, marker);
        const main = marker.kind === "oom" || marker.kind === "retry";
        context.globalAlpha = main ? 1 : 0.5;
        context.beginPath();
        context.moveTo(x, top - 2);
        context.lineTo(x, bottom);
        context.stroke();
        context.beginPath();
        if (marker.kind === "oom") {
            context.moveTo(x - 6, top - 12);
            context.lineTo(x + 6, top - 12);
            context.lineTo(x, top - 1);
        } else {
            context.arc(x, top - 6, main ? 4 : 2.5, 0, 7);
        }
        context.fill();
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

function drawPhases(layer: Layer, phases: Phase[], tickNs: number, window: Window, y: number, colours: Colours): void {
    const { context, width } = layer;
    context.font = font(10);
    context.textAlign = "right";
    context.fillStyle = colours.faint;
    if (phases.length > 0) context.fillText("phases", chartLeft - 6, y + 10);
    const names = [...new Set(phases.map((phase) => phase.name))];
    context.textAlign = "left";
    for (const phase of phases) {
        const left = Math.max(chartLeft, timeX(layer, window, phase.start_ns / tickNs));
        const right = Math.min(width, phase.end_ns === null ? width : timeX(layer, window, phase.end_ns / tickNs));
        if (right <= left) continue;
        context.fillStyle = colours.phases[names.indexOf(phase.name) % colours.phases.length];
        context.fillRect(left, y, Math.max(0.5, right - left - (right - left > 3 ? 1 : 0)), phaseHeight - 2);
        if (right - left > 24) {
            context.fillStyle = colours.ink;
            context.fillText(fitText(context, phase.name, right - left - 6), left + 3, y + 9);
        }
    }
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
