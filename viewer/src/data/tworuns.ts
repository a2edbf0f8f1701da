// Two runs side by side: which device belongs to which run, an axis that both share, their memory
// along it, and the same place in the other run.
import type { ComparedDevice, ComparedLine, Header, Pair, TimeSpanNs } from "./header";
import { type DeviceModel, never } from "./model";
import { upperBound } from "./upperbound";

export type Side = 0 | 1;
export const sides: readonly Side[] = [0, 1];
export const runNames: Pair<string> = ["A", "B"];
export const otherSide = (side: Side): Side => (side === 0 ? 1 : 0);

/** The run that a device of the file belongs to; null: the page does not compare two runs. */
export function sideOf({ comparison, devices }: Header, device: number): Side | null {
    if (!comparison) return null;
    return devices[device].process === comparison.processes[0] ? 0 : 1;
}

/** The row of the comparison that a device of the file stands in. */
export function comparedDevice({ comparison }: Header, device: number): ComparedDevice | null {
    return comparison?.devices.find(({ devices }) => devices.includes(device)) ?? null;
}

/** The same device in the other run; null = there is none. */
export function counterpart(header: Header, device: number): number | null {
    const row = comparedDevice(header, device);
    return row ? row.devices[otherSide(sideOf(header, device)!)] : null;
}

/** "A · GPU 0 NVIDIA H100". */
export function runLabel(header: Header, device: number): string {
    const { index, name } = header.devices[device];
    const side = sideOf(header, device);
    const gpu = `GPU ${index} ${name}`;
    return side === null ? gpu : `${runNames[side]} · ${gpu}`;
}

// ---- the common axis ----------------------------------------------------------------------------

export const axisUnits = ["step", "time"] as const;
export type AxisUnit = (typeof axisUnits)[number];

/**
 * Positions that both runs share: nanoseconds since the start of each, or steps. Position k is the
 * start of step k + 1; what precedes the first step is as wide as a step.
 */
export interface CommonAxis {
    unit: AxisUnit;
    from: number;
    to: number;
    at(side: Side, tick: number): number;
    tick(side: Side, at: number): number;
}

/** A course through ascending ticks and positions, straight in between. */
interface Knots {
    ticks: number[];
    ats: number[];
}

/** Maps `value` from one column of the knots to the other. Values outside stay at its ends. */
function mapped(from: number[], to: number[], value: number): number {
    const after = Math.max(1, Math.min(from.length - 1, upperBound(from, value)));
    const [low, high] = [from[after - 1], from[after]];
    const share = high > low ? Math.max(0, Math.min(1, (value - low) / (high - low))) : 0;
    return to[after - 1] + share * (to[after] - to[after - 1]);
}

function timeKnots({ lastTick, head }: DeviceModel): Knots {
    return { ticks: [0, lastTick], ats: [0, lastTick * head.tick_ns] };
}

/** null: the run has no steps, or the file leaves some out, so that their numbers are not known. */
function stepKnots({ phases, head, lastTick }: DeviceModel): Knots | null {
    const lane = head.phase_lanes.indexOf("steps");
    const knots: Knots = { ticks: [], ats: [] };
    for (let phase = 0; lane >= 0 && phase < phases.count; ++phase) {
        if (phases.lane[phase] !== lane) continue;
        if (head.phase_names[phases.name[phase]] !== `step ${knots.ticks.length + 1}`) return null;
        knots.ats.push(knots.ticks.length);
        knots.ticks.push(phases.start[phase]);
    }
    const count = knots.ticks.length;
    if (count < 2) return null;
    if (knots.ticks[0] > 0) {
        knots.ticks.unshift(0);
        knots.ats.unshift(-1);
    }
    knots.ticks.push(Math.max(lastTick, knots.ticks.at(-1)! + 1));
    knots.ats.push(count);
    return knots;
}

function axisOf(unit: AxisUnit, knots: Pair<Knots>): CommonAxis {
    return {
        unit,
        from: Math.min(knots[0].ats[0], knots[1].ats[0]),
        to: Math.max(knots[0].ats.at(-1)!, knots[1].ats.at(-1)!),
        at: (side, tick) => mapped(knots[side].ticks, knots[side].ats, tick),
        tick: (side, at) => Math.round(mapped(knots[side].ats, knots[side].ticks, at)),
    };
}

/** The axes on which both runs can be compared, the better one first. */
export function commonAxes(models: Pair<DeviceModel>): CommonAxis[] {
    const [a, b] = models.map(stepKnots);
    const byTime = axisOf("time", [timeKnots(models[0]), timeKnots(models[1])]);
    return a && b ? [axisOf("step", [a, b]), byTime] : [byTime];
}

/** Chooses by the unit that the view wants. */
export function chosenAxis(axes: readonly CommonAxis[], unit: AxisUnit): CommonAxis {
    return axes.find((axis) => axis.unit === unit) ?? axes[0];
}

// ---- memory along the axis ----------------------------------------------------------------------

export type CourseName = "reserved_max" | "allocated_max";

/** The most bytes in each of `columns` equal parts of the axis; -1 = the run has ended. */
export function courseOf(
    model: DeviceModel,
    side: Side,
    axis: CommonAxis,
    columns: number,
    name: CourseName,
): Float64Array {
    const course = new Float64Array(columns).fill(-1);
    const { bins, lastTick } = model;
    const column = (tick: number): number =>
        ((axis.at(side, tick) - axis.from) / (axis.to - axis.from)) * columns;
    for (let bin = 0; bin < bins.count; ++bin) {
        const first = Math.min(columns - 1, Math.floor(column((bin / bins.count) * lastTick)));
        const end = Math.min(columns, column(((bin + 1) / bins.count) * lastTick));
        for (let at = first; at === first || at < end; ++at) {
            course[at] = Math.max(course[at], bins[name][bin]);
        }
    }
    return course;
}

/** The bytes of the bin at a position; null = the run has ended. */
export function bytesAt(
    model: DeviceModel,
    side: Side,
    axis: CommonAxis,
    at: number,
    name: CourseName,
): number | null {
    const { bins, lastTick } = model;
    if (at > axis.at(side, lastTick) || at < axis.at(side, 0)) return null;
    const bin = Math.floor((axis.tick(side, at) / lastTick) * bins.count);
    return bins[name][Math.min(bins.count - 1, bin)];
}

// ---- the same place in the other run ------------------------------------------------------------

/** The parts of a view that are times. */
export interface Times {
    t0: number;
    t1: number;
    cursor: number;
    r0: number;
    r1: number;
    s0: number;
    s1: number;
}

/** The same place on the axis, in the other run. */
export function switchedTimes(axis: CommonAxis, from: Side, times: Times): Times {
    const to = otherSide(from);
    const moved = (tick: number): number => (tick < 0 ? -1 : axis.tick(to, axis.at(from, tick)));
    const { t0, t1, cursor, r0, r1, s0, s1 } = times;
    return {
        t0: moved(t0),
        t1: moved(t1),
        cursor: moved(cursor),
        r0: moved(r0),
        r1: moved(r1),
        s0: moved(s0),
        s1: moved(s1),
    };
}

/** How a view shows a span of time: selected, with as much again on both sides. */
export function spanView(
    tickNs: number,
    [from, to]: TimeSpanNs,
): { cursor: number; r0: number; r1: number; t0?: number; t1?: number } {
    const [begin, end] = [Math.floor(from / tickNs), Math.min(never - 1, Math.floor(to / tickNs))];
    if (end <= begin) return { cursor: begin, r0: -1, r1: -1 };
    const beside = end - begin;
    return { cursor: begin, r0: begin, r1: end, t0: begin - beside, t1: end + beside };
}

// ---- lines --------------------------------------------------------------------------------------

/** B minus A; null = not known. */
export function difference({ a, b }: { a: number | null; b: number | null }): number | null {
    return a === null || b === null ? null : b - a;
}

/** Lines with the largest difference first, lines of unknown difference last. */
export function largestFirst(lines: readonly ComparedLine[]): ComparedLine[] {
    const size = (line: ComparedLine): number => Math.abs(difference(line) ?? -0.5);
    return [...lines].sort((x, y) => size(y) - size(x));
}

/** The number of a line in one run, as Stacks.line() gives it; -1: no stack of the file has it. */
export function lineIn({ strings }: Header, { label, label_a }: ComparedLine, side: Side): number {
    return strings.indexOf(side === 0 ? label_a : label);
}
