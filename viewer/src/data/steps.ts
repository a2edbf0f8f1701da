// Work in steps, so that a page can do other things in between.

/** All at once. */
export function finish<T>(steps: Generator<void, T>): T {
    for (;;) {
        const { done, value } = steps.next();
        if (done) return value;
    }
}
