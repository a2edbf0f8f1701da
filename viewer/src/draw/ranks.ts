// Draws all processes of a job side by side: peak reserved memory as a share of the capacity, so
// that a process that differs is visible at once. Failed processes have a mark as well as a colour.
import { formatBytes } from "../data/format";
import type { Rank } from "../data/header";
import {
    fillOf,
    generationStarts,
    rankState,
    shortName,
    shownPeak,
    slotsOf,
    worstOf,
} from "../data/ranks";
import type { Colours } from "./colours";
import { fitText, font, type Layer } from "./surface";

const above = 9; // room for marks
const below = 3; // a line under the processes that are in the file in full
const text = 12; // names, if there is room

export function drawRanks(
    layer: Layer,
    ranks: Rank[],
    shown: number,
    focused: number,
    colours: Colours,
): void {
    const { context, width, height } = layer;
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, height);
    const slots = slotsOf(ranks.length, width);
    const named = slots.width >= 60;
    const floor = height - below - (named ? text : 0);
    const most = ranks.reduce((all, row) => Math.max(all, shownPeak(row)), 1);
    const someAsLines = ranks.some(({ device }) => device === null);
    // One bar per row, or per pixel if rows are thinner than a pixel.
    const columns = slots.width >= 1 ? ranks.length : Math.ceil(width);
    for (let i = 0; i < columns; ++i) {
        const from = slots.width >= 1 ? i : Math.floor(i / slots.width);
        if (from >= ranks.length) break;
        const to =
            slots.width >= 1
                ? i + 1
                : Math.max(from + 1, Math.min(ranks.length, Math.floor((i + 1) / slots.width)));
        const row = ranks[worstOf(ranks, from, to)];
        // Whole pixels: otherwise the seams between narrow bars look like stripes.
        const left = slots.width >= 1 ? Math.floor(slots.first + i * slots.width) : i;
        const wide =
            slots.width >= 1
                ? Math.max(
                      1,
                      Math.floor(slots.first + (i + 1) * slots.width) -
                          left -
                          (slots.width >= 6 ? 2 : 0),
                  )
                : 1;
        context.fillStyle = colours.ground;
        context.fillRect(left, above, wide, floor - above);
        const state = rankState(row);
        const colour =
            state === "OOM" ? colours.oom : state === "retries" ? colours.retry : colours.useLong;
        context.fillStyle = colour;
        const full = Math.max(1, fillOf(row, most) * (floor - above));
        context.fillRect(left, floor - full, wide, full);
        if (state) drawSign(context, state, left + wide / 2, colour);
        if (someAsLines && row.device !== null) {
            context.fillStyle = colours.mark;
            context.fillRect(left, floor + 1, wide, 2);
        }
        if (named) drawName(context, row, left, wide, height - 2, colours);
    }
    for (const at of generationStarts(ranks)) {
        context.fillStyle = colours.ink;
        context.fillRect(Math.floor(slots.first + at * slots.width) - 1, 0, 1, height);
    }
    for (const [row, colour] of [
        [focused, colours.mark],
        [shown, colours.ink],
    ] as const) {
        if (row < 0) continue;
        context.strokeStyle = colour;
        context.lineWidth = 1.5;
        const wide = Math.max(5, slots.width - 1);
        context.strokeRect(
            Math.max(
                1,
                Math.min(
                    width - wide - 1,
                    slots.first + (row + 0.5) * slots.width - wide / 2 - 0.5,
                ),
            ),
            1,
            wide,
            height - 2,
        );
    }
}

function drawSign(
    context: CanvasRenderingContext2D,
    state: "OOM" | "retries",
    x: number,
    colour: string,
): void {
    context.fillStyle = colour;
    context.beginPath();
    if (state === "OOM") {
        context.moveTo(x - 4, 1);
        context.lineTo(x + 4, 1);
        context.lineTo(x, 8);
    } else {
        context.arc(x, 4.5, 3, 0, 2 * Math.PI);
    }
    context.fill();
}

function drawName(
    context: CanvasRenderingContext2D,
    row: Rank,
    left: number,
    wide: number,
    base: number,
    colours: Colours,
): void {
    context.font = font(10.5);
    context.textAlign = "left";
    context.fillStyle = colours.faint;
    const generation = row.generation === null ? "" : `gen. ${row.generation} · `;
    const name = generation + shortName(row);
    context.fillText(
        fitText(context, `${name} · ${formatBytes(shownPeak(row))}`, wide - 8),
        left + 4,
        base,
    );
}
