// Binary search in ascending columns.

/** First position in ascending `values` whose value is above `limit`. */
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
