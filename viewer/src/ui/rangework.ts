// Measures the selected ranges. The figures of a range come from the index of events. Its lines
// need a pass over its events: at once if they are few, otherwise in steps once the range rests.
import { EventIndex, type RangeFigures } from "../data/eventindex";
import type { DeviceModel } from "../data/model";
import { type LineChange, linesInSteps } from "../data/rangelines";
import type { Range } from "../data/ranges";
import type { Stacks } from "../data/stacks";
import { finish } from "../data/steps";
import { Slices } from "./slices";

const immediateBlocks = 50_000; // the index of at most this many is made within the frame
const immediateEvents = 100_000; // of a range, summed by line within the frame
const restMs = 100;

export interface MeasuredRange {
    range: Range;
    figures: RangeFigures | null; // null: the index is not ready yet
    lines: LineChange[] | null; // null: not summed yet
}

export class RangeWork {
    private index: EventIndex | null = null;
    private of: DeviceModel | null = null; // the model of the index, made or in the making
    private known: MeasuredRange[] = [];
    private readonly indexing = new Slices();
    private readonly summing = [new Slices(), new Slices()];

    /** `done` is called when deferred work is finished. */
    constructor(
        private readonly stacks: Stacks,
        private readonly done: () => void,
    ) {}

    measure(model: DeviceModel, ranges: Range[]): MeasuredRange[] {
        if (ranges.length > 0) this.prepare(model);
        const { index } = this;
        if (!index) {
            this.known = [];
            return ranges.map((range) => ({ range, figures: null, lines: null }));
        }
        this.known = ranges.map((range, at) => {
            const before = this.known.find(
                (one) => one.lines && one.range[0] === range[0] && one.range[1] === range[1],
            );
            this.summing[at].stop();
            return before ?? this.measured(model, index, range, at);
        });
        return this.known;
    }

    private prepare(model: DeviceModel): void {
        if (this.of === model) return;
        this.of = model;
        this.index = null;
        this.known = [];
        for (const slices of [this.indexing, ...this.summing]) slices.stop();
        if (!model.complete) return;
        const steps = EventIndex.inSteps(model);
        if (model.blocks.count <= immediateBlocks) {
            this.index = finish(steps);
        } else {
            this.indexing.run(steps, 0, (index) => {
                this.index = index;
                this.done();
            });
        }
    }

    private measured(
        model: DeviceModel,
        index: EventIndex,
        range: Range,
        at: number,
    ): MeasuredRange {
        const figures = index.figures(...range);
        const steps = linesInSteps(model, this.stacks, figures);
        const measured: MeasuredRange = { range, figures, lines: null };
        if (figures.allocations + figures.frees <= immediateEvents) {
            measured.lines = finish(steps);
        } else {
            this.summing[at].run(steps, restMs, (lines) => {
                measured.lines = lines;
                this.done();
            });
        }
        return measured;
    }
}
