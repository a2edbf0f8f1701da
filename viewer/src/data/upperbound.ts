// Binary search in ascending columns.

/** The first position in ascending `values` with a value above `limit`. */
export function upperBound(values: ArrayLike<number>, limit: number): number {
    let low = 0;
    let high = values.length;
    while (low < high) {
        const middle = (low + high) >>> 1;
        if (values[middle] <= limit) low = middle + 1;
        else high = middle;
    }
    return low;
}

/** The first position in `rows`, ascending by `values`, of a row with a value above `limit`. */
export function upperBoundOfRows(
    rows: ArrayLike<number>,
    values: ArrayLike<number>,
    limit: number,
): number {
    let low = 0;
    let high = rows.length;
    while (low < high) {
        const middle = (low + high) >>> 1;
        if (values[rows[middle]] <= limit) low = middle + 1;
        else high = middle;
    }
    return low;
}
