// The pointer and the wheel on the pictures, and the controls in the header and the panels.
import { addressText, mapFrame } from "../draw/map";
import { laneAt, memoryAt, trackUnder } from "../draw/chart";
import { hitLane, laneKind } from "../draw/lanes";
import { markerAt } from "../draw/markers";
import type { Layer } from "../draw/surface";
import { edgeAt } from "../draw/ranges";
import { plotLeft, plotRight, tickAt } from "../draw/timeaxis";
import { formatBytes, formatTime, shortened } from "../data/format";
import { longestPhase } from "../data/phases";
import { hiddenFrames } from "../data/fold";
import { type DeviceHeader, atMoment, segmentsKnown } from "../data/header";
import { freePartAt } from "../data/hole";
import { type Track, bytesAt, mostWords } from "../data/overtime";
import { blockUnder, byAddress } from "../data/under";
import type { Shape } from "../data/shownstacks";
import { rangesOf } from "../state/store";
import {
    hidableFrame,
    hideFunction,
    setRange,
    showHidden,
    showShape,
    toggleDrag,
    toggleFold,
    zoomAddress,
    zoomTime,
} from "./actions";
import { chartData } from "./chartpanel";
import { copyStack } from "./copy";
import { byId, hideTip, showTip } from "./dom";
import { type PageView, windowMoments } from "./view";

/** The tooltip of a block: its size, its time, its line. */
export function blockText(page: PageView, block: number): string {
    const { blocks, head } = page.model;
    return (
        `${formatBytes(blocks.size[block])}, allocated ${atMoment(head, blocks.start[block], windowMoments(page))}\n` +
        page.stacks.label(page.stacks.telling(blocks.stack[block]))
    );
}

/** The tooltip of a place without a block: what is free there and since when, then its address. */
export function freeText({ model }: PageView, tick: number, at: number): string {
    const free = model.complete ? freePartAt(model, tick, at) : null;
    if (!free) {
        const state = model.complete ? notReserved(model.head) : "";
        return `${state}(${addressText(model, at)})`;
    }
    const { tick_ns, blocks_left_out } = model.head;
    const name = free.kept ? "hole" : "cached: segment";
    // A segment that exists from the start may be older than the trace. A block that the file
    // leaves out may have used these bytes since.
    const older = free.last < 0 && free.since === 0;
    const limit = older ? "at least " : blocks_left_out > 0 ? "at most " : "";
    const age =
        older && tick === 0 ? "an unknown time" : limit + formatTime((tick - free.since) * tick_ns);
    return `${name} of ${formatBytes(free.size)}, free for ${age} (${addressText(model, free.offset)})`;
}

function notReserved({ segments_left_out }: DeviceHeader): string {
    return segments_left_out > 0
        ? "not reserved at this time, or in a segment that the file leaves out "
        : "not reserved at this time ";
}

// The words before the time of a peak.
function within({ partNs }: Track): string {
    return partNs > 0 ? `within ${formatTime(partNs)} after ` : "at ";
}

// The tooltip in the chart: a marker's text, a phase's name, or the memory at a time.
function chartText(page: PageView, layer: Layer, x: number, y: number): string {
    const { model, view } = page;
    const { head, phases } = model;
    const moment = windowMoments(page);
    const marker = markerAt(layer, model, view, x, y);
    if (marker) return `${moment(marker.time_ns)}: ${marker.text}`;
    if (x < plotLeft || x > plotRight(layer)) return "";
    const tick = tickAt(layer, view, x);
    const lane = laneAt(layer, model, y);
    if (lane >= 0) {
        const phase = hitLane(model, lane, tick);
        if (phase < 0) return "";
        const end = Math.min(phases.end[phase], model.lastTick);
        const start = moment(phases.start[phase] * head.tick_ns);
        const length = formatTime((end - phases.start[phase]) * head.tick_ns);
        return (
            `${shortened(head.phase_names[phases.name[phase]], longestPhase)}\n` +
            `${laneKind(model, lane)}: from ${start}, for ${length}`
        );
    }
    const track = trackUnder(layer, model, y);
    if (track) {
        return (
            `${moment(tick * head.tick_ns)}: ${mostWords(track)}${formatBytes(bytesAt(track, tick))} ${track.what} of the process\n` +
            `peak ${formatBytes(track.peak.bytes)} ${within(track)}${moment(track.peak.tick * head.tick_ns)}`
        );
    }
    const memory = memoryAt(layer, chartData(page), view, x);
    if (!memory) return "";
    const when = moment(tick * head.tick_ns);
    const upTo = memory.changes ? "up to " : "";
    const most = upTo + formatBytes(memory.most);
    const about = (bytes: number): string => formatBytes(Math.round(bytes));
    if (!segmentsKnown(head)) {
        return `${when}\n${most} allocated; reserved memory is unknown`;
    }
    return (
        `${when}${memory.changes ? ", mean over this pixel" : ""}\n` +
        `${about(memory.requested)} requested, ${about(memory.held)} in holes, ` +
        `${about(memory.releasable)} releasable; ${most} reserved`
    );
}

/** Maps a place in a picture to a time, and in the map also to an address. */
interface Mapping {
    tick: (x: number) => number;
    offset: ((y: number) => number) | null;
}

function chartMapping(page: PageView, layer: Layer): Mapping {
    const { t0, t1 } = page.view;
    return { tick: (x) => tickAt(layer, { t0, t1 }, x), offset: null };
}

function mapMapping(page: PageView, layer: Layer): Mapping {
    const { t0, t1, a0, a1 } = page.view;
    const frame = mapFrame(layer, page.view);
    return {
        tick: (x) => tickAt(layer, { t0, t1 }, x),
        offset: (y) => a0 + ((y - frame.top) / (frame.bottom - frame.top)) * (a1 - a0),
    };
}

interface Drag {
    x: number;
    y: number;
    moved: boolean;
    view: { t0: number; t1: number; a0: number; a1: number };
    map: Mapping;
    range: { at: number; tick: number } | null; // the range that is dragged, and its fixed edge
}

/** The range that a drag from `x` would change, and its edge that stays; null = it pans. */
function draggedRange(page: PageView, layer: Layer, x: number, shift: boolean): Drag["range"] {
    const { view } = page;
    if (x < plotLeft || x > plotRight(layer)) return null;
    const ranges = rangesOf(view);
    const edge = edgeAt(layer, view, ranges, x);
    if (edge) return { at: edge.range, tick: edge.other };
    const at = Math.max(0, ranges.length - 1);
    return shift || view.drag === "range" ? { at, tick: Math.floor(tickAt(layer, view, x)) } : null;
}

/** Selects from the fixed edge to `x`, at most to the edges of the window. */
function dragRange(
    page: PageView,
    layer: Layer,
    { at, tick }: NonNullable<Drag["range"]>,
    x: number,
): void {
    const { t0, t1 } = page.view;
    const to = Math.floor(Math.max(t0, Math.min(t1, tickAt(layer, page.view, x))));
    setRange(page, [Math.min(tick, to), Math.max(tick, to)], at);
}

const leftButton = 0; // MouseEvent.button; also a touching finger or pen
const leftPressed = 1; // a bit of MouseEvent.buttons

function connectPicture(
    page: PageView,
    layer: Layer,
    mappingOf: (page: PageView, layer: Layer) => Mapping,
): void {
    const { canvas } = layer;
    const mapping = (): Mapping => mappingOf(page, layer);
    // The column at the right shows the cursor's time, so a click there does not move the cursor.
    const inStrip = (x: number): boolean => x > plotRight(layer);
    const blockAt = (tick: number, offset: number): number => {
        const { model, view, pins } = page;
        // Marked blocks are drawn at least 3 px high and can be hit anywhere in these.
        const slack = (1.5 / Math.max(1, layer.height)) * (view.a1 - view.a0);
        return blockUnder(model, tick, offset, byAddress(model, pins), slack);
    };
    const selectAt = (cursor: number, offset: number): void => {
        const selected = blockAt(cursor, offset);
        page.change({ cursor, selected, hole: selected < 0 ? Math.floor(offset) : -1 });
    };
    const textAt = (x: number, y: number): string => {
        const map = mapping();
        if (!map.offset) return chartText(page, layer, x, y);
        if (x < plotLeft || y > mapFrame(layer, page.view).bottom) return "";
        const offset = map.offset(y);
        const tick = inStrip(x) ? page.view.cursor : map.tick(x);
        const block = blockAt(tick, offset);
        return block >= 0 ? blockText(page, block) : freeText(page, tick, offset);
    };
    let drag: Drag | null = null;
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
        if (event.button !== leftButton) return;
        const [x, y] = point(event);
        const range = draggedRange(page, layer, x, event.shiftKey);
        drag = { x, y, moved: false, view: { ...page.view }, map: mapping(), range };
        canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
        const [x, y] = point(event);
        // The button may have been released outside the window.
        if ((event.buttons & leftPressed) === 0) drag = null;
        if (!drag) {
            const onEdge = edgeAt(layer, page.view, rangesOf(page.view), x) !== null;
            canvas.style.cursor = onEdge ? "ew-resize" : "";
            showTip(() => textAt(x, y), event.clientX, event.clientY);
            return;
        }
        if (Math.abs(x - drag.x) + Math.abs(y - drag.y) > 4) drag.moved = true;
        if (!drag.moved) return;
        hideTip();
        if (drag.range) {
            dragRange(page, layer, drag.range, x);
            return;
        }
        const shift = drag.map.tick(drag.x) - drag.map.tick(x);
        const lift = drag.map.offset ? drag.map.offset(drag.y) - drag.map.offset(y) : 0;
        const { t0, t1, a0, a1 } = drag.view;
        page.change({ t0: t0 + shift, t1: t1 + shift, a0: a0 + lift, a1: a1 + lift });
    });
    canvas.addEventListener("pointerup", (event) => {
        const [x, y] = point(event);
        const map = mapping();
        if (drag && !drag.moved && x >= plotLeft - 4) {
            const strip = inStrip(x);
            const cursor = strip ? page.view.cursor : Math.floor(map.tick(x));
            if (!map.offset) page.change({ cursor });
            else selectAt(cursor, map.offset(y));
        }
        drag = null;
    });
    canvas.addEventListener("pointercancel", () => (drag = null));
    canvas.addEventListener("pointerleave", hideTip);
}

/** The pointer and the wheel on the chart and the map. */
export function connectPictures(page: PageView, chart: Layer, map: Layer): void {
    connectPicture(page, chart, chartMapping);
    connectPicture(page, map, mapMapping);
}

const choices = ["order", "stacks", "colour"] as const;

export function connectControls(page: PageView): void {
    const search = byId<HTMLInputElement>("search");
    search.addEventListener("input", () => page.change({ query: search.value }));
    for (const key of choices) {
        const select = byId<HTMLSelectElement>(key);
        select.addEventListener("change", () => page.change({ [key]: select.value }));
    }
    const shape = byId<HTMLSelectElement>("shape");
    shape.addEventListener("change", () => showShape(page, shape.value as Shape));
    byId("zoom-out").addEventListener("click", () => page.change({ zoom: -1 }));
    byId("stack-copy").addEventListener("click", () => void copyStack(page));
    byId("only").addEventListener("click", () => page.change({ only: !page.view.only }));
    byId("fold").addEventListener("click", () => toggleFold(page));
    byId("hide-function").addEventListener("click", () => hideFunction(page));
    byId("show-hidden").addEventListener("click", () => showHidden(page));
    byId("drag").addEventListener("click", () => toggleDrag(page));
}

const longestHidden = 24;

export function showControls(page: PageView): void {
    const { view } = page;
    const search = byId<HTMLInputElement>("search");
    if (search.value !== view.query) search.value = view.query;
    for (const key of choices) byId<HTMLSelectElement>(key).value = view[key];
    byId<HTMLSelectElement>("shape").value = view.shape;
    byId("zoom-out").hidden = view.zoom < 0;
    byId("only").hidden = view.query.trim() === "";
    byId("only").setAttribute("aria-pressed", String(view.only));
    byId("stack-copy").hidden = view.stack <= 0;
    byId("fold").setAttribute("aria-pressed", String(view.fold));
    // A box can stand for several frames, so the button names the function.
    const frame = hidableFrame(page);
    const { frames, strings } = page.header;
    byId("hide-function").hidden = frame < 0;
    byId("hide-function").textContent =
        `hide ${shortened(strings[frames.function[frame]] ?? "", longestHidden)}`;
    const hidden = hiddenFrames(page.header, view.hidden).length;
    byId("show-hidden").hidden = hidden === 0;
    byId("show-hidden").textContent = `show ${hidden} hidden`;
    byId("drag").setAttribute("aria-pressed", String(view.drag === "range"));
    byId("main").dataset.drag = view.drag;
}
