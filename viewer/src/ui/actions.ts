// The changes of the view that keys, buttons and the wheel make.
import { eventAfter, eventBefore } from "../data/events";
import { holesBySize } from "../data/hole";
import { lifeWindow } from "../data/life";
import { never } from "../data/model";
import { phaseRange, type Range, rangeBefore } from "../data/ranges";
import { type Shape, shapes } from "../data/shownstacks";
import { rangesOf, type View } from "../state/store";
import type { PageView } from "./view";

/** Moves the cursor to the next or previous event. */
export function stepEvent(page: PageView, direction: number): void {
    const { cursor } = page.view;
    moveTo(page, (direction > 0 ? eventAfter : eventBefore)(page.model, cursor));
}

/** Moves the cursor by a share of the window. `far` = ten times as much. */
export function moveCursor(page: PageView, direction: number, far: boolean): void {
    const { cursor, t0, t1 } = page.view;
    moveTo(page, cursor + direction * Math.max(1, ((t1 - t0) / 400) * (far ? 10 : 1)));
}

function moveTo(page: PageView, cursor: number): void {
    const { t0, t1 } = page.view;
    const shift = cursor < t0 ? cursor - t0 : cursor > t1 ? cursor - t1 : 0;
    page.change({ cursor, t0: t0 + shift, t1: t1 + shift });
}

/** Moves the cursor to a moment. A window that does not show it gets it in its middle. */
export function jumpTo(page: PageView, cursor: number): void {
    const { t0, t1 } = page.view;
    const shift = cursor < t0 || cursor > t1 ? cursor - (t0 + t1) / 2 : 0;
    page.change({ cursor, t0: t0 + shift, t1: t1 + shift });
}

/** Moves the cursor to the allocation of the selected block, from there to its free, and back. */
export function jumpInLife(page: PageView): void {
    const { model, view } = page;
    if (view.selected < 0 || view.selected >= model.blocks.count) {
        page.say("select a block first");
        return;
    }
    const born = model.blocks.start[view.selected];
    const freed = model.blocks.freed[view.selected];
    if (view.cursor === born && freed === never) page.say("this block was not freed");
    else jumpTo(page, view.cursor === born ? freed : born);
}

export function pan(page: PageView, direction: number): void {
    const { t0, t1 } = page.view;
    const by = ((t1 - t0) / 10) * direction;
    page.change({ t0: t0 + by, t1: t1 + by });
}

export function panAddress(page: PageView, direction: number): void {
    const { a0, a1 } = page.view;
    const by = ((a1 - a0) / 10) * direction;
    page.change({ a0: a0 + by, a1: a1 + by });
}

export function zoomTime(page: PageView, centre: number, factor: number): void {
    const { t0, t1 } = page.view;
    page.change({ t0: centre - (centre - t0) * factor, t1: centre + (t1 - centre) * factor });
}

export function zoomAddress(page: PageView, centre: number, factor: number): void {
    const { a0, a1 } = page.view;
    page.change({ a0: centre - (centre - a0) * factor, a1: centre + (a1 - centre) * factor });
}

export function showWhole(page: PageView): void {
    page.change({ t0: 0, t1: page.model.lastTick, a0: 0, a1: page.model.head.axis_bytes });
}

export function zoomToLife(page: PageView): void {
    const { selected } = page.view;
    if (selected >= 0 && selected < page.model.blocks.count) {
        page.change(lifeWindow(page.model, selected));
    }
}

export function toggleTheme(page: PageView): void {
    page.change({ theme: document.documentElement.dataset.theme === "dark" ? "light" : "dark" });
}

/** Draws the stacks in another shape. The callers and callees are those of the marked frame. */
export function showShape(page: PageView, shape: Shape): void {
    const { view, shownStacks } = page;
    const tree = shownStacks.tree(view);
    const change: Partial<View> = { shape };
    if (shape === "callers" && view.stack > 0 && view.stack < tree.count) {
        change.frame = tree.name(view.stack);
    }
    // Node numbers differ between the trees, so nodes are cleared.
    if ((shape === "bottom-up") !== (view.shape === "bottom-up")) {
        Object.assign(change, { stack: -1, culprit: -1 });
    }
    page.change({ ...change, zoom: -1 });
}

export function nextShape(page: PageView): void {
    showShape(page, shapes[(shapes.indexOf(page.view.shape) + 1) % shapes.length]);
}

// Node numbers differ between the trees, so nodes are cleared.
const noNodes = { stack: -1, zoom: -1, culprit: -1 };

export function toggleFold(page: PageView): void {
    page.change({ fold: !page.view.fold, ...noNodes });
}

/** The frame of the marked box whose function can be hidden; -1 = none. */
export function hidableFrame({ view, header, shownStacks }: PageView): number {
    if (view.stack <= 0 || view.shape === "callers") return -1;
    const frame = shownStacks.tree(view).frame(view.stack);
    return frame < header.frames.function.length ? frame : -1; // others are folded libraries
}

/** Leaves the function of the marked box out of the stacks. */
export function hideFunction(page: PageView): void {
    const frame = hidableFrame(page);
    const { hidden } = page.view;
    if (frame >= 0) page.change({ hidden: hidden ? `${hidden},${frame}` : `${frame}`, ...noNodes });
}

export function showHidden(page: PageView): void {
    if (page.view.hidden) page.change({ hidden: "", ...noNodes });
}

export function toggleMark(page: PageView): void {
    const { mark, cursor } = page.view;
    page.change({ mark: mark === cursor ? -1 : cursor });
}

/**
 * Selects blocks at the cursor in order of address, so that all can be reached without a pointer.
 */
export function stepBlock(page: PageView, by: number): void {
    const { live } = page.heap; // in this order
    if (live.length === 0) return;
    const at = live.indexOf(page.view.selected);
    page.change({
        selected:
            live[at < 0 ? (by > 0 ? 0 : live.length - 1) : (at + by + live.length) % live.length],
    });
}

/** Selects holes at the cursor in order of size. */
export function stepHole(page: PageView, by: number): void {
    const holes = holesBySize(page.model, page.heap);
    if (holes.length === 0) {
        page.say("no hole at the cursor");
        return;
    }
    const at = page.hole ? holes.indexOf(page.hole.offset) : -1;
    const first = by > 0 ? 0 : holes.length - 1;
    page.change({ hole: holes[at < 0 ? first : (at + by + holes.length) % holes.length] });
}

export function stepCurve(page: PageView, by: number): void {
    const rows = page.model.curves.byRow.flatMap((curve, row) => (curve ? [row] : []));
    const at = rows.indexOf(page.view.whatif);
    const to = at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by;
    page.change({ whatif: rows[to] ?? -1 });
}

// ---- ranges of time -----------------------------------------------------------------------------

/** Changes the second range if two are compared, otherwise the only one. */
export function setRange(
    page: PageView,
    [from, to]: Range,
    at = rangesOf(page.view).length - 1,
): void {
    page.change(at > 0 ? { s0: from, s1: to } : { r0: from, r1: to });
}

export function clearRanges(page: PageView): void {
    page.change({ r0: -1, r1: -1, s0: -1, s1: -1 });
}

/** Selects the time between the mark and the cursor, or the window; again: removes the ranges. */
export function toggleRange(page: PageView): void {
    const { mark, cursor, t0, t1 } = page.view;
    const wanted: Range =
        mark >= 0 && mark !== cursor
            ? [Math.min(mark, cursor), Math.max(mark, cursor)]
            : [Math.floor(t0), Math.floor(t1)];
    const last = rangesOf(page.view).at(-1);
    if (last?.[0] === wanted[0] && last[1] === wanted[1]) clearRanges(page);
    else setRange(page, wanted);
}

/** Selects the step or phase at the cursor; again: the one around it. */
export function rangeOfPhase(page: PageView): void {
    const range = phaseRange(page.model, page.view.cursor, rangesOf(page.view).at(-1) ?? null);
    if (range) setRange(page, range);
    else page.say("no step or phase at the cursor");
}

/** Compares the range with the one before it, or stops comparing. */
export function compareRange(page: PageView): void {
    const [first, second] = rangesOf(page.view);
    if (!first) {
        page.say("select a range first: press r, or drag with Shift");
    } else if (second) {
        page.change({ s0: -1, s1: -1 });
    } else {
        const [s0, s1] = rangeBefore(page.model, first);
        page.change({ s0, s1 });
    }
}

export function zoomToRanges(page: PageView): void {
    const ranges = rangesOf(page.view);
    if (ranges.length === 0) return;
    const from = Math.min(...ranges.map((range) => range[0]));
    const to = Math.max(...ranges.map((range) => range[1]));
    const margin = (to - from) * 0.05;
    page.change({ t0: from - margin, t1: to + margin });
}

export function toggleDrag(page: PageView): void {
    page.change({ drag: page.view.drag === "pan" ? "range" : "pan" });
}
