// The panel of segments at the cursor, and the marks above it.
import { drawSegmentMarks } from "../draw/segmentmarks";
import { drawSegments, hitSegment, type Placed } from "../draw/segments";
import { drawNotice, type Layer, Surface } from "../draw/surface";
import { byId, hideTip, showTip } from "./dom";
import { blockText, freeText } from "./input";
import type { PageView, Picture } from "./view";

export class SegmentsPanel implements Picture {
    readonly surface = new Surface(byId("segments").parentElement!);
    private placed: Placed[] = [];

    constructor(private readonly page: PageView) {
        const { canvas } = this.surface.base;
        canvas.addEventListener("pointermove", (event) => {
            showTip(() => this.textAt(event), event.clientX, event.clientY);
        });
        canvas.addEventListener("pointerleave", hideTip);
        canvas.addEventListener("click", (event) => {
            const hit = this.hit(event);
            if (hit) page.change({ selected: hit.block, hole: hit.hole?.[0] ?? -1 });
        });
    }

    draw(): void {
        const { page, surface } = this;
        if (!surface.fit()) return;
        if (!page.model.complete) {
            this.placed = [];
            drawNotice(surface.base, "Reading the blocks.", page.colours);
            return;
        }
        this.placed = this.paintBase(surface.base);
    }

    drawOver(): void {
        const context = this.surface.clearOver();
        if (this.page.model.complete) this.paintOver(this.surface.over, context, this.placed);
    }

    paint(layer: Layer): void {
        this.paintOver(layer, layer.context, this.paintBase(layer));
    }

    private paintBase(layer: Layer): Placed[] {
        const { model, heap, view, kinds, colours, pins } = this.page;
        return drawSegments(layer, model, heap, view.order, { pins, kinds }, colours);
    }

    private paintOver(layer: Layer, context: CanvasRenderingContext2D, placed: Placed[]): void {
        const { model, heap, view, hole, marked, colours } = this.page;
        drawSegmentMarks(
            context,
            layer.ratio,
            model,
            placed,
            heap.tick,
            marked,
            view.selected,
            hole,
            colours,
        );
    }

    private textAt(event: MouseEvent): string {
        const hit = this.hit(event);
        if (!hit) return "";
        const { page } = this;
        if (hit.block >= 0) return blockText(page, hit.block);
        return hit.hole ? freeText(page, page.heap.tick, hit.hole[0]) : "";
    }

    private hit(event: MouseEvent): ReturnType<typeof hitSegment> {
        const box = this.surface.base.canvas.getBoundingClientRect();
        return hitSegment(
            this.page.model,
            this.placed,
            event.clientX - box.left,
            event.clientY - box.top,
        );
    }
}
