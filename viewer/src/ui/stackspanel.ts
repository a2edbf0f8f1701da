// The panel of stacks: the measure of bytes, icicle or flame graph, all frames or folded libraries,
// and the box at the pointer or the keyboard focus.
import { formatBytes, formatCount, formatTime } from "../data/format";
import { keptByPools } from "../data/held";
import type { Measure } from "../data/measures";
import type { StackBox, Stacks, Thin } from "../data/stacks";
import { boxLabel, boxTop, drawIcicle, hitIcicle, rowHeight } from "../draw/icicle";
import { drawNotice, type Layer, Surface } from "../draw/surface";
import { byId, showTip } from "./dom";
import type { LegendEntry, PageView, Picture } from "./view";

export const measureNames: Record<Measure, string> = {
    holes: "blocked free memory",
    live: "live bytes",
    churn: "allocated in the window",
    growth: "growth since the mark",
};

const smallestShare = 0.001;
const mostFrames = 14; // in the tooltip

export class StacksPanel implements Picture {
    readonly surface = new Surface(byId("icicle").parentElement!);
    readonly place = "left";
    readonly legend: LegendEntry[] = [];
    private boxes: StackBox[] = [];
    private total = 0;
    private thin: Thin = { branches: 0, bytes: 0 };
    private focused = -1; // box with the keyboard focus

    constructor(private readonly page: PageView) {
        this.connect();
    }

    get title(): string {
        return `Stacks by ${measureNames[this.page.view.stacks]}`;
    }

    /** The drawn tree. view.stack is one of its nodes. */
    private get tree(): Stacks {
        return this.page.shownStacks.tree(this.page.view.fold);
    }

    draw(): void {
        const { page, surface } = this;
        const { view, model, sums, shownStacks, colours } = page;
        if (!model.complete) {
            if (surface.fit()) drawNotice(surface.base, "Reading the blocks.", colours);
            return;
        }
        const { boxes, total, depth, thin } = this.tree.layout(
            shownStacks.sums(sums.sums, view.fold),
            smallestShare,
        );
        this.boxes = boxes;
        this.total = total;
        this.thin = thin;
        this.focused = Math.min(this.focused, boxes.length - 1);
        const scroll = surface.box.parentElement!;
        surface.box.style.height = `${Math.max(scroll.clientHeight, depth * rowHeight)}px`;
        if (!surface.fit()) return;
        this.paint(surface.base);
        this.drawFocus();
    }

    paint(layer: Layer): void {
        const { view, found, colours } = this.page;
        drawIcicle(
            layer,
            this.tree,
            {
                boxes: this.boxes,
                total: this.total,
                what: this.caption() + this.leftOut(),
                marked: view.stack,
                matches: found?.shown ?? null,
                hatch: view.stacks === "holes",
                flame: view.shape === "flame",
            },
            colours,
        );
    }

    private caption(): string {
        const { view, model } = this.page;
        const nothing = this.total === 0;
        switch (view.stacks) {
            case "holes": {
                if (nothing) return "no free memory is blocked at the cursor";
                const kept = keptByPools(this.page.heap);
                const pools =
                    kept > 0
                        ? `; ${formatBytes(kept)} in empty segments that private pools keep`
                        : "";
                return `blocked free memory, shared among the live blocks of a segment by size${pools}`;
            }
            case "live":
                return nothing ? "no block is live at the cursor" : "live bytes";
            case "churn":
                return nothing
                    ? "nothing was allocated in the window"
                    : "allocated in the window, whether freed or not";
            case "growth": {
                const [mark, from] =
                    view.mark < 0
                        ? [view.t0, "the window's left edge (press m to set a mark at the cursor)"]
                        : [view.mark, `the mark at ${formatTime(view.mark * model.head.tick_ns)}`];
                const [later, earlier] =
                    mark <= view.cursor ? ["the cursor", from] : [from, "the cursor"];
                let shrunk = 0;
                for (const bytes of this.page.sums.shrunk.values()) shrunk += bytes;
                const less = shrunk > 0 ? `, ${formatBytes(shrunk)} less elsewhere` : "";
                return nothing
                    ? `no stack grew from ${earlier} to ${later}${less}`
                    : `more live at ${later} than at ${earlier}${less}`;
            }
        }
    }

    // The text about thin branches in the outermost box.
    private leftOut(): string {
        const { branches, bytes } = this.thin;
        return branches === 0
            ? ""
            : `; ${formatCount(branches)} ${branches === 1 ? "branch" : "branches"}, ${formatBytes(Math.round(bytes))}, too thin to draw`;
    }

    private drawFocus(): void {
        const context = this.surface.clearOver();
        const box = this.boxes[this.focused];
        if (!box || document.activeElement !== this.surface.base.canvas) return;
        const { width, height } = this.surface.over;
        const scale = width / Math.max(1, this.total);
        context.strokeStyle = this.page.colours.ink;
        context.lineWidth = 2;
        context.strokeRect(
            box.from * scale + 1,
            boxTop(box, height, this.page.view.shape === "flame") + 1,
            Math.max(3, (box.to - box.from) * scale - 2),
            rowHeight - 3,
        );
    }

    private label(box: StackBox): string {
        return boxLabel(this.tree, box, this.total, this.caption() + this.leftOut());
    }

    private mark(box: StackBox | null): void {
        const { view } = this.page;
        this.page.change({
            stack: !box || box.node === 0 || box.node === view.stack ? -1 : box.node,
            culprit: -1,
        });
    }

    private connect(): void {
        const canvas = this.surface.base.canvas;
        const hit = (event: MouseEvent): StackBox | null => {
            const place = canvas.getBoundingClientRect();
            const { width, height } = this.surface.base;
            return hitIcicle(
                this.boxes,
                this.total,
                width,
                height,
                this.page.view.shape === "flame",
                event.clientX - place.left,
                event.clientY - place.top,
            );
        };
        canvas.addEventListener("pointermove", (event) => {
            const box = hit(event);
            const share =
                box && this.total > 0
                    ? ` (${((100 * (box.to - box.from)) / this.total).toFixed(1)} %)`
                    : "";
            const frames = box ? this.label(box).split(" ‹ ") : [];
            const more =
                frames.length > mostFrames ? `\n‹ ${frames.length - mostFrames} more frames` : "";
            showTip(
                box ? frames.slice(0, mostFrames).join("\n‹ ") + more + share : "",
                event.clientX,
                event.clientY,
            );
        });
        canvas.addEventListener("pointerleave", () => showTip("", 0, 0));
        canvas.addEventListener("click", (event) => this.mark(hit(event)));
        canvas.addEventListener("blur", () => this.drawFocus());
        canvas.addEventListener("keydown", (event) => this.onKey(event));
    }

    // Arrows move to a caller, a callee or a neighbour. Enter marks the blocks of the box.
    private onKey(event: KeyboardEvent): void {
        const flame = this.page.view.shape === "flame";
        const current = this.boxes[this.focused] ?? this.boxes[0];
        if (!current || event.altKey || event.ctrlKey || event.metaKey) return;
        let next: StackBox | undefined;
        const inner = flame ? "ArrowUp" : "ArrowDown";
        const outer = flame ? "ArrowDown" : "ArrowUp";
        const row = this.boxes
            .filter((box) => box.depth === current.depth)
            .sort((a, b) => a.from - b.from);
        if (event.key === inner) {
            next = this.boxes.find(
                (box) =>
                    box.depth === current.depth + 1 &&
                    box.from >= current.from &&
                    box.from < current.to,
            );
        } else if (event.key === outer) {
            next = this.boxes.find(
                (box) =>
                    box.depth === current.depth - 1 &&
                    box.from <= current.from &&
                    current.from < box.to,
            );
        } else if (event.key === "ArrowRight") {
            next = row[row.indexOf(current) + 1];
        } else if (event.key === "ArrowLeft") {
            next = row[row.indexOf(current) - 1];
        } else if (event.key === "Enter") {
            this.mark(current);
        } else {
            return;
        }
        event.preventDefault();
        event.stopPropagation();
        this.focused = this.boxes.indexOf(next ?? current);
        this.drawFocus();
        this.page.say(this.label(this.boxes[this.focused]));
    }
}
