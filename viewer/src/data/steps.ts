// Work on many rows in steps, so that the page stays responsive in between.

/** About a millisecond of the simplest work per row. */
export const rowsInStep = 32_768;

/** Runs all steps at once. */
export function finish<T>(steps: Generator<void, T>): T {
    for (;;) {
        const { done, value } = steps.next();
        if (done) return value;
    }
}

/** Calls `visit` with 0 to count - 1, in steps. */
export function* each(count: number, visit: (at: number) => void): Generator<void, void> {
    for (let from = 0; from < count; from += rowsInStep) {
        const to = Math.min(count, from + rowsInStep);
        for (let at = from; at < to; ++at) visit(at);
        yield;
    }
}
