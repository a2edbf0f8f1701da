// The panel of stacks: the measure of bytes, the shape of the tree, all frames or folded libraries,
// and the box at the pointer or the keyboard focus.
import { formatBytes, formatCounted } from "../data/format";
import { keptByPools } from "../data/held";
import type { Measure } from "../data/measures";
import type { Stacks, Thin } from "../data/stacks";
import { boxLabel, drawIcicle, hitIcicle, type PlacedBox, rowHeight } from "../draw/icicle";
import { placesAround, placesOf, type StackPlaces } from "../draw/stackplaces";
import { rangeNames } from "../draw/ranges";
import { drawNotice, type Layer, Surface } from "../draw/surface";
import type { View } from "../state/store";
import { byId, hideTip, showTip } from "./dom";
import { type PageView, type Picture, windowMoments } from "./view";

const measureNames: Record<Measure, string> = {
    holes: "blocked free memory",
    live: "live bytes",
    churn: "allocated in the window",
    growth: "growth since the mark",
};

/** A selected range of time takes the place of the window. */
export function measureName({ stacks, r0 }: View): string {
    return stacks === "churn" && r0 >= 0
        ? `allocated in range ${rangeNames[0]}`
        : measureNames[stacks];
}

const smallestShare = 0.001;
const mostFrames = 14; // in the tooltip

export class StacksPanel implements Picture {
    readonly surface = new Surface(byId("icicle").parentElement!);
    private boxes: PlacedBox[] = [];
    private total = 0;
    private focused = 0; // box with the keyboard focus
    private drawn = ""; // the tree of the boxes

    constructor(private readonly page: PageView) {
        this.connect();
    }

    /** The drawn tree. view.stack and view.zoom are its nodes. */
    private get tree(): Stacks {
        return this.page.shownStacks.tree(this.page.view);
    }

    draw(): void {
        const { page, surface } = this;
        byId("stacks").querySelector("[value=churn]")!.textContent = measureName({
            ...page.view,
            stacks: "churn",
        });
        if (!page.model.complete) {
            if (surface.fit()) drawNotice(surface.base, "Reading the blocks.", page.colours);
            return;
        }
        const scroll = surface.box.parentElement!;
        const { boxes, total, rows } =
            page.view.shape === "callers" ? this.aroundFrame() : this.wholeTree();
        const height = Math.max(scroll.clientHeight, rows * rowHeight);
        // The boxes of a flame graph stand on the lower edge.
        const shift = page.view.shape === "flame" ? height : 0;
        for (const box of boxes) box.top += shift;
        this.boxes = boxes;
        this.total = total;
        this.focused = Math.min(this.focused, boxes.length - 1);
        const { shape, fold, hidden, zoom, frame } = page.view;
        const tree = [shape, fold, hidden, zoom, frame].join();
        if (tree !== this.drawn) this.focused = 0; // the numbers of the boxes have another meaning
        this.drawn = tree;
        surface.box.style.height = `${height}px`;
        if (!surface.fit()) return;
        this.paint(surface.base);
        this.drawFocus();
    }

    paint(layer: Layer): void {
        const { found, colours, view } = this.page;
        const around = view.shape === "callers";
        drawIcicle(
            layer,
            {
                boxes: this.boxes,
                total: this.total,
                isMarked: ({ chain, depth }) =>
                    around ? depth === 0 : view.stack > 0 && chain.includes(view.stack),
                isMatch: ({ chain, node, stacks }) =>
                    found !== null &&
                    (around
                        ? chain.some((one) => stacks.isHit(one, found.hits))
                        : found.shown[node] === 1),
                hatch: view.stacks === "holes",
            },
            colours,
        );
    }

    private wholeTree(): StackPlaces {
        const { view, sums, shownStacks } = this.page;
        const { tree } = this;
        const top = view.zoom > 0 && view.zoom < tree.count ? view.zoom : 0;
        const layout = tree.layout(shownStacks.sums(sums.sums, view), smallestShare, top);
        const note = (top === 0 ? this.caption() : "") + leftOut(layout.thin);
        const flame = view.shape === "flame" ? 0 : null;
        return placesOf(tree, layout, flame, note, view.shape !== "bottom-up");
    }

    private aroundFrame(): StackPlaces {
        const { view, sums, shownStacks, stacks } = this.page;
        const name = view.frame >= 0 ? view.frame : heaviestLine(stacks, sums.sums);
        const around = shownStacks.around(name, view, sums.sums);
        const [up, down] = [around.trees.callers.stacks, around.trees.callees.stacks];
        const callers = up.layout(around.callers, smallestShare, Math.min(1, up.count - 1));
        const callees = down.layout(around.callees, smallestShare, Math.min(1, down.count - 1));
        const thin = {
            branches: callers.thin.branches + callees.thin.branches,
            bytes: callers.thin.bytes + callees.thin.bytes,
        };
        const share = callees.total > 0 ? `: ${this.caption()}${leftOut(thin)}` : "";
        const places = placesAround(
            { stacks: up, layout: callers },
            { stacks: down, layout: callees },
            share,
        );
        if (callees.total > 0) return places;
        const nothing = `no bytes of ${stacks.lineName(name)}: ${this.caption()}`;
        const box = { node: 0, chain: [0], depth: 0, from: 0, to: 0, top: 0, stacks: down };
        return { boxes: [{ ...box, note: nothing }], total: 0, rows: 1 };
    }

    private caption(): string {
        const { view, model } = this.page;
        const nothing = this.page.sums.total === 0;
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
                    ? `nothing was ${measureName(view)}`
                    : `${measureName(view)}, whether freed or not`;
            case "growth": {
                const [mark, from] =
                    view.mark < 0
                        ? [view.t0, "the window's left edge (press m to set a mark at the cursor)"]
                        : [
                              view.mark,
                              `the mark at ${windowMoments(this.page)(view.mark * model.head.tick_ns)}`,
                          ];
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

    private drawFocus(): void {
        const context = this.surface.clearOver();
        const box = this.boxes[this.focused];
        if (!box || document.activeElement !== this.surface.base.canvas) return;
        const { width } = this.surface.over;
        const scale = width / Math.max(1, this.total);
        context.strokeStyle = this.page.colours.ink;
        context.lineWidth = 2;
        context.strokeRect(
            box.from * scale + 1,
            box.top + 1,
            Math.max(3, (box.to - box.from) * scale - 2),
            rowHeight - 3,
        );
    }

    // A click marks the blocks of a box. Among callers and callees it goes to the box's frame.
    private choose(box: PlacedBox | null): void {
        const { page } = this;
        const { view } = page;
        if (view.shape === "callers") {
            const frame = box?.chain.at(box.depth === 0 ? 0 : this.innerEnd(box));
            if (box && frame) page.change({ frame: box.stacks.name(frame) });
            return;
        }
        page.change({
            stack: !box || box.node === 0 || box.node === view.stack ? -1 : box.node,
            culprit: -1,
            line: -1,
        });
    }

    // Of several frames in one box, the one next to the frame in the middle.
    private innerEnd(box: PlacedBox): number {
        return box.chain[0] === box.node ? box.chain.length - 1 : 0;
    }

    private zoom(box: PlacedBox | null): void {
        const { view } = this.page;
        if (view.shape === "callers") return;
        const zoom = !box || box.node === 0 || box.node === view.zoom ? -1 : box.node;
        this.page.change({ zoom });
    }

    private connect(): void {
        const canvas = this.surface.base.canvas;
        const hit = (event: MouseEvent): PlacedBox | null => {
            const place = canvas.getBoundingClientRect();
            return hitIcicle(
                this.boxes,
                this.total,
                this.surface.base.width,
                event.clientX - place.left,
                event.clientY - place.top,
            );
        };
        const textAt = (event: MouseEvent): string => {
            const box = hit(event);
            const share =
                box && this.total > 0
                    ? ` (${((100 * (box.to - box.from)) / this.total).toFixed(1)} %)`
                    : "";
            const frames = box ? boxLabel(box).split(" ‹ ") : [];
            const more =
                frames.length > mostFrames ? `\n‹ ${frames.length - mostFrames} more frames` : "";
            return box ? frames.slice(0, mostFrames).join("\n‹ ") + more + share : "";
        };
        canvas.addEventListener("pointermove", (event) =>
            showTip(() => textAt(event), event.clientX, event.clientY),
        );
        canvas.addEventListener("pointerleave", hideTip);
        canvas.addEventListener("click", (event) => this.choose(hit(event)));
        canvas.addEventListener("dblclick", (event) => this.zoom(hit(event)));
        canvas.addEventListener("blur", () => this.drawFocus());
        canvas.addEventListener("keydown", (event) => this.onKey(event));
    }

    // Arrows move to the box above, below or beside. Enter marks the blocks of the box.
    private onKey(event: KeyboardEvent): void {
        const current = this.boxes[this.focused] ?? this.boxes[0];
        if (!current || event.altKey || event.ctrlKey || event.metaKey) return;
        let next: PlacedBox | undefined;
        if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            next = this.neighbour(current, event.key === "ArrowDown" ? 1 : -1);
        } else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
            const row = this.boxes
                .filter(({ top }) => top === current.top)
                .sort((a, b) => a.from - b.from);
            next = row[row.indexOf(current) + (event.key === "ArrowRight" ? 1 : -1)];
        } else if (event.key === "Enter" && event.shiftKey) {
            this.zoom(current);
        } else if (event.key === "Enter") {
            this.choose(current);
        } else if (event.key === "Backspace") {
            this.page.change({ zoom: -1 });
        } else {
            return;
        }
        event.preventDefault();
        event.stopPropagation();
        this.focused = this.boxes.indexOf(next ?? current);
        this.drawFocus();
        this.page.say(boxLabel(this.boxes[this.focused]));
    }

    /** The box one row below or above that shares the left edge, or else is within the width. */
    private neighbour(box: PlacedBox, rows: number): PlacedBox | undefined {
        const row = this.boxes.filter(({ top }) => top === box.top + rows * rowHeight);
        return (
            row.find(({ from, to }) => from <= box.from && box.from < to) ??
            row.find(({ from }) => from >= box.from && from < box.to)
        );
    }
}

// The text about branches without a box.
function leftOut({ branches, bytes }: Thin): string {
    return branches === 0
        ? ""
        : `; ${formatCounted(branches, "branch", "branches")}, ${formatBytes(Math.round(bytes))}, too thin to draw`;
}

/** The line with the most bytes, if possible one of the user's code. */
function heaviestLine(stacks: Stacks, sums: Map<number, number>): number {
    const bytesOf = [new Map<number, number>(), new Map<number, number>()]; // libraries', user's
    const best = [0, 0];
    for (const [stack, bytes] of sums) {
        const own = Number(stacks.isOwn(stacks.telling(stack)));
        const line = stacks.line(stack);
        const lines = bytesOf[own];
        lines.set(line, (lines.get(line) ?? 0) + bytes);
        if (line > 0 && lines.get(line)! > (lines.get(best[own]) ?? 0)) best[own] = line;
    }
    return best[1] || best[0];
}
