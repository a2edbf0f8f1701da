// The panel of addresses over time, and the marks above it.
import { drawKinds } from "../draw/kinds";
import { drawMap } from "../draw/map";
import { Surface } from "../draw/surface";
import { byId } from "./dom";
import { mapLegend } from "./legends";
import { MapMarks } from "./mapmarks";
import type { LegendEntry, PageView, Picture } from "./view";

export class MapPanel implements Picture {
    readonly surface = new Surface(byId("map").parentElement!);
    readonly title = "Address × time";
    readonly place = "left";
    private readonly marks: MapMarks;

    constructor(private readonly page: PageView) {
        this.marks = new MapMarks(page, this.surface);
    }

    get legend(): LegendEntry[] {
        return mapLegend(this.page);
    }

    /** Returns whether there is room for it. */
    draw(): boolean {
        if (!this.surface.fit()) return false;
        const began = performance.now();
        const { view, model, kinds, sweep, colours } = this.page;
        let text = "";
        if (kinds && sweep) {
            drawKinds(this.surface.base, model, view, sweep, kinds, colours);
            text = `coloured by ${view.colour}, mixed by area`;
        } else {
            const mode = drawMap(this.surface.base, model, view, sweep, colours);
            text =
                mode === "overview"
                    ? "shares of area (overview)"
                    : mode === "exact shares"
                      ? "shares of area per pixel"
                      : "every block (darker: lives longer than a quarter of the run)";
            if (kinds) text += `; coloured by ${view.colour} once a window with fewer blocks rests`;
            else if (view.colour !== "state") text += `; sorting blocks by ${view.colour}`;
        }
        document.documentElement.dataset.mapMs = (performance.now() - began).toFixed(1);
        byId("map-mode").textContent = text;
        return true;
    }

    drawOver(): void {
        this.marks.draw();
    }
}
