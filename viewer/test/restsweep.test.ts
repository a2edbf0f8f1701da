// The exact events of a window, computed in slices: only for the window and the device requested
// last.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { RestSweep } from "../src/ui/restsweep";
import { madeDevice } from "./made";

// Node's own mock timers have a different interface in each release.
const { setTimeout, clearTimeout } = globalThis;
const waiting = new Map<number, () => void>();
let given = 0;

beforeEach(() => {
    waiting.clear();
    globalThis.setTimeout = ((call: () => void) =>
        waiting.set(++given, call) && given) as unknown as typeof setTimeout;
    globalThis.clearTimeout = ((id: number) =>
        void waiting.delete(id)) as unknown as typeof clearTimeout;
});
afterEach(() => Object.assign(globalThis, { setTimeout, clearTimeout }));

function finish(): void {
    for (const [id, call] of waiting) {
        // timers added meanwhile are run as well
        waiting.delete(id);
        call();
    }
}

test("few events are swept at once, many only when the window rests", () => {
    const device = madeDevice({ blocks: 3000 });
    let told = 0;
    const sweeps = new RestSweep(() => ++told);
    assert.equal(sweeps.of(device, 0, 1000, 5000)!.to, 1000);
    assert.equal(sweeps.of(device, 0, device.lastTick, 100), null);
    assert.equal(told, 0);
    finish();
    assert.equal(told, 1);
    assert.equal(sweeps.sweep!.to, device.lastTick);
    assert.equal(sweeps.of(device, 0, device.lastTick, 100), sweeps.sweep, "and is kept");
});

test("a sweep begun for another device is not drawn, even for an equal window", () => {
    const one = madeDevice({ blocks: 3000 });
    const other = madeDevice({ blocks: 2000, seed: 8 });
    const seen: number[] = [];
    const sweeps: RestSweep = new RestSweep(() => seen.push(sweeps.sweep!.blocks.length));
    assert.equal(sweeps.of(one, 0, one.lastTick, 10), null);
    assert.equal(sweeps.of(other, 0, one.lastTick, 10), null);
    finish();
    assert.deepEqual(seen, [2000]);
    // Dropped while another device loads: it is neither drawn nor kept.
    assert.equal(sweeps.of(one, 0, one.lastTick, 10), null);
    sweeps.drop();
    finish();
    assert.deepEqual(seen, [2000]);
    assert.equal(sweeps.sweep, null);
    // The blocks of the same device have arrived: the sweep made without them is dropped.
    sweeps.of(one, 0, one.lastTick, 5000);
    assert.equal(sweeps.of({ ...one }, 0, one.lastTick, 10), null);
});
