// Runs long work in slices, so that the page stays responsive. New work replaces unfinished work.

const sliceMs = 8;

export class Slices {
    private timer: ReturnType<typeof setTimeout> | undefined;

    /**
     * Starts after `restMs`. Calls `done` with the result unless the work was replaced or stopped.
     */
    run<T>(steps: Generator<void, T>, restMs: number, done: (result: T) => void): void {
        this.stop();
        this.timer = setTimeout(() => this.slice(steps, done), restMs);
    }

    stop(): void {
        clearTimeout(this.timer);
    }

    private slice<T>(steps: Generator<void, T>, finished: (result: T) => void): void {
        const until = performance.now() + sliceMs;
        for (;;) {
            const { done, value } = steps.next();
            if (done) {
                finished(value);
                return;
            }
            if (performance.now() > until) break;
        }
        this.timer = setTimeout(() => this.slice(steps, finished), 0);
    }
}
