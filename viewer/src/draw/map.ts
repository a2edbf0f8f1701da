// Draws addresses over time. Few blocks are drawn as rectangles with edges. Many blocks are drawn
// as shares of area per pixel from the exact events. While a large window moves or its picture is
// computed, the overview stored in the file is drawn.
import { addressAt, type DeviceModel } from "../data/model";
import type { WindowSweep } from "../data/sweep";
import { type Colours, hatched } from "./colours";
import type { Picture } from "./pixels";
import { drawOverview, type MapWindow } from "./shares";
import { type Layer, font } from "./surface";
import { axisHeight, drawTimes, plotLeft, plotRight } from "./timeaxis";
import { formatBytes, formatWhole, ticks } from "../data/format";

const rectangleLimit = 4000;

/** Edges of blocks in pixels. They have their own colour: the colour of holes would show a hole. */
export const edgeWidth = 0.7;

export interface MapFrame {
    x: (tick: number) => number;
    y: (offset: number) => number;
    left: number;
    right: number;
    top: number;
    bottom: number;
}

export function mapFrame(layer: Layer, window: MapWindow): MapFrame {
    const left = plotLeft;
    const right = plotRight(layer);
    const top = 0;
    const bottom = Math.max(1, layer.height - axisHeight);
    return {
        left,
        right,
        top,
        bottom,
        x: (tick) => left + ((tick - window.t0) / (window.t1 - window.t0)) * (right - left),
        y: (offset) => top + ((offset - window.a0) / (window.a1 - window.a0)) * (bottom - top),
    };
}

/** The frame in device pixels. */
function pixelFrame(
    layer: Layer,
    frame: MapFrame,
): { left: number; top: number; columns: number; rows: number } {
    const [left, top, columns, rows] = [
        frame.left,
        frame.top,
        frame.right - frame.left,
        frame.bottom - frame.top,
    ].map((at) => Math.round(at * layer.ratio));
    return { left, top, columns: Math.max(1, columns), rows: Math.max(1, rows) };
}

/** The size of a picture that is as fine as the device's pixels, or has about `mostCells` cells. */
export function cellsOf(
    layer: Layer,
    frame: MapFrame,
    mostCells = Infinity,
): { columns: number; rows: number } {
    const { columns, rows } = pixelFrame(layer, frame);
    const step = Math.max(1, Math.sqrt((columns * rows) / mostCells));
    return {
        columns: Math.max(1, Math.round(columns / step)),
        rows: Math.max(1, Math.round(rows / step)),
    };
}

/** What fills the map's frame: the window's blocks as rectangles, the overview, or a picture. */
export type MapContent = WindowSweep | "overview" | Picture;

export function drawMap(
    layer: Layer,
    model: DeviceModel,
    window: MapWindow,
    content: MapContent,
    colours: Colours,
): void {
    const { context, width, height } = layer;
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, height);
    const frame = mapFrame(layer, window);
    if (content === "overview") {
        const { left, top, columns, rows } = pixelFrame(layer, frame);
        drawOverview(layer, left, top, columns, rows, model, window, colours);
    } else if ("pixels" in content) {
        drawPicture(layer, frame, content);
    } else {
        drawRectangles(layer, frame, model, window, content, colours);
    }
    drawAxes(layer, frame, model, window, colours);
}

function drawPicture(layer: Layer, frame: MapFrame, { columns, rows, image }: Picture): void {
    const { context } = layer;
    const place = pixelFrame(layer, frame);
    if (place.columns === columns && place.rows === rows) {
        context.putImageData(image, place.left, place.top);
        return;
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
}

// Edges only help if blocks are several pixels high: those of thinner blocks would mix with their
// neighbours. Blocks narrower than a pixel would be painted over each other, so their areas would
// not add up.
export function edgesVisible(frame: MapFrame, model: DeviceModel, sweep: WindowSweep): boolean {
    if (sweep.blocks.length > rectangleLimit) return false;
    const { blocks } = model;
    let visible = 0;
    let thin = 0;
    for (const row of sweep.blocks) {
        const top = frame.y(blocks.offset[row]);
        const bottom = frame.y(blocks.offset[row] + blocks.size[row]);
        if (bottom < frame.top || top > frame.bottom) continue;
        ++visible;
        const width = frame.x(blocks.end[row]) - frame.x(blocks.start[row]);
        if (bottom - top < 3 || width < 1) ++thin;
    }
    return thin * 4 <= visible;
}

function drawRectangles(
    layer: Layer,
    frame: MapFrame,
    model: DeviceModel,
    window: MapWindow,
    sweep: WindowSweep,
    colours: Colours,
): void {
    const { context } = layer;
    const { blocks, units } = model;
    const end = Math.max(window.t1, model.lastTick);
    context.save();
    context.beginPath();
    context.rect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
    context.clip();
    context.fillStyle = colours.ground;
    context.fillRect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
    const rectangle = (
        start: number,
        stop: number,
        offset: number,
        size: number,
        colour: string | CanvasPattern,
        edged = false,
    ): void => {
        const left = Math.max(frame.left, frame.x(start));
        const right = Math.min(frame.right, frame.x(Math.min(end, stop)));
        const top = frame.y(offset);
        const height = frame.y(offset + size) - top;
        if (
            right < frame.left ||
            left > frame.right ||
            top > frame.bottom ||
            top + height < frame.top
        ) {
            return;
        }
        const edge = edged && height > 3 && right - left > 3 ? edgeWidth : 0;
        if (edge > 0) {
            context.fillStyle = colours.line;
            context.fillRect(left, top, right - left, height);
        }
        context.fillStyle = colour;
        context.fillRect(left, top, right - left - edge, height - edge);
    };
    for (let unit = 0; unit < units.count; ++unit) {
        if (units.start[unit] <= window.t1 && units.end[unit] >= window.t0) {
            rectangle(
                units.start[unit],
                units.end[unit],
                units.offset[unit],
                units.size[unit],
                colours.cached,
            );
        }
    }
    const hatch = hatched(context, colours);
    for (let i = 0; i < sweep.keptUnit.length; ++i) {
        const unit = sweep.keptUnit[i];
        rectangle(sweep.keptFrom[i], sweep.keptTo[i], units.offset[unit], units.size[unit], hatch);
    }
    const long = model.lastTick / 4;
    for (const row of sweep.blocks) {
        const colour =
            Math.min(end, blocks.end[row]) - blocks.start[row] > long
                ? colours.useLong
                : colours.use;
        rectangle(
            blocks.start[row],
            blocks.end[row],
            blocks.offset[row],
            blocks.size[row],
            colour,
            true,
        );
    }
    context.restore();
}

/** The lines that label offsets. Short sizes that look alike give way to exact ones. */
export function addressLabels(offsets: number[]): string[][] {
    const short = offsets.map((at) => "+" + (at === 0 ? "0" : formatBytes(at)));
    return new Set(short).size === short.length
        ? short.map((label) => [label])
        : offsets.map((at) => formatWhole(at).map((part) => "+" + part));
}

const lineHeight = 12;
const stripName = "at cursor";

// Draws addresses at the left, times below, and the title of the column at the right.
function drawAxes(
    layer: Layer,
    frame: MapFrame,
    model: DeviceModel,
    window: MapWindow,
    colours: Colours,
): void {
    const { context, width, height } = layer;
    context.font = font(11);
    drawTimes(layer, model.head.tick_ns, window, context.measureText(stripName).width + 4, colours);
    context.textAlign = "right";
    context.fillStyle = colours.faint;
    context.fillText(stripName, width, height - 3);
    const steps = ticks(window.a0, window.a1, Math.max(2, (frame.bottom - frame.top) / 50), true);
    addressLabels(steps).forEach((lines, i) => {
        const lowest = frame.bottom - (lines.length - 1) * lineHeight;
        const y = Math.max(10, Math.min(lowest, frame.y(steps[i]) + 4));
        lines.forEach((line, at) => context.fillText(line, frame.left - 6, y + at * lineHeight));
    });
    // Mark where the axis leaves out addresses that were never reserved.
    context.strokeStyle = colours.faint;
    context.globalAlpha = 0.35;
    const gaps = model.head.axis.filter(([, , offset]) => offset > window.a0 && offset < window.a1);
    if (gaps.length < (frame.bottom - frame.top) / 6) {
        for (const [, , offset] of gaps) {
            context.beginPath();
            context.moveTo(frame.left, frame.y(offset));
            context.lineTo(frame.right, frame.y(offset));
            context.stroke();
        }
    }
    context.globalAlpha = 1;
}

/**
 * "0x7f12…": the process's address of a point of the map. Memory without an address (physical
 * memory, arrays, graphs) is placed at 2^62 and above (analyzer/model/device_layer.h).
 */
export function addressText(model: DeviceModel, offset: number): string {
    const address = addressAt(model.head, offset);
    return address < 2n ** 62n ? "0x" + address.toString(16) : "no address";
}
