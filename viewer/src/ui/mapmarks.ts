// The layer above the map. What stands still while the cursor moves is drawn once and kept. All
// blocks of a search or a stack are marked: few as shapes, many as one image. The image is computed
// in steps once the window rests. Until then the old one moves along.
import { drawCursor } from "../draw/chart";
import { type Area, visitHits, type Wanted } from "../data/hits";
import { finish } from "../data/steps";
import { mapFrame, type MapFrame } from "../draw/map";
import { drawRaster, MarkRaster } from "../draw/markraster";
import { drawAtCursor, drawBlocks, noStrip, outlineBlock, outlineHole } from "../draw/marks";
import { drawRanges } from "../draw/ranges";
import type { Surface } from "../draw/surface";
import { rangesOf } from "../state/store";
import { same } from "../draw/same";
import { Slices } from "./slices";
import type { PageView } from "./view";

const mostShapes = 4000; // drawn one by one
const lookedAtAtOnce = 100_000; // blocks; with more, the marks are computed once the window rests
const restMs = 160;

interface Marked {
    of: unknown[];
    wanted: Wanted | null;
    rows: number[];
    picture: OffscreenCanvas | null;
    area: Area;
}

const nothing: Marked = {
    of: [],
    wanted: null,
    rows: [],
    picture: null,
    area: { t0: 0, t1: 1, a0: 0, a1: 1 },
};

export class MapMarks {
    private readonly still = document.createElement("canvas");
    private stillOf: unknown[] = [];
    private marked = nothing;
    private seeking: unknown[] | null = null;
    private readonly seek = new Slices();
    private readonly strip = noStrip();

    constructor(
        private readonly page: PageView,
        private readonly surface: Surface,
    ) {}

    draw(): void {
        const { model, view, heap, pins, kinds, colours } = this.page;
        const layer = this.surface.over;
        const context = this.surface.clearOver();
        if (!model.complete) return;
        const frame = mapFrame(layer, view);
        const marked = this.find(frame, layer.ratio);
        const { t0, t1, a0, a1, selected } = view;
        const of = [
            model,
            t0,
            t1,
            a0,
            a1,
            layer.canvas.width,
            layer.canvas.height,
            pins,
            marked,
            selected,
            colours,
        ];
        if (!same(of, this.stillOf)) {
            this.stillOf = of;
            this.still.width = layer.canvas.width;
            this.still.height = layer.canvas.height;
            const kept = this.still.getContext("2d")!;
            kept.setTransform(layer.ratio, 0, 0, layer.ratio, 0, 0);
            drawBlocks(kept, frame, model, pins, colours.pin, colours.halo, 3);
            if (marked.picture) drawRaster(kept, frame, marked.picture, marked.area);
            drawBlocks(kept, frame, model, marked.rows, colours.mark, colours.halo, 2);
            if (selected >= 0) outlineBlock(kept, frame, model, selected, colours);
        }
        if (pins.size > 0 || marked.wanted || selected >= 0) {
            context.drawImage(this.still, 0, 0, layer.width, layer.height);
        }
        const ranges = rangesOf(view).map((range) => ({ range, text: "" }));
        drawRanges(layer, context, view, ranges, frame.top, frame.bottom, colours);
        const { hole } = this.page;
        if (hole) outlineHole(context, frame, hole, heap.tick, colours);
        const x = frame.x(heap.tick);
        if (x >= frame.left && x <= frame.right) {
            drawCursor(context, x, frame.top, frame.bottom, colours);
        }
        drawAtCursor(layer, frame, view, model, heap, { pins, kinds }, colours, this.strip);
    }

    private find(frame: MapFrame, ratio: number): Marked {
        const { model, heap, marked: wanted, colours } = this.page;
        const { t0, t1, a0, a1 } = this.page.view;
        const size = [frame.right - frame.left, frame.bottom - frame.top];
        const of = [model, wanted, t0, t1, a0, a1, colours, ratio, ...size];
        if (wanted !== this.marked.wanted) this.marked = nothing;
        if (!wanted || same(of, this.marked.of)) {
            this.stop();
            return this.marked;
        }
        if (this.seeking && same(of, this.seeking)) return this.marked;
        this.stop();
        const area = { t0, t1, a0, a1 };
        let rows: number[] = [];
        let raster = null as MarkRaster | null;
        const { start, end, offset, size: bytes } = model.blocks;
        const add = (row: number): void =>
            raster!.add(start[row], Math.min(end[row], model.lastTick), offset[row], bytes[row]);
        const visiting = visitHits(model, area, wanted, (row) => {
            if (raster) {
                add(row);
                return;
            }
            rows.push(row);
            if (rows.length <= mostShapes) return;
            raster = new MarkRaster(area, size[0], size[1], ratio);
            rows.forEach(add);
            rows = [];
        });
        const steps = (function* (): Generator<void, Marked> {
            yield* visiting;
            const picture = raster ? yield* raster.draw(colours.mark) : null;
            return { of, wanted, rows, picture, area };
        })();
        if (model.live.startsIn(t0, t1) + heap.live.length <= lookedAtAtOnce) {
            return (this.marked = finish(steps));
        }
        this.seeking = of;
        this.seek.run(steps, restMs, (marked) => {
            this.seeking = null;
            this.marked = marked;
            this.draw();
        });
        return this.marked;
    }

    private stop(): void {
        this.seek.stop();
        this.seeking = null;
    }
}
