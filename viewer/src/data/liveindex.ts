// Which blocks are live at a time, or at any time of an interval: checkpoints of the live set every
// so many blocks, and a scan from the nearest. Blocks are sorted by start; live = start <= t < end.
//
// A checkpoint would hold every long-lived block, and with many of them all checkpoints together
// would be many times the blocks. So checkpoints are the leaves of a binary tree, and a block is in
// the few nodes that cover the checkpoints in its life: at most twice the depth, mostly one or
// none.

import { finish, rowsInStep } from "./steps";

export class LiveIndex {
    private readonly stride: number;
    // a power of two; node 1 is the root, leaf of point p = leaves + p
    private readonly leaves: number;
    private readonly firsts: Uint32Array; // of each node into ids
    private readonly ids: Uint32Array;
    private readonly sorted = new Map<number, Uint32Array>(); // nodes by offset

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
        // Blocks that live at a checkpoint behind their own row, with the last one of these.
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

    /** Rows live at some time of [from, to], ascending. */
    between(from: number, to: number): Uint32Array {
        return finish(this.betweenInSteps(from, to));
    }

    /** The same in steps of about a millisecond. */
    *betweenInSteps(from: number, to: number): Generator<void, Uint32Array> {
        const { end, stride, leaves, firsts, ids } = this;
        const begin = this.firstAfter(from);
        const last = this.firstAfter(to);
        // Rows before `begin` start at or before `from`: the live ones of them come from the last
        // checkpoint taken at or before `from` and the rows after it. The checkpoint behind `begin`
        // would miss what ended between the two.
        const base = Math.floor((begin - 1) / stride);
        let most = last - begin;
        if (base >= 0) {
            most += begin - base * stride;
            for (let node = leaves + base; node > 0; node >>= 1) {
                most += firsts[node + 1] - firsts[node];
            }
        }
        let rows = new Uint32Array(most);
        let spare: Uint32Array<ArrayBuffer> | null = null; // for merging
        let found = 0;
        if (base >= 0) {
            // The rows of each node ascend, and the nodes are mostly the larger the higher they
            // are: merged one by one.
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
     * The row that is live at a time and has `at` in [offset, offset + size); -1 = none. For rows
     * that do not overlap while both live. Looks at a few rows of each node and at those behind a
     * checkpoint.
     */
    find(time: number, at: number, offset: ArrayLike<number>, size: ArrayLike<number>): number {
        const { end, stride, leaves } = this;
        const begin = this.firstAfter(time);
        const base = Math.floor((begin - 1) / stride);
        if (base < 0) return -1;
        const holds = (row: number): boolean =>
            end[row] > time && offset[row] <= at && at < offset[row] + size[row];
        for (let node = leaves + base; node > 0; node >>= 1) {
            const rows = this.byOffset(node, offset);
            let low = 0;
            let high = rows.length;
            while (low < high) {
                const middle = (low + high) >>> 1;
                if (offset[rows[middle]] <= at) low = middle + 1;
                else high = middle;
            }
            if (low > 0 && holds(rows[low - 1])) return rows[low - 1];
        }
        for (let row = base * stride; row < begin; ++row) if (holds(row)) return row;
        return -1;
    }

    // A node's rows all live at its checkpoints, so none overlaps another. Sorted when first asked
    // for.
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

    /** How many rows start in (from, to]: a cheap measure of how much an interval holds. */
    startsIn(from: number, to: number): number {
        return this.firstAfter(to) - this.firstAfter(from);
    }

    private firstAfter(time: number): number {
        let low = 0;
        let high = this.start.length;
        while (low < high) {
            const middle = (low + high) >>> 1;
            if (this.start[middle] <= time) low = middle + 1;
            else high = middle;
        }
        return low;
    }

    // The last checkpoint whose time is before `end`.
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

function grown(values: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
    const larger = new Uint32Array(values.length * 2);
    larger.set(values);
    return larger;
}

// The fewest nodes that cover the leaves first .. last.
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
