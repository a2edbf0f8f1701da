// Mouse, wheel, keyboard and the controls of the header.
import { addressText, mapFrame } from "../draw/map";
import { laneAt } from "../draw/chart";
import { hitLane, laneKind } from "../draw/lanes";
import { markerAt } from "../draw/markers";
import { hitSegment } from "../draw/segments";
import { plotLeft, plotRight, tickAt } from "../draw/timeaxis";
import { formatBytes, formatTime } from "../data/format";
import { blockUnder, byAddress } from "../data/under";
import { byId, showTip } from "./dom";
import { connectKeys } from "./keyboard";
import type { Page } from "./page";

function blockText(page: Page, block: number): string {
    const { blocks, head } = page.model;
    return (
        `${formatBytes(blocks.size[block])}, born ${formatTime(blocks.start[block] * head.tick_ns)}\n` +
        page.stacks.label(page.stacks.telling(blocks.stack[block]))
    );
}

function blockAt(page: Page, tick: number, offset: number): number {
    return blockUnder(page.model, tick, offset, byAddress(page.model, page.pins), pinSlack(page));
}

// A marker's text, a phase's name, or the memory at a time.
function chartText(page: Page, x: number, y: number): string {
    const { model, view } = page;
    const { head, phases, bins } = model;
    const layer = page.chart.base;
    const marker = markerAt(layer, model, view, x, y);
    if (marker) return `${formatTime(marker.time_ns)}: ${marker.text}`;
    if (x < plotLeft || x > plotRight(layer)) return "";
    const tick = chartMapping(page).tick(x);
    const lane = laneAt(layer, model, y);
    if (lane >= 0) {
        const phase = hitLane(model, lane, tick);
        if (phase < 0) return "";
        const end = Math.min(phases.end[phase], model.lastTick);
        const start = formatTime(phases.start[phase] * head.tick_ns);
        const length = formatTime((end - phases.start[phase]) * head.tick_ns);
        return (
            `${head.phase_names[phases.name[phase]]}\n` +
            `${laneKind(model, lane)}: ${start}, ${length} long`
        );
    }
    const bin = Math.max(
        0,
        Math.min(bins.count - 1, Math.floor((tick / model.lastTick) * bins.count)),
    );
    const about = (bytes: number): string => formatBytes(Math.round(bytes));
    return (
        `about ${formatTime(tick * head.tick_ns)}\n` +
        `${about(bins.requested[bin])} requested, ${about(bins.held[bin])} in holes held open, ` +
        `${about(bins.releasable[bin])} releasable; at most ${about(bins.reserved_max[bin])} reserved`
    );
}

interface Mapping {
    tick: (x: number) => number;
    offset: ((y: number) => number) | null;
}

function chartMapping(page: Page): Mapping {
    const { t0, t1 } = page.view;
    return { tick: (x) => tickAt(page.chart.base, { t0, t1 }, x), offset: null };
}

function mapMapping(page: Page): Mapping {
    const { t0, t1, a0, a1 } = page.view;
    const frame = mapFrame(page.map.base, page.view);
    return {
        tick: (x) => tickAt(page.map.base, { t0, t1 }, x),
        offset: (y) => a0 + ((y - frame.top) / (frame.bottom - frame.top)) * (a1 - a0),
    };
}

// The column at the right, which shows the cursor's moment: a click there leaves the cursor alone.
function inStrip(page: Page, x: number): boolean {
    return x > plotRight(page.map.base);
}

export function zoomTime(page: Page, centre: number, factor: number): void {
    const { t0, t1 } = page.view;
    page.change({ t0: centre - (centre - t0) * factor, t1: centre + (t1 - centre) * factor });
}

export function zoomAddress(page: Page, centre: number, factor: number): void {
    const { a0, a1 } = page.view;
    page.change({ a0: centre - (centre - a0) * factor, a1: centre + (a1 - centre) * factor });
}

function connectPicture(page: Page, canvas: HTMLElement, mapping: () => Mapping): void {
    let drag: {
        x: number;
        y: number;
        moved: boolean;
        view: { t0: number; t1: number; a0: number; a1: number };
        map: Mapping;
    } | null = null;
    const point = (event: MouseEvent): [number, number] => {
        const box = canvas.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener(
        "wheel",
        (event) => {
            event.preventDefault();
            const [x, y] = point(event);
            const map = mapping();
            const factor = Math.exp(Math.sign(event.deltaY || event.deltaX) * 0.25);
            if (event.shiftKey && map.offset) {
                zoomAddress(page, map.offset(y), factor);
            } else {
                zoomTime(page, Math.max(page.view.t0, Math.min(page.view.t1, map.tick(x))), factor);
            }
        },
        { passive: false },
    );
    canvas.addEventListener("pointerdown", (event) => {
        const [x, y] = point(event);
        drag = { x, y, moved: false, view: { ...page.view }, map: mapping() };
        canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
        const [x, y] = point(event);
        if (!drag) {
            const map = mapping();
            if (!map.offset) showTip(chartText(page, x, y), event.clientX, event.clientY);
            if (!map.offset || x < plotLeft) return;
            const offset = map.offset(y);
            const block = blockAt(page, inStrip(page, x) ? page.view.cursor : map.tick(x), offset);
            showTip(
                block >= 0 ? blockText(page, block) : addressText(page.model, offset),
                event.clientX,
                event.clientY,
            );
            return;
        }
        if (Math.abs(x - drag.x) + Math.abs(y - drag.y) > 4) drag.moved = true;
        if (!drag.moved) return;
        const shift = drag.map.tick(drag.x) - drag.map.tick(x);
        const lift = drag.map.offset ? drag.map.offset(drag.y) - drag.map.offset(y) : 0;
        const { t0, t1, a0, a1 } = drag.view;
        page.change({ t0: t0 + shift, t1: t1 + shift, a0: a0 + lift, a1: a1 + lift });
    });
    canvas.addEventListener("pointerup", (event) => {
        const [x, y] = point(event);
        const map = mapping();
        if (drag && !drag.moved && x >= plotLeft - 4) {
            const strip = inStrip(page, x);
            const cursor = strip ? page.view.cursor : Math.floor(map.tick(x));
            if (!map.offset) page.change({ cursor });
            else page.change({ cursor, selected: blockAt(page, cursor, map.offset(y)) });
        }
        drag = null;
    });
    canvas.addEventListener("pointercancel", () => (drag = null));
    canvas.addEventListener("pointerleave", () => showTip("", 0, 0));
}

// Marked blocks are drawn at least 3 px high and can be hit there.
function pinSlack(page: Page): number {
    return (1.5 / Math.max(1, page.map.base.height)) * (page.view.a1 - page.view.a0);
}

export function connectInput(page: Page): void {
    connectPicture(page, byId("chart"), () => chartMapping(page));
    connectPicture(page, byId("map"), () => mapMapping(page));
    const segments = byId("segments");
    const local = (event: MouseEvent, canvas: HTMLElement): [number, number] => {
        const box = canvas.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
    };
    segments.addEventListener("pointermove", (event) => {
        const hit = hitSegment(page.model, page.segments.placed, ...local(event, segments));
        showTip(
            !hit
                ? ""
                : hit.block >= 0
                  ? blockText(page, hit.block)
                  : hit.hole
                    ? `hole of ${formatBytes(hit.hole[1])} at ${addressText(page.model, hit.hole[0])}`
                    : "",
            event.clientX,
            event.clientY,
        );
    });
    segments.addEventListener("pointerleave", () => showTip("", 0, 0));
    segments.addEventListener("click", (event) => {
        const hit = hitSegment(page.model, page.segments.placed, ...local(event, segments));
        if (hit) page.change({ selected: hit.block });
    });
    connectControls(page);
    connectKeys(page);
}

function connectControls(page: Page): void {
    const search = byId<HTMLInputElement>("search");
    search.addEventListener("input", () => page.change({ query: search.value }));
    const choice = <Key extends "order" | "stacks" | "colour">(key: Key): void => {
        const select = byId<HTMLSelectElement>(key);
        select.addEventListener("change", () => page.change({ [key]: select.value }));
    };
    choice("order");
    choice("stacks");
    choice("colour");
    byId("shape").addEventListener("click", () => toggleShape(page));
    byId("fold").addEventListener("click", () => toggleFold(page));
    const show = (): void => {
        const { view } = page;
        if (search.value !== view.query) search.value = view.query;
        for (const key of ["order", "stacks", "colour"] as const) {
            byId<HTMLSelectElement>(key).value = view[key];
        }
        byId("shape").textContent = view.shape;
        byId("fold").setAttribute("aria-pressed", String(view.fold));
    };
    page.store.subscribe(show);
    show();
}

export function toggleShape(page: Page): void {
    page.change({ shape: page.view.shape === "icicle" ? "flame" : "icicle" });
}

// A node of one tree is another one in the other.
export function toggleFold(page: Page): void {
    page.change({ fold: !page.view.fold, stack: -1, culprit: -1 });
}
