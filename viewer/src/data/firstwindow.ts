// Chooses the window that a page shows first. Programs start and end slowly, so in a picture of the
// whole run the interesting part would often be only a few pixels wide.
import type { DeviceModel } from "./model";

const matters = 0.1; // share of the peak of reserved memory
const margin = 0.08; // share of the window
const mostOfIt = 0.75; // share of the trace; a larger window becomes the whole run

/** The first time with more than a tenth of the peak reserved. Infinity = never. */
function firstReserved(model: DeviceModel): number {
    const { reserved_max, count } = model.bins;
    let most = 0;
    for (let i = 0; i < count; ++i) most = Math.max(most, reserved_max[i]);
    for (let i = 0; i < count; ++i) {
        if (reserved_max[i] > most * matters) return Math.floor((i / count) * model.lastTick);
    }
    return Infinity;
}

function firstStep(model: DeviceModel): number {
    const { phases, head } = model;
    const lane = head.phase_lanes.indexOf("steps");
    if (lane >= 0) {
        for (let i = 0; i < phases.count; ++i) if (phases.lane[i] === lane) return phases.start[i];
    }
    return Infinity;
}

/**
 * The window begins with the first step, or when a tenth of the peak is reserved, whichever is
 * earlier. It always includes every card. It ends at the last start of a segment or block, or at
 * the last marker or card if that is later.
 */
export function activeWindow(model: DeviceModel): [from: number, to: number] {
    const { units, head, lastTick } = model;
    let first = Math.min(lastTick, firstStep(model), firstReserved(model));
    let last = 0;
    const reach = (tick: number): void => {
        if (tick <= lastTick) last = Math.max(last, tick); // leaves out "never"
    };
    for (const card of head.cards) {
        first = Math.min(first, card.time_ns / head.tick_ns);
        reach(card.time_ns / head.tick_ns);
    }
    for (const marker of head.markers) reach(marker.time_ns / head.tick_ns);
    for (let unit = 0; unit < units.count; ++unit) reach(units.start[unit]);
    if (head.last_start_ns !== null) reach(Math.floor(head.last_start_ns / head.tick_ns));
    const beside = (last - first) * margin;
    if (!(beside > 0)) return [0, lastTick];
    const [from, to] = [Math.max(0, first - beside), Math.min(lastTick, last + beside)];
    return to - from > lastTick * mostOfIt ? [0, lastTick] : [from, to];
}
