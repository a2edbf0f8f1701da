// Draws the stacked areas of memory over time pixel by pixel. Each column shows the mean over its
// time, and edges are anti-aliased by area. Drawing paths takes several times as long.
import type { Bins } from "../data/model";
import type { Colours } from "./colours";
import { blended, pictureOf, pixelOfColour } from "./pixels";
import type { Layer } from "./surface";
import type { Window } from "./timeaxis";

export interface AreaFrame {
    left: number; // CSS pixels
    right: number;
    top: number;
    bottom: number;
    most: number; // bytes at the top
    capacity: number | null; // memory outside the pool is drawn downwards from here
}

export interface AreaData {
    bins: Bins;
    from: number;
    to: number;
}

/** The bins below a column of pixels of the window. Empty where the data have none. */
export function binsBelow(
    { bins, from, to }: AreaData,
    { t0, t1 }: Window,
    columns: number,
    column: number,
): [begin: number, end: number] {
    const at = (edge: number): number =>
        ((t0 + (edge / columns) * (t1 - t0) - from) * bins.count) / (to - from);
    return [Math.max(0, at(column)), Math.min(bins.count, at(column + 1))];
}

/** The mean of a row of bins. The first and the last one may lie in the range only in part. */
export function meanIn(values: Float64Array, begin: number, end: number): number {
    let sum = 0;
    for (let bin = Math.floor(begin); bin < end; ++bin) {
        sum += values[bin] * (Math.min(end, bin + 1) - Math.max(begin, bin));
    }
    return sum / (end - begin);
}

/** The highest value of a row of bins. */
export function highestIn(values: Float64Array, begin: number, end: number): number {
    let most = 0;
    for (let bin = Math.floor(begin); bin < end; ++bin) most = Math.max(most, values[bin]);
    return most;
}

/** `areas`: from bottom to top, each with its colour. An empty colour means hatched. */
export function drawAreas(
    layer: Layer,
    data: AreaData,
    window: Window,
    frame: AreaFrame,
    areas: [values: Float64Array, colour: string][],
    colours: Colours,
): void {
    const { ratio } = layer;
    const left = Math.round(frame.left * ratio);
    const top = Math.round(frame.top * ratio);
    const columns = Math.round(frame.right * ratio) - left;
    const rows = Math.round(frame.bottom * ratio) - top;
    if (columns < 1 || rows < 1) return;
    const picture = pictureOf(layer, columns, rows);
    const { pixels } = picture;
    const ground = pixelOfColour(colours.ground);
    const [hole, hatch, other, ink] = [colours.hole, colours.hatch, colours.other, colours.ink].map(
        pixelOfColour,
    );
    const fills = areas.map(([, colour]) => (colour ? pixelOfColour(colour) : hole));
    pixels.fill(ground);
    const { bins } = data;
    const scale = rows / frame.most;
    let lastLine = -1;
    const fill = (
        column: number,
        from: number,
        to: number,
        colour: number,
        hatched: boolean,
    ): void => {
        from = Math.max(0, from);
        to = Math.min(rows, to);
        if (!(to > from)) return;
        for (let row = Math.floor(from); row < to; ++row) {
            const share = Math.min(row + 1, to) - Math.max(row, from);
            const y = rows - 1 - row;
            const at = y * columns + column;
            const paint = hatched && ((column + y) & 7) < 2 ? hatch : colour;
            pixels[at] = share >= 1 ? paint : blended(pixels[at], paint, ground, share);
        }
    };
    for (let column = 0; column < columns; ++column) {
        const [begin, end] = binsBelow(data, window, columns, column);
        if (!(end > begin)) {
            lastLine = -1;
            continue;
        }
        let height = 0;
        for (let i = 0; i < areas.length; ++i) {
            const next = height + meanIn(areas[i][0], begin, end) * scale;
            fill(column, height, next, fills[i], areas[i][1] === "");
            height = next;
        }
        if (frame.capacity !== null) {
            fill(
                column,
                (frame.capacity - meanIn(bins.other, begin, end)) * scale,
                frame.capacity * scale,
                other,
                false,
            );
        }
        // The line shows the column's highest allocated memory, which the mean alone would hide.
        const most = highestIn(bins.allocated_max, begin, end);
        const line = Math.max(0, Math.min(rows - 1, rows - 1 - Math.floor(most * scale)));
        const previous = lastLine < 0 ? line : lastLine;
        for (let y = Math.min(line, previous); y <= Math.max(line, previous); ++y) {
            const at = y * columns + column;
            pixels[at] = blended(pixels[at], ink, pixels[at], 0.4);
        }
        lastLine = line;
    }
    layer.context.putImageData(picture.image, left, top);
}
