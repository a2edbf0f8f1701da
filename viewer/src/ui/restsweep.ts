// The exact events of a window: computed at once if they are few, otherwise in steps once the
// window rests. Unfinished work for another window or device is dropped.
import type { DeviceModel } from "../data/model";
import { sweepInSteps, sweepWindow, type WindowSweep } from "../data/sweep";
import { Slices } from "./slices";

const binCount = 2048;
const exactEvents = 1_500_000; // with more, the overview stays
const restMs = 160;

export class RestSweep {
    sweep: WindowSweep | null = null; // for the window requested last, as soon as it is computed
    private model: DeviceModel | null = null;
    private readonly slices = new Slices();

    /** `done` is called when a deferred sweep is finished. */
    constructor(private readonly done: () => void) {}

    drop(): void {
        this.slices.stop();
        this.sweep = null;
    }

    /**
     * The window's events if they are already computed or at most `atOnce` blocks start in it. null
     * = later, or never.
     */
    of(model: DeviceModel, from: number, to: number, atOnce: number): WindowSweep | null {
        this.slices.stop();
        if (this.model !== model || this.sweep?.from !== from || this.sweep.to !== to) {
            this.sweep = null;
        }
        this.model = model;
        this.sweep ??= sweepWindow(model, from, to, binCount, atOnce);
        if (!this.sweep && model.live.startsIn(from, to) <= exactEvents) {
            this.slices.run(sweepInSteps(model, from, to, binCount), restMs, (sweep) => {
                this.sweep = sweep;
                this.done();
            });
        }
        return this.sweep;
    }
}
