// Work on many rows in steps, so that a page can do other things in between.

/** Of the simplest work on a row; about a millisecond. */
export const rowsInStep = 32_768;

/** All steps at once. */
export function finish<T>(steps: Generator<void, T>): T {
    for (;;) {
        const { done, value } = steps.next();
        if (done) return value;
    }
}

/** Calls back with 0 .. count - 1. */
export function* each(count: number, visit: (at: number) => void): Generator<void, void> {
    for (let from = 0; from < count; from += rowsInStep) {
        const to = Math.min(count, from + rowsInStep);
        for (let at = from; at < to; ++at) visit(at);
        yield;
    }
}
