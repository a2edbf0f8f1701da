// The common time axis. Chart, lanes and map have the same margins, so a time has the same x in all
// of them and the cursor is one line.
import { formatMoment, ticks } from "../data/format";
import type { Colours } from "./colours";
import { type Layer, font } from "./surface";

export const plotLeft = 64; // room for names and sizes
export const stripWidth = 26; // at the right: the state at the cursor
export const stripGap = 8;
export const axisHeight = 16;

export interface Window {
    t0: number;
    t1: number;
}

export function plotRight(layer: Layer): number {
    return layer.width - stripWidth - stripGap;
}

export function timeX(layer: Layer, window: Window, tick: number): number {
    return (
        plotLeft + ((tick - window.t0) / (window.t1 - window.t0)) * (plotRight(layer) - plotLeft)
    );
}

export function tickAt(layer: Layer, window: Window, x: number): number {
    return window.t0 + ((x - plotLeft) / (plotRight(layer) - plotLeft)) * (window.t1 - window.t0);
}

/**
 * Draws the times in the lowest `axisHeight` pixels, none closer than `keep` to the layer's right
 * edge.
 */
export function drawTimes(
    layer: Layer,
    tickNs: number,
    window: Window,
    keep: number,
    colours: Colours,
): void {
    const { context, width, height } = layer;
    const right = plotRight(layer);
    const steps = ticks(
        window.t0 * tickNs,
        window.t1 * tickNs,
        Math.max(2, (right - plotLeft) / 120),
    );
    const step = steps.length > 1 ? steps[1] - steps[0] : (window.t1 - window.t0) * tickNs;
    context.font = font(11);
    context.strokeStyle = context.fillStyle = colours.faint;
    for (const at of steps) {
        const x = timeX(layer, window, at / tickNs);
        const text = formatMoment(at, step);
        const size = context.measureText(text).width;
        context.beginPath();
        context.moveTo(x, height - axisHeight);
        context.lineTo(x, height - axisHeight + 3);
        context.stroke();
        const left = Math.max(plotLeft, x - size / 2);
        if (left + size > width - keep) continue;
        context.textAlign = "left";
        context.fillText(text, left, height - 3);
    }
}
