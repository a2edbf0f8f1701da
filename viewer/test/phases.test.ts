// The phase that is open at a time: every part of the page must get the same answer.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Kinds, kindsOf } from "../src/data/kinds";
import { never } from "../src/data/model";
import { phaseAt, phaseInLane, phasesInSteps, type Phases } from "../src/data/phases";
import { Stacks } from "../src/data/stacks";
import { madeDevice, randomNumbers } from "./made";

function made(count: number, lanes: number, span: number, seed: number): Phases {
    const random = randomNumbers(seed);
    const start = Uint32Array.from({ length: count }, () => random(span)).sort();
    const end = start.map((from) =>
        random(9) === 0 ? never : from + random(random(5) === 0 ? span : 30),
    );
    return {
        count,
        start,
        end,
        name: start.map((_, i) => i % 7),
        lane: Uint8Array.from(start, () => random(lanes)),
        ranges: new Uint32Array(start.length).fill(1),
    };
}

function all(phases: Phases, ticks: Uint32Array): Int32Array {
    const steps = phasesInSteps(phases, ticks);
    for (;;) {
        const { done, value } = steps.next();
        if (done) return value;
    }
}

test("the phase at a time is the innermost open one, as by brute force", () => {
    for (const [count, lanes, span] of [
        [0, 1, 10],
        [1, 1, 10],
        [60, 4, 1000],
        [300, 3, 200],
        [200, 7, 100_000],
    ]) {
        const phases = made(count, lanes, span, count + 9);
        const ticks = Uint32Array.from({ length: 400 }, (_, i) =>
            Math.floor((i * (span + 50)) / 400),
        );
        const inner = all(phases, ticks);
        ticks.forEach((tick, at) => {
            const open = [...phases.start.keys()].filter(
                (i) => phases.start[i] <= tick && tick < phases.end[i],
            );
            const best = open.reduce(
                (found, i) => (found < 0 || phases.lane[i] >= phases.lane[found] ? i : found),
                -1,
            );
            assert.equal(phaseAt(phases, tick), best);
            assert.equal(inner[at], best, "all at once are what each is");
            for (let lane = 0; lane < lanes; ++lane) {
                assert.equal(
                    phaseInLane(phases, lane, tick),
                    open.findLast((i) => phases.lane[i] === lane) ?? -1,
                );
            }
        });
        assert.equal(phaseInLane(phases, 200, 5), -1);
    }
});

test("a hundred thousand phases are scanned once, not for every query", () => {
    const phases = made(100_000, 1, 4_000_000, 3);
    phases.end.fill(1); // all phases have ended: a backward search would go to the first
    let reads = 0;
    phases.end = new Proxy(phases.end, {
        get(target, key): unknown {
            ++reads;
            return Reflect.get(target, key, target);
        },
    });
    phaseAt(phases, 3_999_999);
    const once = reads;
    assert.ok(once < 1_000_000, `${once} reads`);
    for (let tick = 0; tick < 4_000_000; tick += 4000) {
        phaseAt(phases, tick);
        phaseInLane(phases, 0, tick);
    }
    assert.equal(reads, once);
});

test("a block's colour shows the phase named in its details", () => {
    const device = madeDevice({ blocks: 600, lastTick: 20_000 });
    const stacks = new Stacks({
        strings: [""],
        frames: { function: [0], file: [0], line: [0], python: [0], label: [0], library: [0] },
        stacks: { parent: [0], frame: [0], telling: [0] },
    });
    device.head.phase_names = ["step 1", "step 2", "load", "train"];
    const phases: Phases = {
        count: 4,
        start: Uint32Array.of(500, 900, 9000, 12_000),
        end: Uint32Array.of(9000, 4000, 18_000, never),
        name: Uint32Array.of(0, 2, 1, 3),
        lane: Uint8Array.of(0, 1, 0, 1),
        ranges: Uint32Array.of(1, 1, 1, 1),
    };
    device.phases = phases;
    const nameOf = (kinds: Kinds, row: number): string => kinds.names[kinds.of[row]];
    for (const lanes of [["steps", "NVTX"], ["steps"]]) {
        device.head.phase_lanes = lanes;
        const kinds = kindsOf(device, stacks, "phase")!;
        const seen = new Set<string>();
        device.blocks.start.forEach((tick, row) => {
            const phase = phaseAt(phases, tick);
            const isStep = lanes.length > 1 && phase >= 0 && phases.lane[phase] === 0;
            seen.add(nameOf(kinds, row));
            assert.equal(
                nameOf(kinds, row),
                phase < 0
                    ? "no phase"
                    : isStep
                      ? "in a step, in no phase"
                      : device.head.phase_names[phases.name[phase]],
            );
        });
        assert.ok(seen.size >= 4, [...seen].join());
    }
});
