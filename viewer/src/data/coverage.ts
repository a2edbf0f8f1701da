// How much of each pixel is covered, at constant cost per rectangle. Only differences at the
// corners are stored. They are added up once, at the end. Coverage is by area, so small rectangles
// stay visible and thin ones are not exaggerated. The C++ writer's CoverageGrid works the same way.

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

    /** Shares from 0 to 1 (slightly outside because of rounding), row by row. */
    shares(): Float32Array {
        const { columns, rows } = this;
        const result = new Float32Array(columns * rows);
        const above = new Float64Array(columns);
        for (let row = 0; row < rows; ++row) {
            this.sumRow(row, above);
            result.set(above, row * columns);
        }
        return result;
    }
}

/** Like CoverageGrid, along a line. */
export class LineCoverage {
    private readonly differences: Float64Array;

    constructor(readonly length: number) {
        this.differences = new Float64Array(length + 2);
    }

    clear(): void {
        this.differences.fill(0);
    }

    add(from: number, to: number): void {
        const { differences, length } = this;
        if (from < 0) from = 0;
        if (to > length) to = length;
        if (!(from < to)) return;
        const first = from | 0; // faster than Math.floor()
        const last = to | 0;
        if (first === last) {
            differences[first] += to - from;
            differences[first + 1] -= to - from;
            return;
        }
        differences[first] += 1 - (from - first);
        differences[first + 1] += from - first;
        differences[last] -= 1 - (to - last);
        differences[last + 1] -= to - last;
    }

    /** One share per pixel, slightly outside 0 to 1 because of rounding. */
    shares(): Float64Array {
        const shares = new Float64Array(this.length);
        let sum = 0;
        for (let i = 0; i < this.length; ++i) shares[i] = sum += this.differences[i];
        return shares;
    }
}
