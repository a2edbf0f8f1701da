// Stepping from one event to the next: blocks that begin, are freed or can be reused, segments that
// come and go, and markers. Times are ticks.
import type { DeviceModel } from "./model";
import { upperBound } from "./upperbound";

// Calls back with the times of what is not a block, in no order.
function forOthers(model: DeviceModel, visit: (tick: number) => void): void {
    const { units, head } = model;
    for (let unit = 0; unit < units.count; ++unit) {
        visit(units.start[unit]);
        visit(units.end[unit]);
    }
    for (const marker of head.markers) visit(Math.floor(marker.time_ns / head.tick_ns));
}

/** The tick of the first event after `tick`; the last tick where there is none. */
export function eventAfter(model: DeviceModel, tick: number): number {
    const { start, freed, end } = model.blocks;
    let next = model.lastTick;
    const offer = (time: number): void => {
        if (time > tick && time < next) next = time;
    };
    const row = upperBound(start, tick);
    if (row < start.length) offer(start[row]);
    // What begins later ends later still: before the next beginning only what is live now can end.
    for (const block of model.live.at(tick)) {
        offer(freed[block]);
        offer(end[block]);
    }
    forOthers(model, offer);
    return next;
}

/** The tick of the last event before `tick`; 0 where there is none. */
export function eventBefore(model: DeviceModel, tick: number): number {
    const { start, freed, end } = model.blocks;
    let last = 0;
    const offer = (time: number): void => {
        if (time < tick && time > last) last = time;
    };
    const row = upperBound(start, tick - 1) - 1;
    if (row >= 0) {
        offer(start[row]);
        // Between that beginning and `tick` nothing begins: what ends there was live at the
        // beginning.
        for (const block of model.live.at(start[row])) {
            offer(freed[block]);
            offer(end[block]);
        }
    }
    forOthers(model, offer);
    return last;
}
