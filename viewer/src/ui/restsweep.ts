// The exact events of a window: at once where they are few, otherwise a little at a time once the
// window rests. What was begun for another window or another device is dropped.
import type { DeviceModel } from "../data/model";
import { sweepInSteps, sweepWindow, type WindowSweep } from "../data/sweep";

const binCount = 2048;
const exactEvents = 1_500_000;  // of more the overview stays
const restMs = 160;
const sliceMs = 8;

export class RestSweep {
    sweep: WindowSweep | null = null;  // of the window last asked for, as soon as there is one
    private model: DeviceModel | null = null;
    private timer: ReturnType<typeof setTimeout> | undefined;

    /** `done` is called when a sweep that had to wait is there. */
    constructor(private readonly done: () => void) {}

    drop(): void {
        clearTimeout(this.timer);
        this.sweep = null;
    }

    /** The window's events if they are there or at most `atOnce` blocks start in it; null = later, or never. */
    of(model: DeviceModel, from: number, to: number, atOnce: number): WindowSweep | null {
        clearTimeout(this.timer);
        if (this.model !== model || this.sweep?.from !== from || this.sweep.to !== to) this.sweep = null;
        this.model = model;
        this.sweep ??= sweepWindow(model, from, to, binCount, atOnce);
        if (!this.sweep && model.live.startsIn(from, to) <= exactEvents) {
            this.timer = setTimeout(() => this.run(sweepInSteps(model, from, to, binCount)), restMs);
        }
        return this.sweep;
    }

    private run(steps: Generator<void, WindowSweep>): void {
        const until = performance.now() + sliceMs;
        while (performance.now() < until) {
            const { done, value } = steps.next();
            if (!done) continue;
            this.sweep = value;
            this.done();
            return;
        }
        this.timer = setTimeout(() => this.run(steps), 0);
    }
}
