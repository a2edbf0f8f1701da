// Draws the selected ranges of time over the pictures with a time axis: a shade, two edges and a
// letter. The letters tell them apart without colours.
import type { Range } from "../data/ranges";
import type { Colours } from "./colours";
import { type Layer, fitText, font } from "./surface";
import { plotLeft, plotRight, timeX, type Window } from "./timeaxis";

export const rangeNames = ["A", "B"];
const edgeReach = 5; // pixels within which an edge can be dragged
const labelHeight = 15;

export function rangeColour(colours: Colours, at: number): string {
    return at === 0 ? colours.mark : colours.retry;
}

export function drawRanges(
    layer: Layer,
    context: CanvasRenderingContext2D,
    window: Window,
    ranges: { range: Range; text: string }[],
    top: number,
    bottom: number,
    colours: Colours,
): void {
    const right = plotRight(layer);
    ranges.forEach(({ range, text }, at) => {
        const [from, to] = range.map((tick) => timeX(layer, window, tick));
        const [x0, x1] = [Math.max(plotLeft, from), Math.min(right, to)];
        if (x1 < plotLeft || x0 > right) return;
        const colour = rangeColour(colours, at);
        context.fillStyle = context.strokeStyle = colour;
        context.globalAlpha = 0.2;
        context.fillRect(x0, top, Math.max(1, x1 - x0), bottom - top);
        context.globalAlpha = 1;
        context.lineWidth = 1.5 * colours.stroke;
        context.setLineDash(at === 0 ? [] : [6, 3]);
        for (const x of [from, to]) {
            if (x < plotLeft || x > right) continue;
            context.beginPath();
            context.moveTo(x, top);
            context.lineTo(x, bottom);
            context.stroke();
        }
        context.setLineDash([]);
        context.lineWidth = 1;
        drawLabel(
            context,
            x0,
            Math.max(x1 - x0, 20),
            top + 2 + at * (labelHeight + 1),
            at,
            text,
            colours,
        );
    });
}

function drawLabel(
    context: CanvasRenderingContext2D,
    x: number,
    room: number,
    y: number,
    at: number,
    text: string,
    colours: Colours,
): void {
    context.font = font(11, "bold");
    context.textAlign = "left";
    const label = fitText(context, `${rangeNames[at]}${text}`, room - 8) || rangeNames[at];
    context.fillStyle = rangeColour(colours, at);
    context.fillRect(x, y, context.measureText(label).width + 8, labelHeight);
    context.fillStyle = colours.onMark;
    context.fillText(label, x + 4, y + 11);
}

/** The edge of a range at a position: which range, and the other edge's tick. null = none. */
export function edgeAt(
    layer: Layer,
    window: Window,
    ranges: readonly Range[],
    x: number,
): { range: number; other: number } | null {
    let best: { range: number; other: number } | null = null;
    let least = edgeReach;
    ranges.forEach((range, at) =>
        range.forEach((tick, side) => {
            const distance = Math.abs(timeX(layer, window, tick) - x);
            if (distance > least) return;
            least = distance;
            best = { range: at, other: range[1 - side] };
        }),
    );
    return best;
}
