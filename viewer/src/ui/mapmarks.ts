// Above the map: what stands still while the cursor moves is drawn once and kept, and blocks of a
// search or of a stack are looked for once per window.
import { drawCursor } from "../draw/chart";
import { mapFrame } from "../draw/map";
import { drawAtCursor, drawBlocks, outlineBlock } from "../draw/marks";
import type { DeviceModel } from "../data/model";
import type { Page } from "./page";

const mostMarked = 20_000;
const scannedAtOnce = 200_000;  // blocks; of more the marks come once the window rests

export class MapMarks {
    private readonly still = document.createElement("canvas");
    private stillOf: unknown[] = [];
    private marked: number[] = [];
    private markedOf: unknown[] = [];
    private timer = 0;
    private strip: { of: unknown[]; pins: number[] } = { of: [], pins: [] };
    private pinsOf: Set<number> | null = null;

    draw(page: Page, pins: Set<number>, matches: Uint8Array | null): void {
        const { model, view, colours, map } = page;
        const layer = map.over;
        const context = map.clearOver();
        if (!model.complete) return;
        const frame = mapFrame(layer, view);
        const stack = view.culprit >= 0 ? -1 : view.stack;
        const rows = this.find(page, model, matches, view.fold ? -2 - stack : stack);
        const { t0, t1, a0, a1, selected } = view;
        const of = [model, t0, t1, a0, a1, layer.canvas.width, layer.canvas.height, pins, rows, selected, colours];
        if (!same(of, this.stillOf)) {
            this.stillOf = of;
            this.still.width = layer.canvas.width;
            this.still.height = layer.canvas.height;
            const kept = this.still.getContext("2d")!;
            kept.setTransform(layer.ratio, 0, 0, layer.ratio, 0, 0);
            drawBlocks(kept, frame, model, pins, colours.pin, colours.halo, 3);
            drawBlocks(kept, frame, model, rows, colours.mark, colours.halo, 2);
            if (selected >= 0) outlineBlock(kept, frame, model, selected, colours);
        }
        if (pins.size > 0 || rows.length > 0 || selected >= 0) context.drawImage(this.still, 0, 0, layer.width, layer.height);
        const x = frame.x(page.heap.tick);
        if (x >= frame.left && x <= frame.right) drawCursor(context, x, frame.top, frame.bottom, colours);
        if (pins !== this.pinsOf) this.strip.of = [];
        this.pinsOf = pins;
        drawAtCursor(layer, frame, view, model, page.heap, page.isPin, colours, this.strip);
    }

    /**
     * Blocks of the search and of the stack inside the window, at most `mostMarked` of them. `stack`
     * names the marked one; a node of the folded tree is told from one of the whole.
     */
    private find(page: Page, model: DeviceModel, matches: Uint8Array | null, stack: number): number[] {
        const { t0, t1 } = page.view;
        const of = [model, t0, t1, matches, stack];
        if (same(of, this.markedOf)) return this.marked;
        const sameSearch = same([model, matches, stack], [this.markedOf[0], this.markedOf[3], this.markedOf[4]]);
        clearTimeout(this.timer);
        const below = page.view.culprit >= 0 ? null : page.panel.marked();
        if (!matches && !below) {
            this.markedOf = of;
            return (this.marked = []);
        }
        if (sameSearch && model.live.startsIn(t0, t1) > scannedAtOnce) {
            this.timer = window.setTimeout(() => {
                this.markedOf = [];
                page.drawMarks();
            }, 200);
            return this.marked;
        }
        const rows: number[] = [];
        for (const row of model.live.between(t0, t1)) {
            const node = model.blocks.stack[row];
            if (matches?.[node] || below?.[node]) rows.push(row);
            if (rows.length >= mostMarked) break;
        }
        this.markedOf = of;
        return (this.marked = rows);
    }
}

function same(one: unknown[], other: unknown[]): boolean {
    return one.length === other.length && one.every((value, i) => value === other[i]);
}
