// Draws memory of all processes over time: a row each, in a stronger colour where more is in use.
// The first rows are tall enough for their names.
import { heatBytes, type HeatMeasure, type HeatRow, heatShare, unknownParts } from "../data/heat";
import type { Header } from "../data/header";
import { rankState, shortName } from "../data/ranks";
import type { Colours } from "./colours";
import { fitText, font } from "./surface";

export const namesWidth = 110;
const named = 24; // rows with a name
const tall = 14;
const most = 12_000; // pixels; more cannot be scrolled to in some browsers

export interface HeatLayout {
    count: number;
    thin: number; // height of the rows after the named ones
    height: number;
}

export function heatLayout(count: number): HeatLayout {
    const thin = count <= 60 ? tall : count <= 3 * named ? 6 : count <= 400 ? 2 : 1;
    const rest = Math.max(0, count - named);
    const fits = Math.min(thin, Math.max(1, Math.floor((most - named * tall) / Math.max(1, rest))));
    return { count, thin: fits, height: Math.min(count, named) * tall + rest * fits };
}

export function heatTop({ thin }: HeatLayout, row: number): number {
    return row < named ? row * tall : named * tall + (row - named) * thin;
}

export function heatRowAt(layout: HeatLayout, y: number): number {
    const row =
        y < named * tall
            ? Math.floor(y / tall)
            : named + Math.floor((y - named * tall) / layout.thin);
    return row >= 0 && row < layout.count ? row : -1;
}

/** The colour of a share of 0 to 1, between the stops of a theme. */
export function heatColour(stops: Colours["heat"], share: number): [number, number, number] {
    const at = Math.max(0, Math.min(1, share)) * (stops.length - 1);
    const from = Math.min(stops.length - 2, Math.floor(at));
    return stops[from].map((value, i) =>
        Math.round(value + (stops[from + 1][i] - value) * (at - from)),
    ) as [number, number, number];
}

// One pixel for each row and column; transparent where nothing is known.
function cells(
    header: Header,
    rows: HeatRow[],
    measure: HeatMeasure,
    stops: Colours["heat"],
): HTMLCanvasElement {
    const { columns } = header.heat;
    const canvas = document.createElement("canvas");
    canvas.width = columns;
    canvas.height = rows.length;
    const context = canvas.getContext("2d")!;
    const image = context.createImageData(columns, rows.length);
    const known: [number, number, number][] = []; // by the share in 1/255
    let at = 0;
    for (const row of rows) {
        for (let column = 0; column < columns; ++column, at += 4) {
            const bytes = heatBytes(header, row, measure, column);
            if (bytes === null) continue;
            const step = Math.round(255 * heatShare(header, measure, bytes));
            const colour = (known[step] ??= heatColour(stops, step / 255));
            image.data.set([...colour, 255], at);
        }
    }
    context.putImageData(image, 0, 0);
    return canvas;
}

// Thin slanted lines: not known.
function hatch(context: CanvasRenderingContext2D, colours: Colours): CanvasPattern {
    const size = 6;
    const tile = document.createElement("canvas");
    tile.width = size;
    tile.height = size;
    const drawn = tile.getContext("2d")!;
    drawn.fillStyle = colours.paper;
    drawn.fillRect(0, 0, size, size);
    drawn.strokeStyle = colours.faint;
    for (const shift of [-size, 0, size]) {
        drawn.moveTo(shift, size);
        drawn.lineTo(shift + size, 0);
    }
    drawn.stroke();
    return context.createPattern(tile, "repeat")!;
}

export interface HeatMarks {
    shown: number; // rows with an outline; -1 = none
    focused: number;
}

export function drawHeat(
    context: CanvasRenderingContext2D,
    width: number,
    header: Header,
    rows: HeatRow[],
    measure: HeatMeasure,
    colours: Colours,
    marks: HeatMarks,
): void {
    const layout = heatLayout(rows.length);
    const across = width - namesWidth;
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, layout.height);
    context.fillStyle = colours.ground;
    context.fillRect(namesWidth, 0, across, layout.height);
    const values = cells(header, rows, measure, colours.heat);
    context.imageSmoothingEnabled = false;
    const first = Math.min(rows.length, named);
    for (const [from, to] of [
        [0, first],
        [first, rows.length],
    ]) {
        if (to <= from) continue;
        const top = heatTop(layout, from);
        const high = heatTop(layout, to) - top;
        context.drawImage(values, 0, from, values.width, to - from, namesWidth, top, across, high);
    }
    const hatched = hatch(context, colours);
    const columnWidth = across / header.heat.columns;
    rows.forEach((row, i) => {
        const top = heatTop(layout, i);
        const high = heatTop(layout, i + 1) - top;
        const gap = high >= 6 ? 1 : 0;
        context.fillStyle = hatched;
        for (const [from, to] of unknownParts(row, header.heat.columns)) {
            const left = namesWidth + from * columnWidth;
            context.fillRect(left, top, (to - from) * columnWidth, high);
        }
        context.fillStyle = colours.paper;
        if (gap > 0) context.fillRect(namesWidth, top + high - gap, across, gap);
        if (row.rank.first_oom_ns !== null && row.rank.start_after_ns !== null) {
            const at =
                (row.rank.first_oom_ns + row.rank.start_after_ns) /
                (header.heat.column_ns * header.heat.columns);
            context.fillStyle = colours.paper;
            context.fillRect(namesWidth + at * across - 2.5, top, 5, high - gap);
            context.fillStyle = colours.ink;
            context.fillRect(namesWidth + at * across - 1.5, top, 3, high - gap);
        }
        if (high >= tall) drawName(context, row, top, colours);
    });
    for (const [row, colour] of [
        [marks.shown, colours.ink],
        [marks.focused, colours.mark],
    ] as const) {
        if (row < 0) continue;
        const top = heatTop(layout, row);
        const high = Math.max(3, heatTop(layout, row + 1) - top);
        context.strokeStyle = colour;
        context.lineWidth = 1.5;
        context.strokeRect(1, Math.max(1, top - 0.5), width - 2, high);
    }
}

function drawName(
    context: CanvasRenderingContext2D,
    { rank: row }: HeatRow,
    top: number,
    colours: Colours,
): void {
    const failed = rankState(row) === "OOM";
    const parts = [
        shortName(row),
        row.generation === null ? "" : `gen. ${row.generation}`,
        row.gpu === 0 || row.gpu === null ? "" : `GPU ${row.gpu}`,
    ];
    context.font = font(10.5);
    context.fillStyle = failed ? colours.oom : colours.ink;
    const state = failed ? " · OOM" : ""; // stays, even if the name is cut off
    const room = namesWidth - 8 - context.measureText(state).width;
    const name = fitText(context, parts.filter((part) => part).join(" · "), room);
    context.fillText(name + state, 4, top + tall - 4);
}
