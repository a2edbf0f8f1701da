// The changes of the view that keys, buttons and the wheel make.
import { eventAfter, eventBefore } from "../data/events";
import { lifeWindow } from "../data/life";
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

export function toggleShape(page: PageView): void {
    page.change({ shape: page.view.shape === "icicle" ? "flame" : "icicle" });
}

// Node numbers differ between the two trees, so the marked node is cleared.
export function toggleFold(page: PageView): void {
    page.change({ fold: !page.view.fold, stack: -1, culprit: -1 });
}

export function toggleMark(page: PageView): void {
    const { mark, cursor } = page.view;
    page.change({ mark: mark === cursor ? -1 : cursor });
}

/**
 * Selects blocks at the cursor in order of address, so that all can be reached without a pointer.
 */
export function stepBlock(page: PageView, by: number): void {
    const { blocks } = page.model;
    const live = Array.from(page.heap.live).sort((a, b) => blocks.offset[a] - blocks.offset[b]);
    if (live.length === 0) return;
    const at = live.indexOf(page.view.selected);
    page.change({
        selected:
            live[at < 0 ? (by > 0 ? 0 : live.length - 1) : (at + by + live.length) % live.length],
    });
}

export function stepCurve(page: PageView, by: number): void {
    const rows = page.model.curves.byRow.flatMap((curve, row) => (curve ? [row] : []));
    const at = rows.indexOf(page.view.whatif);
    const to = at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by;
    page.change({ whatif: rows[to] ?? -1 });
}
