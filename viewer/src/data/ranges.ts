// The ranges of time that a person selects: steps and phases as ranges, and what to compare a range
// with. A range has the events after its first tick, up to and including its last one.
import type { DeviceModel } from "./model";
import { phaseInLane } from "./phases";

export type Range = [from: number, to: number]; // ticks

function rangeOf({ phases, lastTick }: DeviceModel, phase: number): Range {
    return [phases.start[phase], Math.min(phases.end[phase], lastTick)];
}

const same = (a: Range, b: Range): boolean => a[0] === b[0] && a[1] === b[1];

/**
 * The innermost step or phase at a tick. If this is the current range, the one around it; null =
 * none.
 */
export function phaseRange(model: DeviceModel, tick: number, current: Range | null): Range | null {
    const around: Range[] = [];
    for (let lane = model.head.phase_lanes.length - 1; lane >= 0; --lane) {
        const phase = phaseInLane(model.phases, lane, tick);
        if (phase >= 0) around.push(rangeOf(model, phase));
    }
    const at = current ? around.findIndex((range) => same(range, current)) : -1;
    return around[at + 1] ?? around[0] ?? null;
}

/** Which of two ranges begins later. Differences are those of this range minus the other. */
export function laterOf(ranges: readonly Range[]): number {
    return ranges.length > 1 && ranges[1][0] >= ranges[0][0] ? 1 : 0;
}

/** The step or phase that a range is; -1 = none. */
export function phaseOf(model: DeviceModel, range: Range): number {
    const { phases } = model;
    for (let phase = phases.count - 1; phase >= 0; --phase) {
        if (phases.start[phase] === range[0] && same(rangeOf(model, phase), range)) return phase;
    }
    return -1;
}

/**
 * What a range is compared with at first: the step, or the phase of the same name, before it. For
 * any other range the equally long one before it, or after it at the start of the trace.
 */
export function rangeBefore(model: DeviceModel, range: Range): Range {
    const { phases, lastTick, head } = model;
    const phase = phaseOf(model, range);
    if (phase >= 0) {
        const isStep = head.phase_lanes[phases.lane[phase]] === "steps";
        for (let at = phase - 1; at >= 0; --at) {
            if (phases.lane[at] !== phases.lane[phase]) continue;
            if (isStep || phases.name[at] === phases.name[phase]) return rangeOf(model, at);
        }
    }
    const length = range[1] - range[0];
    return range[0] >= length
        ? [range[0] - length, range[0]]
        : [range[1], Math.min(lastTick, range[1] + length)];
}
