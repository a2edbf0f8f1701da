// The panel of memory over time, with the cursor and the mark above it.
import type { AreaData } from "../draw/areas";
import { drawChart, drawCursor, drawMark, drawSplit, type Overlay } from "../draw/chart";
import { signsHeight } from "../draw/markers";
import { drawRanges } from "../draw/ranges";
import { type Layer, Surface } from "../draw/surface";
import { axisHeight, plotLeft, plotRight, timeX } from "../draw/timeaxis";
import { byId } from "./dom";
import { rangeLabels } from "./rangepanel";
import type { PageView, Picture } from "./view";

/** What the areas show: the exact events of the window, or the overview of the whole run. */
export function chartData({ model, sweep }: PageView): AreaData {
    return sweep ?? { bins: model.bins, from: 0, to: model.lastTick };
}

export class ChartPanel implements Picture {
    readonly surface = new Surface(byId("chart").parentElement!);

    constructor(private readonly page: PageView) {}

    /** Returns whether there is room for it. */
    draw(): boolean {
        if (!this.surface.fit()) return false;
        this.paintBase(this.surface.base);
        return true;
    }

    drawOver(): void {
        this.paintOver(this.surface.over, this.surface.clearOver());
    }

    paint(layer: Layer): void {
        this.paintBase(layer);
        this.paintOver(layer, layer.context);
    }

    private paintBase(layer: Layer): void {
        const { model, view, colours } = this.page;
        drawChart(layer, model, chartData(this.page), view, this.overlay(), colours);
    }

    private overlay(): Overlay | null {
        const { model, view } = this.page;
        const { curves, head, lastTick } = model;
        const bytes = curves.byRow[view.whatif];
        return bytes
            ? { name: head.whatif[view.whatif].name, times: curves.times, bytes, endTick: lastTick }
            : null;
    }

    private paintOver(layer: Layer, context: CanvasRenderingContext2D): void {
        const { model, view, heap, colours } = this.page;
        const bottom = layer.height - axisHeight;
        const inside = (x: number): boolean => x >= plotLeft && x <= plotRight(layer);
        drawRanges(layer, context, view, rangeLabels(this.page), signsHeight, bottom, colours);
        const mark = timeX(layer, view, view.mark);
        if (view.mark >= 0 && inside(mark)) drawMark(context, mark, 4, bottom, colours);
        const x = timeX(layer, view, view.cursor);
        if (inside(x)) drawCursor(context, x, signsHeight, bottom, colours); // never over a sign
        if (model.complete) drawSplit(layer, context, model, heap, colours);
    }
}
