// Allocations and frees in the order of time, so that any range of time has its figures at once:
// number and bytes of allocations and frees, the change and the peak of allocated memory.
//
// Blocks are sorted by start. A second order sorts them by the time of their free. Both together
// are the events. A chunk has at least `eventsInChunk` of them: its position in both orders, the
// sums up to there, and its peak. A query reads whole chunks, and the events of two chunks.
import { type DeviceModel, never } from "./model";
import { each } from "./steps";
import { orderByTime } from "./sweep";
import { upperBound } from "./upperbound";

const eventsInChunk = 256;

/** The events up to a time, that time included. */
interface Sums {
    starts: number; // blocks that were allocated
    frees: number;
    startBytes: number;
    freeBytes: number;
}

/** What happens after the tick `from`, up to and including the tick `to`. */
export interface RangeFigures {
    from: number;
    to: number;
    before: number; // allocated bytes after all events of `from`
    after: number; // the same at `to`
    allocations: number;
    allocatedBytes: number;
    frees: number;
    freedBytes: number;
    peak: number; // the most allocated bytes after all events of a tick, from `from` to `to`
    peakTick: number;
    rows: [first: number, last: number]; // allocated blocks: rows from `first` to below `last`
    freeRows: Uint32Array; // freed blocks, by the time of their free
}

interface Chunk extends Sums {
    tick: number; // of its first event; the sums are those before this event
    peak: number; // -1 = it has no event yet
    peakTick: number;
}

export class EventIndex {
    private readonly chunks: Chunk[] = [];
    private readonly ticks: number[] = []; // of the chunks

    private constructor(
        private readonly model: DeviceModel,
        private readonly freeOrder: Uint32Array,
    ) {}

    /** Makes the index in steps of about a millisecond. */
    static *inSteps(model: DeviceModel): Generator<void, EventIndex> {
        const { freed, count } = model.blocks;
        const rows = new Uint32Array(count);
        const times = new Uint32Array(count);
        let found = 0;
        let last = 0;
        yield* each(count, (row) => {
            if (freed[row] === never) return;
            if (freed[row] > last) last = freed[row];
            rows[found] = row;
            times[found++] = freed[row];
        });
        const order = yield* orderByTime(times.subarray(0, found), 0, last);
        yield* each(found, (at) => (order[at] = rows[order[at]]));
        const index = new EventIndex(model, order);
        yield* index.fill();
        return index;
    }

    figures(from: number, to: number): RangeFigures {
        const first = this.sumsAt(from);
        const last = this.sumsAt(to);
        const before = first.startBytes - first.freeBytes;
        let peak = before;
        let peakTick = from;
        const offer = (bytes: number, tick: number): void => {
            if (bytes > peak) [peak, peakTick] = [bytes, tick];
        };
        const [begin, end] = [this.chunkAt(from), this.chunkAt(to)];
        const walk = (chunk: number): Sums =>
            this.walk(chunk, to, (tick, { startBytes, freeBytes }) => {
                if (tick > from) offer(startBytes - freeBytes, tick);
            });
        walk(begin);
        for (let chunk = begin + 1; chunk < end; ++chunk) {
            offer(this.chunks[chunk].peak, this.chunks[chunk].peakTick);
        }
        if (end > begin) walk(end);
        return {
            from,
            to,
            before,
            after: last.startBytes - last.freeBytes,
            allocations: last.starts - first.starts,
            allocatedBytes: last.startBytes - first.startBytes,
            frees: last.frees - first.frees,
            freedBytes: last.freeBytes - first.freeBytes,
            peak,
            peakTick,
            rows: [first.starts, last.starts],
            freeRows: this.freeOrder.subarray(first.frees, last.frees),
        };
    }

    private *fill(): Generator<void, void> {
        const sums: Sums = { starts: 0, frees: 0, startBytes: 0, freeBytes: 0 };
        let chunk: Chunk | null = null;
        for (let done = 0; ; ++done) {
            const tick = this.nextTick(sums);
            if (tick === Infinity) return;
            if (!chunk || sums.starts + sums.frees - chunk.starts - chunk.frees >= eventsInChunk) {
                chunk = { ...sums, tick, peak: -1, peakTick: tick };
                this.chunks.push(chunk);
                this.ticks.push(tick);
            }
            this.pass(sums, tick);
            const bytes = sums.startBytes - sums.freeBytes;
            if (bytes > chunk.peak) [chunk.peak, chunk.peakTick] = [bytes, tick];
            if (done % 8192 === 8191) yield;
        }
    }

    private nextTick({ starts, frees }: Sums): number {
        const { start, freed, count } = this.model.blocks;
        const { freeOrder } = this;
        const begin = starts < count ? start[starts] : Infinity;
        const free = frees < freeOrder.length ? freed[freeOrder[frees]] : Infinity;
        return begin < free ? begin : free;
    }

    /** Adds all events of a tick. */
    private pass(sums: Sums, tick: number): void {
        const { start, freed, size, count } = this.model.blocks;
        const { freeOrder } = this;
        while (sums.starts < count && start[sums.starts] === tick) {
            sums.startBytes += size[sums.starts++];
        }
        while (sums.frees < freeOrder.length && freed[freeOrder[sums.frees]] === tick) {
            sums.freeBytes += size[freeOrder[sums.frees++]];
        }
    }

    /** The last chunk that begins at or before a tick; -1 = none. */
    private chunkAt(tick: number): number {
        return upperBound(this.ticks, tick) - 1;
    }

    /** Calls `visit` after the events of each tick of a chunk, up to and including `to`. */
    private walk(chunk: number, to: number, visit: (tick: number, sums: Sums) => void): Sums {
        if (chunk < 0) return { starts: 0, frees: 0, startBytes: 0, freeBytes: 0 };
        const { starts, frees, startBytes, freeBytes } = this.chunks[chunk];
        const sums: Sums = { starts, frees, startBytes, freeBytes };
        const end = this.chunks[chunk + 1]?.tick ?? Infinity;
        for (let tick = this.nextTick(sums); tick <= to && tick < end; tick = this.nextTick(sums)) {
            this.pass(sums, tick);
            visit(tick, sums);
        }
        return sums;
    }

    private sumsAt(tick: number): Sums {
        return this.walk(this.chunkAt(tick), tick, () => undefined);
    }
}
