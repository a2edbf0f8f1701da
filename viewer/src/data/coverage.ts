// How much of each pixel is covered, at constant cost per rectangle. Only differences at the
// corners are stored. They are added up once, at the end. Coverage is by area, so small rectangles
// stay visible and thin ones are not exaggerated. The C++ writer's CoverageGrid works the same way.
import { rowsInStep } from "./steps";

export class CoverageGrid {
    private readonly stride: number;
    private readonly differences: Float64Array;

    constructor(
        readonly columns: number,
        readonly rows: number,
    ) {
        this.stride = columns + 2;
        this.differences = new Float64Array(this.stride * (rows + 2));
    }

    clear(): void {
        this.differences.fill(0);
    }

    add(left: number, right: number, bottom: number, top: number): void {
        left = Math.max(0, Math.min(left, this.columns));
        right = Math.max(0, Math.min(right, this.columns));
        bottom = Math.max(0, Math.min(bottom, this.rows));
        top = Math.max(0, Math.min(top, this.rows));
        if (!(left < right) || !(bottom < top)) return;
        this.corner(left, bottom, 1);
        this.corner(right, bottom, -1);
        this.corner(left, top, -1);
        this.corner(right, top, 1);
    }

    private corner(x: number, y: number, sign: number): void {
        const column = Math.floor(x);
        const row = Math.floor(y);
        const acrossSecond = x - column;
        const upSecond = y - row;
        const at = row * this.stride + column;
        const { differences, stride } = this;
        const first = sign * (1 - upSecond);
        const second = sign * upSecond;
        differences[at] += first * (1 - acrossSecond);
        differences[at + 1] += first * acrossSecond;
        differences[at + stride] += second * (1 - acrossSecond);
        differences[at + stride + 1] += second * acrossSecond;
    }

    /**
     * Changes `shares` from the shares of the previous row (zeros before row 0) to those of `row`.
     */
    sumRow(row: number, shares: Float64Array): void {
        const { columns, differences } = this;
        const from = row * this.stride;
        let sum = 0;
        for (let column = 0; column < columns; ++column) {
            sum += differences[from + column];
            shares[column] += sum;
        }
    }
}

/**
 * Calls `visit` with each row's shares from 0 to 1 (slightly outside because of rounding), one
 * array per grid, in steps. All grids have the same size. The arrays are reused.
 */
export function* eachRow(
    grids: readonly CoverageGrid[],
    visit: (row: number, shares: readonly Float64Array[]) => void,
): Generator<void, void> {
    const { columns, rows } = grids[0];
    const shares = grids.map(() => new Float64Array(columns));
    const together = Math.ceil(rowsInStep / (columns * grids.length));
    for (let row = 0; row < rows; ++row) {
        grids.forEach((grid, at) => grid.sumRow(row, shares[at]));
        visit(row, shares);
        if (row % together === together - 1) yield;
    }
}

/** Like CoverageGrid, along a line. A range that begins where the last one ended costs little. */
export class LineCoverage {
    private differences: Float64Array; // both may be longer than needed
    private sums: Float64Array;
    private from = 0; // of the last range, which is not in `differences` yet
    private to = 0;
    private sign: 1 | -1 = 1;
    private first: number; // the pixels whose sums are not up to date
    private behind = 0;

    constructor(public length: number) {
        this.differences = new Float64Array(length + 2);
        this.sums = new Float64Array(length);
        this.first = length;
    }

    clear(length = this.length): void {
        if (length > this.sums.length) {
            const most = Math.ceil(1.25 * length);
            this.differences = new Float64Array(most + 2);
            this.sums = new Float64Array(most);
        } else {
            this.differences.fill(0);
        }
        this.length = length;
        this.from = this.to = 0;
        this.first = 0;
        this.behind = this.length;
    }

    /** With `sign` -1, a range that was added is taken away. */
    add(from: number, to: number, sign: 1 | -1 = 1): void {
        if (!(from < to)) return;
        if (from !== this.to || sign !== this.sign) {
            this.enter(this.from, this.to);
            this.from = from;
            this.sign = sign;
        }
        this.to = to;
    }

    private enter(from: number, to: number): void {
        const { differences, length, sign } = this;
        if (from < 0) from = 0;
        if (to > length) to = length;
        if (!(from < to)) return;
        const first = from | 0; // faster than Math.floor()
        const last = to | 0;
        if (first < this.first) this.first = first;
        if (last >= this.behind) this.behind = last + 1;
        if (first === last) {
            differences[first] += sign * (to - from);
            differences[first + 1] -= sign * (to - from);
            return;
        }
        differences[first] += sign * (1 - (from - first));
        differences[first + 1] += sign * (from - first);
        differences[last] -= sign * (1 - (to - last));
        differences[last + 1] -= sign * (to - last);
    }

    /**
     * Brings the shares up to date. Returns the pixels that may have changed: from `first` up to,
     * but without, `behind`.
     */
    update(): [first: number, behind: number] {
        this.enter(this.from, this.to);
        this.from = this.to;
        const { differences, sums, length, first } = this;
        const behind = Math.min(length, this.behind);
        let sum = first > 0 ? sums[first - 1] : 0;
        for (let i = first; i < behind; ++i) sums[i] = sum += differences[i];
        this.first = length;
        this.behind = 0;
        return [first, behind];
    }

    /**
     * One share per pixel, slightly outside 0 to 1 because of rounding; the array may be longer. It
     * is reused by the next call.
     */
    shares(): Float64Array {
        this.update();
        return this.sums;
    }
}
