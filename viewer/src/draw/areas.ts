// Draws the stacked areas of memory over time pixel by pixel. Each column shows the mean over its
// time, and edges are anti-aliased by area. Drawing paths takes several times as long.
import type { Bins } from "../data/model";
import type { Colours } from "./colours";
import { blended, pictureOf, pixelOfColour } from "./pixels";
import type { Layer } from "./surface";

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

/** `areas`: from bottom to top, each with its colour. An empty colour means hatched. */
export function drawAreas(
    layer: Layer,
    data: AreaData,
    t0: number,
    t1: number,
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
    const binsPerTick = bins.count / (data.to - data.from);
    const scale = rows / frame.most;
    const means = new Float64Array(areas.length + 1);
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
        const begin = Math.max(0, (t0 + (column / columns) * (t1 - t0) - data.from) * binsPerTick);
        const end = Math.min(
            bins.count,
            (t0 + ((column + 1) / columns) * (t1 - t0) - data.from) * binsPerTick,
        );
        if (!(end > begin)) {
            lastLine = -1;
            continue;
        }
        means.fill(0);
        let most = 0;
        for (let bin = Math.floor(begin); bin < end; ++bin) {
            const weight = (Math.min(end, bin + 1) - Math.max(begin, bin)) / (end - begin);
            for (let i = 0; i < areas.length; ++i) means[i] += weight * areas[i][0][bin];
            means[areas.length] += weight * bins.other[bin];
            if (bins.allocated_max[bin] > most) most = bins.allocated_max[bin];
        }
        let height = 0;
        for (let i = 0; i < areas.length; ++i) {
            const next = height + means[i] * scale;
            fill(column, height, next, fills[i], areas[i][1] === "");
            height = next;
        }
        if (frame.capacity !== null) {
            fill(
                column,
                (frame.capacity - means[areas.length]) * scale,
                frame.capacity * scale,
                other,
                false,
            );
        }
        // The line shows the column's highest allocated memory, which the mean alone would hide.
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
