// Draws steps and phases below the chart, one lane per nesting depth, and finds the phase at the
// pointer. A wide phase is a box with its name. Neighbouring thin phases share a grey band with
// their number.
import type { DeviceModel } from "../data/model";
import { upperBound } from "../data/upperbound";
import { formatCount } from "../data/format";
import { phaseInLane } from "../data/phases";
import type { Colours } from "./colours";
import { type Layer, fitText, font } from "./surface";
import { plotLeft, plotRight, type Window } from "./timeaxis";

export const laneHeight = 13;
const thin = 3; // pixels; narrower phases share a band
const namedFrom = 30; // pixels; room for some letters

export function lanesHeight(model: DeviceModel): number {
    return model.head.phase_lanes.length * laneHeight;
}

/**
 * The kind of a lane, with a number if several lanes have that kind: "steps", "cells", "NVTX 2".
 */
export function laneKind(model: DeviceModel, lane: number): string {
    const lanes = model.head.phase_lanes;
    const kind = lanes[lane];
    if (lanes.filter((other) => other === kind).length === 1) return kind;
    return `${kind} ${lanes.slice(0, lane + 1).filter((other) => other === kind).length}`;
}

/** Names each lane: the name that all its ranges have, otherwise its kind. */
export function laneNames(model: DeviceModel): string[] {
    const { phases, head } = model;
    const only: number[] = head.phase_lanes.map(() => -1); // -1 = none yet, -2 = several
    for (let i = 0; i < phases.count; ++i) {
        const lane = phases.lane[i];
        if (only[lane] !== phases.name[i]) only[lane] = only[lane] === -1 ? phases.name[i] : -2;
    }
    return head.phase_lanes.map((kind, lane) =>
        kind !== "steps" && only[lane] >= 0 ? head.phase_names[only[lane]] : laneKind(model, lane),
    );
}

const namesOf = new WeakMap<DeviceModel["phases"], string[]>();

function knownNames(model: DeviceModel): string[] {
    let names = namesOf.get(model.phases);
    if (!names) namesOf.set(model.phases, (names = laneNames(model)));
    return names;
}

/**
 * A part of a lane: a box of one range, or a band of several ranges. `first` is the row of
 * the first range.
 */
export interface LanePart {
    from: number;
    to: number;
    first: number;
    count: number;
}

/**
 * The parts of every lane between two pixels, ascending. `x` returns the pixel of a tick. Makes one
 * pass over the ranges that begin before the window's end.
 */
export function laneParts(
    model: DeviceModel,
    window: Window,
    x: (tick: number) => number,
    left: number,
    right: number,
): LanePart[][] {
    const { phases, head, lastTick } = model;
    const lanes: LanePart[][] = head.phase_lanes.map(() => []);
    const last = upperBound(phases.start, window.t1);
    for (let i = 0; i < last; ++i) {
        const end = Math.min(phases.end[i], lastTick);
        if (end < window.t0) continue;
        const from = Math.max(left, x(phases.start[i]));
        const to = Math.min(right, x(end));
        const parts = lanes[phases.lane[i]];
        const before = parts[parts.length - 1];
        // A thin range joins a thin neighbour that it touches or nearly touches.
        if (
            before &&
            to - from < thin &&
            from - before.to < thin &&
            (before.count > 1 || before.to - before.from < thin)
        ) {
            before.to = Math.max(before.to, to);
            before.count += phases.ranges[i];
        } else {
            parts.push({ from, to, first: i, count: phases.ranges[i] });
        }
    }
    return lanes;
}

// The whole text, only the number of a step, or as many letters as fit.
function lettersInside(
    context: CanvasRenderingContext2D,
    text: string,
    room: number,
    step: boolean,
): string {
    if (room < 5) return "";
    if (context.measureText(text).width <= room) return text;
    if (!step) return room > namedFrom ? fitText(context, text, room) : "";
    const number = text.slice(text.lastIndexOf(" ") + 1);
    return context.measureText(number).width <= room ? number : "";
}

export function drawLanes(
    layer: Layer,
    model: DeviceModel,
    window: Window,
    top: number,
    colours: Colours,
): void {
    const { context } = layer;
    const { phases, head } = model;
    const right = plotRight(layer);
    context.font = font(10);
    context.textAlign = "right";
    context.fillStyle = colours.faint;
    knownNames(model).forEach((name, lane) =>
        context.fillText(
            fitText(context, name, plotLeft - 8),
            plotLeft - 6,
            top + lane * laneHeight + 10,
        ),
    );
    context.textAlign = "left";
    const scale = (right - plotLeft) / (window.t1 - window.t0);
    const lanes = laneParts(
        model,
        window,
        (tick) => plotLeft + (tick - window.t0) * scale,
        plotLeft,
        right,
    );
    lanes.forEach((parts, lane) => {
        const y = top + lane * laneHeight;
        const steps = head.phase_lanes[lane] === "steps";
        parts.forEach(({ from, to, first, count }, at) => {
            const width = Math.max(count > 1 ? thin : 0.5, to - from - (to - from > thin ? 1 : 0));
            const name = phases.name[first];
            const many = `${formatCount(count)} ${steps ? "steps" : "ranges"}`;
            const text =
                count > 1
                    ? many + (count === phases.ranges[first] ? `: ${head.phase_names[name]}` : "")
                    : head.phase_names[name];
            // Steps follow one another: two shades distinguish odd from even. A phase's colour
            // depends on its name.
            const shade = steps
                ? text.charCodeAt(text.length - 1) % 2
                : name % colours.phases.length;
            context.fillStyle = count > 1 ? colours.line : colours.phases[shade];
            context.fillRect(from, y, width, laneHeight - 2);
            const next = at + 1 < parts.length ? parts[at + 1].from : right;
            context.fillStyle = colours.ink;
            const room = to - from - 6;
            const inside =
                count > 1 && context.measureText(many).width > room
                    ? "" // "58 s…" looks like seconds
                    : lettersInside(context, text, room, steps && count === 1);
            if (inside !== "") {
                context.fillText(inside, from + 3, y + 9);
            } else if (
                count === 1 &&
                next - to > namedFrom &&
                context.measureText(text).width + 6 < next - to
            ) {
                context.fillText(text, to + 2, y + 9); // to the right of it, where nothing else is
            }
        });
    });
}

/** The phase of a lane at a tick; -1 = none. */
export function hitLane(model: DeviceModel, lane: number, tick: number): number {
    return phaseInLane(model.phases, lane, tick);
}
