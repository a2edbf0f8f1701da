// Steps and program-marked phases, in lanes. The columns are sorted by start.
import type { Columns } from "./columns";
import { upperBound } from "./upperbound";

/** A program can give a phase any name. A line of text shows so many characters of it. */
export const longestPhase = 120;

export interface Phases {
    count: number;
    start: Uint32Array; // ticks
    end: Uint32Array; // never = still open at the end
    name: Uint32Array; // index into the header's phase_names
    lane: Uint8Array;
    ranges: Uint32Array; // more than 1: neighbours that the file has as one
}

export function readPhases(columns: Columns): Phases {
    const { start, end, name, lane, ranges } = columns;
    return {
        count: start.length,
        start: Uint32Array.from(start),
        end: Uint32Array.from(end),
        name: Uint32Array.from(name),
        lane: Uint8Array.from(lane),
        ranges: Uint32Array.from(ranges),
    };
}

/** A value that changes at ascending ticks and holds until the next one; -1 = none. */
interface Course {
    at: Float64Array;
    phase: Int32Array;
}

interface PhaseIndex {
    lanes: Course[];
    innermost: Course;
}

const indexes = new WeakMap<Phases, PhaseIndex>();

// Made once per file: there may be a hundred thousand phases, all of them open until the end.
function indexOf(phases: Phases): PhaseIndex {
    let index = indexes.get(phases);
    if (!index) {
        const lanes: number[][] = [];
        for (let phase = 0; phase < phases.count; ++phase) {
            (lanes[phases.lane[phase]] ??= []).push(phase);
        }
        const courses = Array.from(lanes, (rows) => courseOf(phases, rows ?? []));
        index = {
            lanes: courses,
            innermost: courses.reduce(over, { at: new Float64Array(0), phase: new Int32Array(0) }),
        };
        indexes.set(phases, index);
    }
    return index;
}

// For one lane: at each tick the open phase with the latest start. Starts ascend, so the open
// phases form a stack.
function courseOf(phases: Phases, rows: number[]): Course {
    const at: number[] = [];
    const phase: number[] = [];
    const put = (tick: number, value: number): void => {
        if (at.length > 0 && at[at.length - 1] === tick) {
            phase[phase.length - 1] = value;
        } else {
            at.push(tick);
            phase.push(value);
        }
    };
    const open: number[] = [];
    const closeUntil = (tick: number): void => {
        while (open.length > 0 && phases.end[open[open.length - 1]] <= tick) {
            const end = phases.end[open.pop()!];
            while (open.length > 0 && phases.end[open[open.length - 1]] <= end) open.pop();
            put(end, open.length > 0 ? open[open.length - 1] : -1);
        }
    };
    for (const row of rows) {
        if (phases.end[row] <= phases.start[row]) continue;
        closeUntil(phases.start[row]);
        put(phases.start[row], row);
        open.push(row);
    }
    closeUntil(Infinity);
    return { at: Float64Array.from(at), phase: Int32Array.from(phase) };
}

// Takes `inner` where it has a phase and `outer` elsewhere.
function over(outer: Course, inner: Course): Course {
    const at = new Float64Array(outer.at.length + inner.at.length);
    const phase = new Int32Array(at.length);
    let count = 0;
    for (let i = 0, k = 0; i < outer.at.length || k < inner.at.length; ++count) {
        const tick = Math.min(outer.at[i] ?? Infinity, inner.at[k] ?? Infinity);
        if (outer.at[i] === tick) ++i;
        if (inner.at[k] === tick) ++k;
        const first = k > 0 ? inner.phase[k - 1] : -1;
        at[count] = tick;
        phase[count] = first >= 0 ? first : i > 0 ? outer.phase[i - 1] : -1;
    }
    return { at: at.subarray(0, count), phase: phase.subarray(0, count) };
}

function atTick({ at, phase }: Course, tick: number): number {
    const found = upperBound(at, tick);
    return found > 0 ? phase[found - 1] : -1;
}

/**
 * The innermost phase open at a tick: in the highest lane (steps are the lowest), the one with the
 * latest start; -1 = none.
 */
export function phaseAt(phases: Phases, tick: number): number {
    return atTick(indexOf(phases).innermost, tick);
}

/** Like phaseAt(), for one lane. */
export function phaseInLane(phases: Phases, lane: number, tick: number): number {
    const course = indexOf(phases).lanes[lane];
    return course ? atTick(course, tick) : -1;
}

/** phaseAt() for ascending `ticks`, in one pass and in steps of about a millisecond. */
export function* phasesInSteps(phases: Phases, ticks: Uint32Array): Generator<void, Int32Array> {
    const { at, phase } = indexOf(phases).innermost;
    const found = new Int32Array(ticks.length).fill(-1);
    let next = 0;
    for (let row = 0; row < ticks.length; ++row) {
        while (next < at.length && at[next] <= ticks[row]) ++next;
        if (next > 0) found[row] = phase[next - 1];
        if (row % 65_536 === 65_535) yield;
    }
    return found;
}
