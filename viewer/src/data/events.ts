// Finds the next and the previous event: a block is allocated, freed or becomes reusable, a segment
// is created or released, or a marker. Times are ticks.
import type { DeviceModel } from "./model";
import { upperBound } from "./upperbound";

// Calls `visit` with the times of segments and markers, in no order.
function forOthers(model: DeviceModel, visit: (tick: number) => void): void {
    const { units, head } = model;
    for (let unit = 0; unit < units.count; ++unit) {
        visit(units.start[unit]);
        visit(units.end[unit]);
    }
    for (const marker of head.markers) visit(Math.floor(marker.time_ns / head.tick_ns));
}

/** The tick of the first event after `tick`. Without one, the last tick. */
export function eventAfter(model: DeviceModel, tick: number): number {
    const { start, freed, end } = model.blocks;
    let next = model.lastTick;
    const offer = (time: number): void => {
        if (time > tick && time < next) next = time;
    };
    const row = upperBound(start, tick);
    if (row < start.length) offer(start[row]);
    // Before the next start, only blocks that are live now can end.
    for (const block of model.live.at(tick)) {
        offer(freed[block]);
        offer(end[block]);
    }
    forOthers(model, offer);
    return next;
}

/** The tick of the last event before `tick`. Without one, 0. */
export function eventBefore(model: DeviceModel, tick: number): number {
    const { start, freed, end } = model.blocks;
    let last = 0;
    const offer = (time: number): void => {
        if (time < tick && time > last) last = time;
    };
    const row = upperBound(start, tick - 1) - 1;
    if (row >= 0) {
        offer(start[row]);
        // No block starts between this row's start and `tick`. A block that ends there was
        // therefore live at this row's start.
        for (const block of model.live.at(start[row])) {
            offer(freed[block]);
            offer(end[block]);
        }
    }
    forOthers(model, offer);
    return last;
}
