// Which blocks are live at a time, or at any time of an interval: checkpoints of the live set every
// so many blocks, and a scan from the nearest. Blocks are sorted by start; live = start <= t < end.
//
// A checkpoint would hold every long-lived block, and with many of them all checkpoints together
// would be many times the blocks. So checkpoints are the leaves of a binary tree, and a block is in
// the few nodes that cover the checkpoints in its life: at most twice the depth, mostly one or none.

export class LiveIndex {
    private readonly stride: number;
    private readonly leaves: number;  // a power of two; node 1 is the root, leaf of point p = leaves + p
    private readonly firsts: Uint32Array;  // of each node into ids
    private readonly ids: Uint32Array;

    constructor(private readonly start: Uint32Array, private readonly end: Uint32Array, checkpoints = 512) {
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
        for (let i = 0; i < found; ++i) forNodes(leaves, Math.floor(rows[i] / stride) + 1, lasts[i], (node) => ++firsts[node + 1]);
        for (let node = 0; node < 2 * leaves; ++node) firsts[node + 1] += firsts[node];
        const ids = new Uint32Array(firsts[2 * leaves]);
        const fill = firsts.slice();
        for (let i = 0; i < found; ++i) forNodes(leaves, Math.floor(rows[i] / stride) + 1, lasts[i], (node) => (ids[fill[node]++] = rows[i]));
        this.firsts = firsts;
        this.ids = ids;
    }

    /** Rows live at some time of [from, to], ascending. */
    between(from: number, to: number): Uint32Array {
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
            for (let node = leaves + base; node > 0; node >>= 1) most += firsts[node + 1] - firsts[node];
        }
        const rows = new Uint32Array(most);
        let found = 0;
        if (base >= 0) {
            let nodes = 0;
            for (let node = leaves + base; node > 0; node >>= 1) {
                if (firsts[node + 1] > firsts[node]) ++nodes;
                for (let i = firsts[node]; i < firsts[node + 1]; ++i) if (end[ids[i]] > from) rows[found++] = ids[i];
            }
            if (nodes > 1) rows.subarray(0, found).sort();
            for (let row = base * stride; row < begin; ++row) if (end[row] > from) rows[found++] = row;
        }
        for (let row = begin; row < last; ++row) rows[found++] = row;
        return rows.subarray(0, found);
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
function forNodes(leaves: number, first: number, last: number, visit: (node: number) => void): void {
    let low = leaves + first;
    let high = leaves + last + 1;
    while (low < high) {
        if (low & 1) visit(low++);
        if (high & 1) visit(--high);
        low >>= 1;
        high >>= 1;
    }
}
