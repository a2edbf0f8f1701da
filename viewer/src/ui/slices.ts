// Long work a little at a time, so that the page answers in between. New work replaces work that
// was not finished.

const sliceMs = 8;

export class Slices {
    private timer: ReturnType<typeof setTimeout> | undefined;

    /**
     * Begins after `restMs`; `done` has the result unless something else was begun or it was
     * stopped.
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
