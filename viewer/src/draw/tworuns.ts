// Draws the memory of two runs over their common axis. Run A is dashed and B is solid, so their
// curves differ without colours. Thick: reserved. Thin: allocated.
import { formatBytes, formatMoment, ticks } from "../data/format";
import type { Pair } from "../data/header";
import type { DeviceModel } from "../data/model";
import {
    type CommonAxis,
    courseOf,
    type CourseName,
    runNames,
    type Side,
    sides,
} from "../data/tworuns";
import type { Colours } from "./colours";
import { font, type Layer } from "./surface";
import { axisHeight, plotLeft } from "./timeaxis";

const marginRight = 10;
const signRow = 13; // one row of signs for each run
const top = 2 * signRow + 3;
const dashes: Pair<number[]> = [[6, 4], []];

export interface DrawnRuns {
    models: Pair<DeviceModel>;
    reserved: Pair<boolean>; // whether reserved memory is known
    axis: CommonAxis;
}

const plotWidth = ({ width }: Layer): number => Math.max(1, width - plotLeft - marginRight);

export function axisX(layer: Layer, axis: CommonAxis, at: number): number {
    return plotLeft + ((at - axis.from) / (axis.to - axis.from)) * plotWidth(layer);
}

/** The position at a pixel; null = beside the plot. */
export function positionAt(layer: Layer, axis: CommonAxis, x: number): number | null {
    const share = (x - plotLeft) / plotWidth(layer);
    return share < 0 || share > 1 ? null : axis.from + share * (axis.to - axis.from);
}

export function drawTwoRuns(layer: Layer, drawn: DrawnRuns, colours: Colours): void {
    const { context, width, height } = layer;
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, height);
    const columns = Math.max(1, Math.floor(plotWidth(layer)));
    const courses: { side: Side; name: CourseName; course: Float64Array }[] = [];
    // B first: the dashes of A show both where the curves are equal.
    for (const side of [1, 0] as const) {
        for (const name of ["allocated_max", "reserved_max"] as const) {
            if (name === "reserved_max" && !drawn.reserved[side]) continue;
            const course = courseOf(drawn.models[side], side, drawn.axis, columns, name);
            courses.push({ side, name, course });
        }
    }
    const most = courses.reduce(
        (all, { course }) => course.reduce((largest, bytes) => Math.max(largest, bytes), all),
        1,
    );
    const bottom = height - axisHeight - 2;
    const y = (bytes: number): number => bottom - (bytes / most) * (bottom - top);
    drawSizes(layer, most, y, colours);
    drawPositions(layer, drawn, colours);
    for (const { side, name, course } of courses) {
        context.strokeStyle = colours.runs[side];
        context.lineWidth = (name === "reserved_max" ? 2.2 : 1) * colours.stroke;
        context.setLineDash(dashes[side]);
        drawCourse(layer, course, y);
    }
    context.setLineDash([]);
    drawFailures(layer, drawn, colours);
}

// A curve of steps: vertical where a column differs from the one before it.
function drawCourse({ context }: Layer, course: Float64Array, y: (bytes: number) => number): void {
    context.beginPath();
    let drawn = false;
    course.forEach((bytes, column) => {
        if (bytes < 0) {
            drawn = false;
            return;
        }
        const [x, height] = [plotLeft + column, y(bytes)];
        if (drawn) context.lineTo(x, height);
        else context.moveTo(x, height);
        context.lineTo(x + 1, height);
        drawn = true;
    });
    context.stroke();
}

function drawSizes(
    { context, width }: Layer,
    most: number,
    y: (bytes: number) => number,
    colours: Colours,
): void {
    context.font = font(11);
    context.textAlign = "right";
    context.lineWidth = 1;
    for (const bytes of ticks(0, most, 4, true)) {
        context.fillStyle = colours.line;
        context.fillRect(plotLeft, Math.round(y(bytes)), width - plotLeft - marginRight, 1);
        context.fillStyle = colours.faint;
        context.fillText(formatBytes(bytes), plotLeft - 5, y(bytes) + 4);
    }
}

function drawPositions(layer: Layer, { axis }: DrawnRuns, colours: Colours): void {
    const { context, width, height } = layer;
    const steps = axis.unit === "step";
    let at = ticks(axis.from, axis.to, Math.max(2, plotWidth(layer) / 90));
    if (steps) at = at.filter((k) => k >= 0 && k < axis.to);
    const apart = at.length > 1 ? at[1] - at[0] : axis.to;
    context.font = font(11);
    context.textAlign = "left";
    let free = 0; // where the label before it ends
    for (const position of at) {
        const text = steps ? `step ${position + 1}` : formatMoment(position, apart);
        const x = axisX(layer, axis, position);
        context.fillStyle = colours.line;
        context.fillRect(Math.round(x), top, 1, height - axisHeight + 1 - top);
        const end = x + 3 + context.measureText(text).width;
        if (x < free || end > width) continue;
        context.fillStyle = colours.faint;
        context.fillText(text, x + 3, height - 4);
        free = end + 8;
    }
}

// Each run has a row for its failed requests. A row without one has no letter either.
function drawFailures(layer: Layer, { models, axis }: DrawnRuns, colours: Colours): void {
    const { context } = layer;
    context.font = font(11, "bold");
    context.textAlign = "right";
    for (const side of sides) {
        const { markers, tick_ns } = models[side].head;
        const failures = markers.filter(({ kind }) => kind === "oom");
        if (failures.length === 0) continue;
        const row = side * signRow;
        context.fillStyle = colours.runs[side];
        context.fillText(`${runNames[side]} OOM`, plotLeft - 5, row + 11);
        for (const { time_ns } of failures) {
            const x = axisX(layer, axis, axis.at(side, Math.floor(time_ns / tick_ns)));
            context.beginPath();
            context.moveTo(x - 5, row + 2);
            context.lineTo(x + 5, row + 2);
            context.lineTo(x, row + 11);
            context.fill();
        }
    }
}

/** The window and the cursor of the run that is open. */
export function drawOpenPlace(
    layer: Layer,
    context: CanvasRenderingContext2D,
    { axis }: DrawnRuns,
    side: Side,
    { t0, t1, cursor }: { t0: number; t1: number; cursor: number },
    colours: Colours,
): void {
    const bottom = layer.height - axisHeight;
    const [from, to] = [t0, t1].map((tick) => axisX(layer, axis, axis.at(side, tick)));
    context.globalAlpha = 0.07;
    context.fillStyle = colours.mark;
    context.fillRect(from, top, Math.max(1, to - from), bottom - top);
    context.globalAlpha = 1;
    context.fillStyle = colours.ink;
    context.fillRect(
        axisX(layer, axis, axis.at(side, cursor)) - 0.75,
        top - 2,
        1.5,
        bottom - top + 2,
    );
}
