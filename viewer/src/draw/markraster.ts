// Draws many marked blocks as one image over the map. Every block covers at least one cell. A cell
// is as opaque as it is covered, so the map below stays visible.
import { CoverageGrid, eachRow } from "../data/coverage";
import type { Area } from "../data/hits";
import type { MapFrame } from "./map";
import { pixelOfColour, sized } from "./pixels";

const mostCells = 400_000;
const mostOpaque = 0.85;

export class MarkRaster {
    private readonly grid: CoverageGrid;
    private readonly across: number; // cells per tick
    private readonly down: number; // cells per byte

    constructor(
        readonly area: Area,
        width: number,
        height: number,
        ratio: number,
    ) {
        const step = Math.max(1 / ratio, Math.sqrt((width * height) / mostCells));
        this.grid = new CoverageGrid(
            Math.max(1, Math.round(width / step)),
            Math.max(1, Math.round(height / step)),
        );
        this.across = this.grid.columns / (area.t1 - area.t0);
        this.down = this.grid.rows / (area.a1 - area.a0);
    }

    add(start: number, end: number, offset: number, size: number): void {
        const { area, across, down } = this;
        const left = (start - area.t0) * across;
        const top = (offset - area.a0) * down;
        this.grid.add(
            left,
            Math.max(left + 1, (end - area.t0) * across),
            top,
            Math.max(top + 1, top + size * down),
        );
    }

    /** Colours the cells in steps. */
    *draw(colour: string): Generator<void, OffscreenCanvas> {
        const { columns, rows } = this.grid;
        const { image, pixels } = sized(undefined, columns, rows);
        const opaque = pixelOfColour(colour) & 0xffffff;
        yield* eachRow([this.grid], (row, [shares]) => {
            for (let column = 0; column < columns; ++column) {
                const share = shares[column];
                if (share <= 1e-6) continue;
                const alpha = Math.ceil(255 * Math.min(mostOpaque, share));
                pixels[row * columns + column] = ((alpha << 24) | opaque) >>> 0;
            }
        });
        const canvas = new OffscreenCanvas(columns, rows);
        canvas.getContext("2d")!.putImageData(image, 0, 0);
        return canvas;
    }
}

/** Draws the image in the window of `frame`, which may have moved since. */
export function drawRaster(
    context: CanvasRenderingContext2D,
    frame: MapFrame,
    picture: OffscreenCanvas,
    area: Area,
): void {
    context.save();
    context.beginPath();
    context.rect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
    context.clip();
    context.imageSmoothingEnabled = false;
    const [left, top] = [frame.x(area.t0), frame.y(area.a0)];
    context.drawImage(picture, left, top, frame.x(area.t1) - left, frame.y(area.a1) - top);
    context.restore();
}
