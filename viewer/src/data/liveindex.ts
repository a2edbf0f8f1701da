// Finds the blocks that are live at a time, or at any time of an interval. Every `stride` blocks
// there is a checkpoint of the live blocks. A query starts at a checkpoint and scans the rows after
// it. Blocks are sorted by start; live means start <= t < end.
//
// If every checkpoint listed all long-lived blocks, the checkpoints would be many times as large as
// the blocks. Therefore the checkpoints are the leaves of a binary tree. A block is stored in the
// few nodes that cover the checkpoints in its life: at most twice the depth, mostly one or none.

import { finish, rowsInStep } from "./steps";
import { upperBound, upperBoundOfRows } from "./upperbound";

export class LiveIndex {
    private readonly stride: number;
    // A power of two. Node 1 is the root. The leaf of checkpoint p is leaves + p.
    private readonly leaves: number;
    private readonly firsts: Uint32Array; // start of each node's rows in `ids`
    private readonly ids: Uint32Array;
    private readonly sorted = new Map<number, Uint32Array>(); // rows of a node, sorted by offset
    private spare = new Uint32Array(0); // kept, because a frame should allocate little

    constructor(
        private readonly start: Uint32Array,
        private readonly end: Uint32Array,
        checkpoints = 512,
    ) {
        const count = start.length;
        this.stride = Math.max(64, Math.ceil(count / checkpoints));
        const { stride } = this;
        const points = Math.ceil(count / stride);
        let leaves = 1;
        while (leaves < points) leaves *= 2;
        this.leaves = leaves;
        // Blocks that are live at a later checkpoint than their own, with the last such checkpoint.
        let rows = new Uint32Array(1024);
        let lasts = new Uint32Array(1024);
        let found = 0;
        for (let point = 1; point < points; ++point) {
            const time = start[point * stride];
            for (let row = (point - 1) * stride; row < point * stride; ++row) {
                if (end[row] <= time) continue;
                if (found === rows.length) {
                    rows = grown(rows);
                    lasts = grown(lasts);
                }
                rows[found] = row;
                lasts[found++] = this.lastPoint(end[row], points);
            }
        }
        const firsts = new Uint32Array(2 * leaves + 1);
        for (let i = 0; i < found; ++i) {
            forNodes(
                leaves,
                Math.floor(rows[i] / stride) + 1,
                lasts[i],
                (node) => ++firsts[node + 1],
            );
        }
        for (let node = 0; node < 2 * leaves; ++node) firsts[node + 1] += firsts[node];
        const ids = new Uint32Array(firsts[2 * leaves]);
        const fill = firsts.slice();
        for (let i = 0; i < found; ++i) {
            forNodes(
                leaves,
                Math.floor(rows[i] / stride) + 1,
                lasts[i],
                (node) => (ids[fill[node]++] = rows[i]),
            );
        }
        this.firsts = firsts;
        this.ids = ids;
    }

    /** Rows that are live at some time of [from, to], ascending. */
    between(from: number, to: number): Uint32Array {
        return finish(this.betweenInSteps(from, to));
    }

    /** Like between(), in steps of about a millisecond. */
    *betweenInSteps(from: number, to: number): Generator<void, Uint32Array> {
        const { end, stride, leaves, firsts, ids } = this;
        const begin = upperBound(this.start, from);
        const last = upperBound(this.start, to);
        // Rows before `begin` start at or before `from`. Those still live come from the last
        // checkpoint at or before `from` and from the rows after that checkpoint. A later
        // checkpoint would miss blocks that ended between `from` and its time.
        const base = Math.floor((begin - 1) / stride);
        let most = last - begin;
        if (base >= 0) {
            most += begin - base * stride;
            for (let node = leaves + base; node > 0; node >>= 1) {
                most += firsts[node + 1] - firsts[node];
            }
        }
        let rows = new Uint32Array(most);
        let spare: Uint32Array<ArrayBuffer> | null = null; // buffer for merging
        let found = 0;
        if (base >= 0) {
            // Merge the nodes' rows one by one. The rows of each node are sorted, and higher nodes
            // are mostly larger.
            for (let node = leaves + base; node > 0; node >>= 1) {
                const [first, behind] = [firsts[node], firsts[node + 1]];
                if (first === behind) continue;
                const into: Uint32Array<ArrayBuffer> =
                    found > 0 ? (spare ??= new Uint32Array(most)) : rows;
                let at = 0;
                let count = 0;
                for (let i = first; i < behind; ++i) {
                    const row = ids[i];
                    if (end[row] > from) {
                        while (at < found && rows[at] < row) into[count++] = rows[at++];
                        into[count++] = row;
                    }
                    if (i % rowsInStep === 0) yield;
                }
                if (into !== rows) {
                    while (at < found) into[count++] = rows[at++];
                    spare = rows;
                    rows = into;
                }
                found = count;
            }
            for (let row = base * stride; row < begin; ++row) {
                if (end[row] > from) rows[found++] = row;
            }
        }
        for (let row = begin; row < last; ++row) {
            rows[found++] = row;
            if (row % (4 * rowsInStep) === 0) yield;
        }
        return rows.subarray(0, found);
    }

    /**
     * Returns the row that is live at `time` and has `at` in [offset, offset + size); -1 = none.
     * Rows must not overlap while both are live. Looks at a few rows of each node and at the rows
     * after a checkpoint.
     */
    find(time: number, at: number, offset: ArrayLike<number>, size: ArrayLike<number>): number {
        const { end, stride, leaves } = this;
        const begin = upperBound(this.start, time);
        const base = Math.floor((begin - 1) / stride);
        if (base < 0) return -1;
        const holds = (row: number): boolean =>
            end[row] > time && offset[row] <= at && at < offset[row] + size[row];
        for (let node = leaves + base; node > 0; node >>= 1) {
            const rows = this.byOffset(node, offset);
            const above = upperBoundOfRows(rows, offset, at);
            if (above > 0 && holds(rows[above - 1])) return rows[above - 1];
        }
        for (let row = base * stride; row < begin; ++row) if (holds(row)) return row;
        return -1;
    }

    /**
     * The rows that are live at `time` with the last offset at or below `at` and the first one
     * above it; -1 = none. Rows must not overlap while both are live. Looks at the same
     * rows as find(), and at rows beside them that ended since the checkpoint.
     */
    around(time: number, at: number, offset: ArrayLike<number>): [before: number, after: number] {
        const { end, stride, leaves } = this;
        const begin = upperBound(this.start, time);
        const base = Math.floor((begin - 1) / stride);
        let [before, after] = [-1, -1];
        if (base < 0) return [before, after];
        const consider = (row: number): void => {
            if (offset[row] <= at) {
                if (before < 0 || offset[row] > offset[before]) before = row;
            } else if (after < 0 || offset[row] < offset[after]) {
                after = row;
            }
        };
        for (let node = leaves + base; node > 0; node >>= 1) {
            const rows = this.byOffset(node, offset);
            let above = upperBoundOfRows(rows, offset, at);
            let below = above - 1;
            while (below >= 0 && end[rows[below]] <= time) --below;
            if (below >= 0) consider(rows[below]);
            while (above < rows.length && end[rows[above]] <= time) ++above;
            if (above < rows.length) consider(rows[above]);
        }
        for (let row = base * stride; row < begin; ++row) if (end[row] > time) consider(row);
        return [before, after];
    }

    /**
     * Rows that are live at `time`, in the order of `offset`. Rows must not overlap while both are
     * live. Merges the rows of nodes, which are already in this order, and the rows after a
     * checkpoint.
     */
    inOrder(time: number, offset: ArrayLike<number>): Uint32Array {
        const { end, stride, leaves, firsts } = this;
        const begin = upperBound(this.start, time);
        const base = Math.floor((begin - 1) / stride);
        if (base < 0) return new Uint32Array(0);
        let most = begin - base * stride;
        for (let node = leaves + base; node > 0; node >>= 1) {
            most += firsts[node + 1] - firsts[node];
        }
        let rows = new Uint32Array(most);
        let spare = this.spare.length < most ? new Uint32Array(most) : this.spare;
        let found = 0;
        for (let row = base * stride; row < begin; ++row) if (end[row] > time) rows[found++] = row;
        rows.subarray(0, found).sort((a, b) => offset[a] - offset[b]);
        // Higher nodes are mostly larger.
        for (let node = leaves + base; node > 0; node >>= 1) {
            const more = this.byOffset(node, offset);
            if (more.length === 0) continue;
            let at = 0;
            let count = 0;
            let next = found > 0 ? offset[rows[0]] : Infinity;
            for (const row of more) {
                if (time >= end[row]) continue;
                const place = offset[row];
                while (next < place) {
                    spare[count++] = rows[at++];
                    next = at < found ? offset[rows[at]] : Infinity;
                }
                spare[count++] = row;
            }
            while (at < found) spare[count++] = rows[at++];
            [rows, spare] = [spare, rows];
            found = count;
        }
        this.spare = spare; // the caller keeps the other one
        return rows.subarray(0, found);
    }

    // All rows of a node are live at its checkpoints, so they do not overlap. They are sorted at
    // first use.
    private byOffset(node: number, offset: ArrayLike<number>): Uint32Array {
        let rows = this.sorted.get(node);
        if (!rows) {
            rows = this.ids
                .slice(this.firsts[node], this.firsts[node + 1])
                .sort((a, b) => offset[a] - offset[b]);
            this.sorted.set(node, rows);
        }
        return rows;
    }

    at(time: number): Uint32Array {
        return this.between(time, time);
    }

    /** Number of rows that start in (from, to]: a cheap estimate of an interval's work. */
    startsIn(from: number, to: number): number {
        return upperBound(this.start, to) - upperBound(this.start, from);
    }

    // The last checkpoint before the time `end`.
    private lastPoint(end: number, points: number): number {
        let low = 0;
        let high = points;
        while (low < high) {
            const middle = (low + high) >>> 1;
            if (this.start[middle * this.stride] < end) low = middle + 1;
            else high = middle;
        }
        return low - 1;
    }
}

/** A copy with twice the room. */
export function grown(values: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
    const larger = new Uint32Array(values.length * 2);
    larger.set(values);
    return larger;
}

// Calls back with the smallest set of nodes that covers the leaves first to last.
function forNodes(
    leaves: number,
    first: number,
    last: number,
    visit: (node: number) => void,
): void {
    let low = leaves + first;
    let high = leaves + last + 1;
    while (low < high) {
        if (low & 1) visit(low++);
        if (high & 1) visit(--high);
        low >>= 1;
        high >>= 1;
    }
}
