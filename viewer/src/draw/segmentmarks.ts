// Draws marks above the segments: blocks of a search or a stack, and the selected block. It is a
// layer of its own, so that a click or a typed letter redraws only the marks. A moving cursor
// redraws it only if something is marked.
import { LineCoverage } from "../data/coverage";
import { isWanted, type Wanted } from "../data/hits";
import { follow, type UnitState } from "../data/heap";
import type { Hole } from "../data/hole";
import { type DeviceModel, forUnits } from "../data/model";
import type { Colours } from "./colours";
import type { Placed } from "./segments";

type Place = Pick<Placed, "x" | "y" | "width" | "height">;

// The place of bytes in their unit, in pixels from the drawn unit's left edge.
function partOf(
    model: DeviceModel,
    [offset, size]: [offset: number, size: number],
    unit: number,
    place: Place,
): [from: number, to: number] {
    const { units } = model;
    const scale = place.width / units.size[unit];
    const at = (byte: number): number =>
        Math.max(0, Math.min(place.width, (byte - units.offset[unit]) * scale));
    return [at(offset), at(offset + size)];
}

interface MarkedCrowd {
    marked: Wanted;
    number: number; // of the unit's state
    crowd: LineCoverage;
}

// Indexed by UnitState.line. While the cursor moves, most units keep their state.
const crowds = new WeakMap<object, MarkedCrowd>();

function sharesOf(
    model: DeviceModel,
    state: UnitState,
    pixels: number,
    marked: Wanted,
): Float64Array {
    let known = crowds.get(state.line);
    if (known?.marked !== marked || known.crowd.length !== pixels) {
        known = { marked, number: 0, crowd: known?.crowd ?? new LineCoverage(pixels) };
        crowds.set(state.line, known);
    }
    const { crowd } = known;
    const { stack, offset, size } = model.blocks;
    const begin = model.units.offset[state.unit];
    const scale = pixels / model.units.size[state.unit];
    follow(
        state,
        state.blocks,
        known.number,
        () => crowd.clear(pixels),
        (rows, sign) => {
            for (const block of rows) {
                if (!isWanted(marked, stack[block], block)) continue;
                const from = offset[block] - begin;
                crowd.add(from * scale, (from + size[block]) * scale, sign);
            }
        },
    );
    known.number = state.number;
    return crowd.shares().subarray(0, pixels);
}

/** `marked`: the marked blocks; null = no marks. */
export function drawSegmentMarks(
    context: CanvasRenderingContext2D,
    ratio: number,
    model: DeviceModel,
    placed: Placed[],
    tick: number,
    marked: Wanted | null,
    selected: number,
    hole: Hole | null,
    colours: Colours,
): void {
    const { blocks } = model;
    if (marked) {
        context.fillStyle = colours.mark;
        for (const place of placed) {
            const { state, x, y, width, height } = place;
            if (state.blocks.length > width * ratio) {
                const pixels = Math.max(1, Math.round(width * ratio));
                drawShares(context, sharesOf(model, state, pixels, marked), place);
                continue;
            }
            for (const block of state.blocks) {
                if (!isWanted(marked, blocks.stack[block], block)) continue;
                const range: [number, number] = [blocks.offset[block], blocks.size[block]];
                const [from, to] = partOf(model, range, state.unit, place);
                context.fillRect(
                    x + from,
                    y,
                    Math.max(2, to - from - (to - from > 4 ? 0.7 : 0)),
                    height,
                );
            }
        }
    }
    const placeOf = (unit: number): Placed | undefined =>
        placed.find(({ state }) => state.unit === unit);
    const holePlace = hole && placeOf(hole.unit);
    if (hole && holePlace) {
        const { offset, size } = hole;
        outline(context, holePlace, partOf(model, [offset, size], hole.unit, holePlace), colours);
    }
    if (selected < 0 || blocks.start[selected] > tick || tick >= blocks.end[selected]) return;
    forUnits(model, selected, (unit) => {
        const place = placeOf(unit);
        const range: [number, number] = [blocks.offset[selected], blocks.size[selected]];
        if (place) outline(context, place, partOf(model, range, unit, place), colours);
    });
}

function outline(
    context: CanvasRenderingContext2D,
    place: Place,
    [from, to]: [number, number],
    colours: Colours,
): void {
    const middle = (from + to) / 2;
    const width = Math.max(4, to - from);
    const left = Math.max(0, Math.min(place.width - width, middle - width / 2));
    for (const [colour, line] of [
        [colours.halo, 4],
        [colours.mark, 2],
    ] as const) {
        context.strokeStyle = colour;
        context.lineWidth = line * colours.stroke;
        context.strokeRect(place.x + left, place.y + 1, width, Math.max(2, place.height - 2));
    }
    context.lineWidth = 1;
}

// Used if there are more blocks than pixels. Each pixel is as strong as its share of marked bytes,
// but always visible. Neighbours of about the same strength are one rectangle.
function drawShares(
    context: CanvasRenderingContext2D,
    shares: Float64Array,
    { x, y, width, height }: Place,
): void {
    const strengths = 64;
    const step = width / shares.length;
    const strengthOf = (share: number): number =>
        share < 1e-6 ? 0 : Math.round(strengths * Math.min(1, Math.max(0.45, share)));
    for (let first = 0, last = 0; first < shares.length; first = last) {
        const strength = strengthOf(shares[first]);
        while (last < shares.length && strengthOf(shares[last]) === strength) ++last;
        if (strength === 0) continue;
        context.globalAlpha = strength / strengths;
        context.fillRect(x + first * step, y, (last - first) * step, height);
    }
    context.globalAlpha = 1;
}
