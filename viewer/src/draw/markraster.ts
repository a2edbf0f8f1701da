// Draws many marked blocks as one image over the map. Every block covers at least one cell. A cell
// is as opaque as it is covered, so the map below stays visible.
import { CoverageGrid } from "../data/coverage";
import type { Area } from "../data/hits";
import { rgb } from "./colours";
import type { MapFrame } from "./map";

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

    draw(colour: string): OffscreenCanvas {
        const { columns, rows } = this.grid;
        const canvas = new OffscreenCanvas(columns, rows);
        const context = canvas.getContext("2d")!;
        const image = context.createImageData(columns, rows);
        const [red, green, blue] = rgb(colour);
        this.grid.shares().forEach((share, cell) => {
            if (share > 1e-6) {
                image.data.set(
                    [red, green, blue, Math.ceil(255 * Math.min(mostOpaque, share))],
                    cell * 4,
                );
            }
        });
        context.putImageData(image, 0, 0);
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
