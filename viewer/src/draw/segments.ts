// Draws segments at the cursor in three bands: partly empty, cached, and in use. Each band has its
// own scale, and the partly empty segments get the most room.
import { formatBytes, formatCount } from "../data/format";
import { segmentsKnown } from "../data/header";
import type { HeapState, UnitState } from "../data/heap";
import type { DeviceModel } from "../data/model";
import { partAt } from "../data/under";
import { type Colours, hatched } from "./colours";
import { type BlockLook, drawCrowd } from "./crowd";
import { kindColour } from "./kinds";
import { edgeWidth } from "./map";
import { type Layer, fitText, font } from "./surface";

export interface Band {
    name: string;
    states: UnitState[];
    bytes: number;
    free: number | null; // null = unknown
}

export interface Placed {
    state: UnitState;
    x: number;
    y: number;
    width: number;
    height: number;
}

export function bandsOf(model: DeviceModel, heap: HeapState, order: "worst" | "address"): Band[] {
    if (!segmentsKnown(model.head)) {
        const states = [...heap.units];
        states.sort((a, b) => model.units.offset[a.unit] - model.units.offset[b.unit]);
        const bytes = states.reduce((sum, state) => sum + model.units.size[state.unit], 0);
        return [
            { name: "blocks, each drawn alone: segments are unknown", states, bytes, free: null },
        ];
    }
    const bands = [
        { name: "partly empty (at least 25 % free)", states: [] as UnitState[], bytes: 0, free: 0 },
        { name: "cached: empty, can be released", states: [] as UnitState[], bytes: 0, free: 0 },
        { name: "in use: less than 25 % free", states: [] as UnitState[], bytes: 0, free: 0 },
    ];
    for (const state of heap.units) {
        const size = model.units.size[state.unit];
        const band = !state.kept ? bands[1] : state.free >= size / 4 ? bands[0] : bands[2];
        band.states.push(state);
        band.bytes += size;
        band.free += state.free;
    }
    for (const band of bands) {
        if (order === "worst") band.states.sort((a, b) => b.free - a.free || a.unit - b.unit);
        else band.states.sort((a, b) => model.units.offset[a.unit] - model.units.offset[b.unit]);
    }
    return bands;
}

const titleHeight = 16;
const bandGap = 6;
const bandWeights = [3, 1, 2]; // of the bands' heights
const rowHeights = [44, 34, 26, 20, 16, 12, 9, 7, 5, 4, 3, 2];
const scaleStep = 0.93;

/** Where each segment of a band goes: rows of one height, at the largest scale that fits. */
export function placeBand(
    model: DeviceModel,
    band: Band,
    width: number,
    top: number,
    height: number,
): Placed[] {
    if (band.states.length === 0 || height < 4) return [];
    const sizes = band.states.map((state) => model.units.size[state.unit]);
    const largest = sizes.reduce((a, b) => Math.max(a, b), 1);
    let best: Placed[] = [];
    for (const rowHeight of rowHeights) {
        const gap = rowHeight > 6 ? 3 : 1;
        const rows = Math.floor((height + gap) / (rowHeight + gap));
        if (rows < 1) continue;
        // In steps, so that segments keep their width, and so their picture, while memory grows.
        const most = Math.min((rows * width) / band.bytes, width / largest);
        const first = Math.ceil(Math.log((most * largest) / width) / Math.log(scaleStep) - 1e-9);
        for (let attempt = 0; attempt < 12; ++attempt) {
            const scale = (width / largest) * scaleStep ** (first + attempt);
            const placed = wrap(band.states, sizes, scale, width, top, rowHeight, gap, rows);
            if (placed) {
                best = placed;
                break;
            }
        }
        // The mean width decides, so that one large segment among many small ones does not make all
        // rows thin.
        const mean = best.reduce((sum, place) => sum + place.width, 0) / Math.max(1, best.length);
        if (best.length > 0 && mean >= Math.min(30, rowHeight * 3)) break;
    }
    return best;
}

function wrap(
    states: UnitState[],
    sizes: number[],
    scale: number,
    width: number,
    top: number,
    height: number,
    gap: number,
    rows: number,
): Placed[] | null {
    const placed: Placed[] = [];
    let x = 0;
    let row = 0;
    for (let i = 0; i < states.length; ++i) {
        // From 8 pixels on, sizes are whole pixels, so that all gaps look alike.
        const exact = sizes[i] * scale;
        const size = exact < 8 ? Math.max(1, exact) : Math.floor(exact);
        if (x > 0 && x + size > width + 0.5) {
            x = 0;
            if (++row >= rows) return null;
        }
        placed.push({ state: states[i], x, y: top + row * (height + gap), width: size, height });
        x += size + Math.min(gap, 2);
    }
    return placed;
}

export function drawSegments(
    layer: Layer,
    model: DeviceModel,
    heap: HeapState,
    order: "worst" | "address",
    look: BlockLook,
    colours: Colours,
): Placed[] {
    const { context, width, height } = layer;
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, height);
    const bands = bandsOf(model, heap, order);
    let room = height - bands.length * titleHeight;
    const weights = bands.map(({ states }, i) => (states.length > 0 ? bandWeights[i] : 0));
    let weight = weights.reduce((a, b) => a + b, 0) || 1;
    const all: Placed[] = [];
    let top = 0;
    bands.forEach((band, i) => {
        context.font = font(11, i === 0 && band.states.length > 0 ? "bold" : "");
        context.fillStyle = i === 0 && band.states.length > 0 ? colours.ink : colours.faint;
        context.textAlign = "left";
        const text =
            `${formatCount(band.states.length)} ${band.name}` +
            (band.states.length > 0
                ? ` · ${formatBytes(band.bytes)}` +
                  (band.free === null ? "" : `, ${formatBytes(band.free)} free`)
                : "");
        context.fillText(fitText(context, text, width), 0, top + 11);
        const space = Math.floor((room * weights[i]) / weight);
        const placed = placeBand(model, band, width, top + titleHeight, space - 4);
        for (const place of placed) {
            // Units with more blocks than pixels are mixed by area. SVG has no pixels.
            const crowded =
                place.state.blocks.length > place.width * layer.ratio && "putImageData" in context;
            if (crowded) {
                drawCrowd(
                    context,
                    layer.ratio,
                    model,
                    place.state,
                    place,
                    heap.tick,
                    look,
                    colours,
                );
            } else {
                drawOne(context, model, place, heap.tick, look, colours);
            }
        }
        if (placed.length < band.states.length) {
            context.fillText(
                fitText(context, "too many to draw: see the table", width),
                0,
                top + titleHeight + 11,
            );
        }
        all.push(...placed);
        const used =
            placed.length > 0
                ? placed[placed.length - 1].y + placed[0].height - top - titleHeight + bandGap
                : 0;
        const taken = Math.min(space, Math.max(used, 0));
        top += titleHeight + taken;
        // The bands below get what this one does not need. In a high panel, an empty band keeps a
        // row, so that they stay as they are when its first segment comes.
        room -= Math.max(taken, Math.min(rowHeights[0] + bandGap, Math.floor(room / 8)));
        weight = Math.max(1, weight - weights[i]);
    });
    if (heap.units.length === 0) {
        context.font = font(12);
        context.fillStyle = colours.faint;
        context.fillText("No memory is reserved at this time.", 0, top + 20);
    }
    return all;
}

function drawOne(
    context: CanvasRenderingContext2D,
    model: DeviceModel,
    place: Placed,
    tick: number,
    look: BlockLook,
    colours: Colours,
): void {
    const { blocks, units } = model;
    const { state, x, y, width, height } = place;
    const offset = units.offset[state.unit];
    const scale = width / units.size[state.unit];
    context.fillStyle = look.kinds
        ? colours.freeKind
        : state.kept
          ? hatched(context, colours)
          : colours.cached;
    context.fillRect(x, y, width, height);
    const pins: number[] = [];
    const bar = (block: number, least: number, colour: string): void => {
        const from = Math.max(offset, blocks.offset[block]);
        const to = Math.min(
            offset + units.size[state.unit],
            blocks.offset[block] + blocks.size[block],
        );
        const size = (to - from) * scale;
        const left = x + (from - offset) * scale;
        const edge = size > 4 ? edgeWidth : 0;
        if (edge > 0) {
            context.fillStyle = colours.line;
            context.fillRect(left, y, size, height);
        }
        context.fillStyle = colour;
        context.fillRect(left, y, Math.max(least, size - edge), height);
    };
    for (const block of state.blocks) {
        if (look.pins.has(block)) {
            pins.push(block);
            continue;
        }
        const isPending = blocks.freed[block] <= tick && height > 2;
        const colour = look.kinds
            ? kindColour(colours, look.kinds.of[block])
            : isPending
              ? colours.pending
              : colours.use;
        bar(block, 0.3, colour);
    }
    for (const block of pins) bar(block, Math.min(3, width), colours.pin);
    if (height >= 7) {
        context.strokeStyle = colours.line;
        context.strokeRect(x + 0.5, y + 0.5, Math.max(1, width - 1), height - 1);
    }
}

export interface Hit {
    unit: number;
    block: number;
    hole: [offset: number, size: number] | null;
}

export function hitSegment(model: DeviceModel, placed: Placed[], x: number, y: number): Hit | null {
    for (const place of placed) {
        if (x < place.x || x > place.x + place.width || y < place.y || y > place.y + place.height) {
            continue;
        }
        const { state } = place;
        const offset =
            model.units.offset[state.unit] +
            ((x - place.x) / place.width) * model.units.size[state.unit];
        return { unit: state.unit, ...partAt(model, state, offset) };
    }
    return null;
}
