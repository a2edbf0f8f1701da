// Draws memory of all processes over time: a row each, darker where more is in use. The first
// rows are tall enough for their names.
import { heatBytes, type HeatMeasure, type HeatRow, heatShare } from "../data/heat";
import type { Header } from "../data/header";
import { rankState } from "../data/ranks";
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
    const thin = count <= 60 ? tall : count <= 3 * named ? 6 : 2;
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

/** White to dark red by way of orange, for a share of 0 to 1. */
export function heatColour(share: number): [number, number, number] {
    const stops: [number, number, number][] = [
        [246, 244, 238],
        [253, 208, 126],
        [236, 112, 44],
        [150, 20, 40],
    ];
    const at = Math.max(0, Math.min(1, share)) * (stops.length - 1);
    const from = Math.min(stops.length - 2, Math.floor(at));
    return stops[from].map((value, i) =>
        Math.round(value + (stops[from + 1][i] - value) * (at - from)),
    ) as [number, number, number];
}

export function drawHeat(
    context: CanvasRenderingContext2D,
    width: number,
    header: Header,
    rows: HeatRow[],
    measure: HeatMeasure,
    colours: Colours,
): void {
    const layout = heatLayout(rows.length);
    const { columns } = header.heat;
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, layout.height);
    const wide = (width - namesWidth) / columns;
    rows.forEach((row, i) => {
        const top = heatTop(layout, i);
        const high = heatTop(layout, i + 1) - top;
        const gap = high >= 6 ? 1 : 0;
        for (let column = 0; column < columns; ++column) {
            const bytes = heatBytes(header, row, measure, column);
            context.fillStyle =
                bytes === null
                    ? colours.ground
                    : `rgb(${heatColour(heatShare(header, measure, bytes)).join()})`;
            const left = Math.floor(namesWidth + column * wide);
            context.fillRect(
                left,
                top,
                Math.floor(namesWidth + (column + 1) * wide) - left,
                high - gap,
            );
        }
        if (row.rank.first_oom_ns !== null && row.rank.start_after_ns !== null) {
            const at = (row.rank.first_oom_ns + row.rank.start_after_ns) / header.heat.column_ns;
            context.fillStyle = colours.ink;
            context.fillRect(namesWidth + at * wide - 1, top, 3, high - gap);
        }
        if (high >= tall) {
            context.font = font(10.5);
            const failed = rankState(row.rank) === "OOM";
            context.fillStyle = failed ? colours.oom : colours.ink;
            const { rank, pid, gpu } = row.rank;
            const name = rank === null ? `pid ${pid}` : `rank ${rank}`;
            context.fillText(
                fitText(context, `${name} · GPU ${gpu}${failed ? " · OOM" : ""}`, namesWidth - 6),
                2,
                top + tall - 4,
            );
        }
    });
}
