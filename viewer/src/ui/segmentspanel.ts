// The panel of segments at the cursor, and above it what is marked in them.
import { kindColour } from "../draw/kinds";
import { drawSegmentMarks } from "../draw/segmentmarks";
import { drawSegments, type Placed } from "../draw/segments";
import { drawNotice, type Layer, Surface } from "../draw/surface";
import { byId } from "./dom";
import type { Page } from "./page";

export class SegmentsPanel {
    readonly surface = new Surface(byId("segments").parentElement!);
    placed: Placed[] = [];

    constructor(private readonly page: Page) {}

    draw(): void {
        const { page, surface } = this;
        if (!surface.fit()) return;
        if (!page.model.complete) {
            this.placed = [];
            drawNotice(surface.base, "The blocks are being read.", page.colours);
            return;
        }
        this.placed = this.paint(surface.base);
        this.drawMarks();
    }

    /** The segments; with `over` also what is marked in them. */
    paint(layer: Layer, over?: CanvasRenderingContext2D): Placed[] {
        const { model, heap, view, kinds, colours, isPin } = this.page;
        const colourOf = kinds
            ? (block: number): string => kindColour(colours, kinds.of[block])
            : null;
        const placed = drawSegments(layer, model, heap, view.order, { isPin, colourOf }, colours);
        if (over) this.paintMarks(layer, over, placed);
        return placed;
    }

    drawMarks(): void {
        const context = this.surface.clearOver();
        if (this.page.model.complete) this.paintMarks(this.surface.over, context, this.placed);
    }

    private paintMarks(layer: Layer, context: CanvasRenderingContext2D, placed: Placed[]): void {
        const { model, heap, view, colours } = this.page;
        drawSegmentMarks(
            context,
            layer.ratio,
            model,
            placed,
            heap.tick,
            this.page.markedStacks(),
            view.selected,
            colours,
        );
    }
}
