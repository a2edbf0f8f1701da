// Which blocks are live at a time, or at any time of an interval: checkpoints of the live set every
// so many blocks, and a scan from the nearest. Blocks are sorted by start; live = start <= t < end.

export class LiveIndex {
    private readonly stride: number;
    private readonly firsts: Uint32Array;  // of each checkpoint into ids
    private readonly ids: Uint32Array;

    constructor(private readonly start: Uint32Array, private readonly end: Uint32Array, checkpoints = 512) {
        const count = start.length;
        this.stride = Math.max(64, Math.ceil(count / checkpoints));
        const points = Math.ceil(count / this.stride);
        const firsts = new Uint32Array(points + 1);
        // A block is in the checkpoints after its own start row while it lives.
        const forPoints = (row: number, visit: (point: number) => void): void => {
            for (let point = Math.floor(row / this.stride) + 1; point < points; ++point) {
                if (end[row] <= start[point * this.stride]) break;
                visit(point);
            }
        };
        for (let row = 0; row < count; ++row) forPoints(row, (point) => ++firsts[point + 1]);
        for (let point = 0; point < points; ++point) firsts[point + 1] += firsts[point];
        const ids = new Uint32Array(firsts[points]);
        const fill = firsts.slice();
        for (let row = 0; row < count; ++row) forPoints(row, (point) => (ids[fill[point]++] = row));
        this.firsts = firsts;
        this.ids = ids;
    }

    /** Rows live at some time of [from, to], ascending. */
    between(from: number, to: number): Uint32Array {
        const { start, end, stride } = this;
        const count = start.length;
        const begin = this.firstAfter(from);
        // Rows before `begin` start at or before `from`: the live ones of them come from the last
        // checkpoint taken at or before `from` and the rows after it. The checkpoint behind `begin`
        // would miss what ended between the two.
        const base = Math.floor((begin - 1) / stride);
        let rows = new Uint32Array(1024);
        let found = 0;
        const keep = (row: number): void => {
            if (found === rows.length) {
                const larger = new Uint32Array(rows.length * 2);
                larger.set(rows);
                rows = larger;
            }
            rows[found++] = row;
        };
        if (base >= 0) {
            for (let i = this.firsts[base]; i < this.firsts[base + 1]; ++i) {
                if (end[this.ids[i]] > from) keep(this.ids[i]);
            }
            for (let row = base * stride; row < begin; ++row) if (end[row] > from) keep(row);
        }
        for (let row = begin; row < count && start[row] <= to; ++row) keep(row);
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
}
