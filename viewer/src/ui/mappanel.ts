// The panel of addresses over time, and the marks above it. A picture of many blocks takes longer
// than a frame, so it is computed in steps. Until it is ready, the last one stays if only its
// colours change; otherwise the overview is drawn.
import { finish } from "../data/steps";
import type { WindowSweep } from "../data/sweep";
import { kindShares } from "../draw/kinds";
import { cellsOf, drawMap, edgesVisible, mapFrame } from "../draw/map";
import { type Picture as Pixels, sized } from "../draw/pixels";
import { exactShares } from "../draw/shares";
import { Surface } from "../draw/surface";
import { same } from "../draw/same";
import { byId } from "./dom";
import { MapMarks } from "./mapmarks";
import { Slices } from "./slices";
import type { PageView, Picture } from "./view";

const immediateBlocks = 50_000; // with at most this many, the picture is computed within the frame
const mostCells = 400_000; // of a picture by kind, which needs a grid for each kind

export class MapPanel implements Picture {
    readonly surface = new Surface(byId("map").parentElement!);
    private readonly marks: MapMarks;
    private readonly painting = new Slices();
    private pixels: Pixels | undefined;
    private painted: unknown[] = []; // what `pixels` show; empty = they are not ready
    private mode = ""; // what is on the canvas, in words
    private modeOf: unknown[] = []; // the window, size and theme of what is on the canvas

    constructor(private readonly page: PageView) {
        this.marks = new MapMarks(page, this.surface);
    }

    /** Returns whether there is room for it. */
    draw(): boolean {
        if (!this.surface.fit()) return false;
        const { view, model, kinds, sweep, colours } = this.page;
        const layer = this.surface.base;
        const { width, height } = layer.canvas;
        const of = [model, view.t0, view.t1, view.a0, view.a1, width, height, colours];
        if (!sweep) {
            this.painting.stop();
            drawMap(layer, model, view, "overview", colours);
            this.mode = "shares of area (overview)";
            if (kinds) {
                this.mode += `; coloured by ${kinds.by} once a window with fewer blocks rests`;
            }
        } else if (!kinds && edgesVisible(mapFrame(layer, view), model, sweep)) {
            this.painting.stop();
            drawMap(layer, model, view, sweep, colours);
            this.mode = "every block (darker: lives longer than a quarter of the run)";
        } else if (this.compute([...of, sweep, kinds], sweep)) {
            drawMap(layer, model, view, this.pixels!, colours);
            this.mode = kinds
                ? `coloured by ${kinds.by}, mixed by area`
                : "shares of area per pixel";
        } else if (!same(of, this.modeOf)) {
            drawMap(layer, model, view, "overview", colours);
            this.mode = "shares of area (overview)";
        }
        this.modeOf = of;
        this.showMode();
        return true;
    }

    /** Says what the map shows, and what is still to come. */
    showMode(): void {
        const { view, kinds } = this.page;
        const shown = kinds?.by ?? "state";
        const sorting = view.colour === shown ? "" : `; sorting blocks by ${view.colour}`;
        byId("map-mode").textContent = this.mode + sorting;
    }

    drawOver(): void {
        this.marks.draw();
    }

    // Whether `pixels` show `wanted`. If not, they will later, and the map is then drawn again.
    private compute(wanted: unknown[], sweep: WindowSweep): boolean {
        if (same(wanted, this.painted)) return true;
        this.painting.stop();
        this.painted = [];
        const { view, model, kinds, colours } = this.page;
        const layer = this.surface.base;
        const frame = mapFrame(layer, view);
        const { columns, rows } = cellsOf(layer, frame, kinds ? mostCells : Infinity);
        const pixels = (this.pixels = sized(this.pixels, columns, rows));
        const steps = kinds
            ? kindShares(pixels, model, view, sweep, kinds, colours)
            : exactShares(pixels, model, view, sweep, colours);
        if (sweep.blocks.length <= immediateBlocks) {
            finish(steps);
            this.painted = wanted;
            return true;
        }
        this.painting.run(steps, 0, () => {
            this.painted = wanted;
            this.draw();
        });
        return false;
    }
}
