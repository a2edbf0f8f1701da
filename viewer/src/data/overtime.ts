// Amounts of memory that change over time.
import type { Side } from "./header";
import { upperBound } from "./upperbound";

/** Each value is valid from its tick to the next. Before the first it is 0. */
export interface OverTime {
    time: ArrayLike<number>; // ticks, ascending
    bytes: ArrayLike<number>;
}

/** Memory beside the pool. */
export interface SideMemory extends OverTime {
    partNs: number; // 0: exact; otherwise each value is the most within a time of this length
}

/** The words before a value that may be the most of a time. */
export function mostWords({ partNs }: SideMemory): string {
    return partNs > 0 ? "at most " : "";
}

/** The value after all changes of a tick. */
export function bytesAt({ time, bytes }: OverTime, tick: number): number {
    const after = upperBound(time, tick);
    return after > 0 ? bytes[after - 1] : 0;
}

/** The most bytes of the whole trace, and the tick at which they were reached first. */
export function peakOf({ time, bytes }: OverTime): { tick: number; bytes: number } {
    let peak = { tick: 0, bytes: 0 };
    for (let i = 0; i < time.length; ++i) {
        if (bytes[i] > peak.bytes) peak = { tick: time[i], bytes: bytes[i] };
    }
    return peak;
}

/** The most bytes in each of `columns` equal parts of [from, to). */
export function mostIn(over: OverTime, from: number, to: number, columns: number): Float64Array {
    const most = new Float64Array(columns);
    const place = (tick: number): number => ((tick - from) * columns) / (to - from);
    let next = upperBound(over.time, from);
    let now = next > 0 ? over.bytes[next - 1] : 0;
    let begin = 0; // the place from which `now` is valid
    const hold = (end: number): void => {
        // A value that lasts less than a tick is seen, too.
        const last = Math.min(columns, Math.max(Math.ceil(end), Math.floor(begin) + 1));
        for (let at = Math.floor(begin); at < last; ++at) most[at] = Math.max(most[at], now);
        begin = end;
    };
    for (; next < over.time.length && over.time[next] < to; ++next) {
        hold(place(over.time[next]));
        now = over.bytes[next];
    }
    hold(columns);
    return most;
}

/** Memory of the process that belongs to no card: a track below memory over time. */
export interface Track extends SideMemory {
    name: string; // "pinned"
    what: string; // "pinned host memory"
    peak: { tick: number; bytes: number };
}

const kinds = [
    ["pinned", "pinned host memory"],
    ["managed", "managed memory"],
] as const;

/** The tracks with any memory. `columns` gives the columns of a name. */
export function tracksOf(columns: (name: Side) => SideMemory): Track[] {
    return kinds
        .map(([name, what]) => {
            const over = columns(name);
            return { name, what, ...over, peak: peakOf(over) };
        })
        .filter(({ peak }) => peak.bytes > 0);
}
