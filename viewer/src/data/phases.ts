// Steps and the phases that the program marked, in lanes: columns by ascending start.
import type { Columns } from "./columns";
import { upperBound } from "./model";

export interface Phases {
    count: number;
    start: Uint32Array;  // ticks
    end: Uint32Array;    // never = still open at the end
    name: Uint32Array;   // index into the header's phase_names
    lane: Uint8Array;
}

export function readPhases(columns: Columns): Phases {
    const { start, end, name, lane } = columns;
    return { count: start.length, start: Uint32Array.from(start), end: Uint32Array.from(end), name: Uint32Array.from(name), lane: Uint8Array.from(lane) };
}

/** The innermost phase open at a tick (the highest lane, then the latest start); -1 = none. */
export function phaseAt(phases: Phases, tick: number): number {
    let best = -1;
    for (let i = upperBound(phases.start, tick) - 1; i >= 0; --i) {
        if (phases.end[i] <= tick) continue;
        if (best < 0 || phases.lane[i] > phases.lane[best]) best = i;
    }
    return best;
}

/**
 * For ascending `ticks`, the name of the innermost phase that is open at each (steps aside, which
 * are lane `stepLane`); -1 = none. One pass over both.
 */
export function phaseNames(phases: Phases, ticks: Uint32Array, stepLane: number): Int32Array {
    const names = new Int32Array(ticks.length).fill(-1);
    let open: number[] = [];  // few: as deep as ranges nest, times threads
    let next = 0;
    for (let row = 0; row < ticks.length; ++row) {
        const tick = ticks[row];
        let changed = false;
        while (next < phases.count && phases.start[next] <= tick) {
            if (phases.lane[next] !== stepLane) open.push(next);
            ++next;
            changed = true;
        }
        if (changed || open.some((phase) => phases.end[phase] <= tick)) open = open.filter((phase) => phases.end[phase] > tick);
        let best = -1;
        for (const phase of open) if (best < 0 || phases.lane[phase] >= phases.lane[best]) best = phase;
        if (best >= 0) names[row] = phases.name[best];
    }
    return names;
}
