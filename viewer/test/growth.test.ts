// Growth relative to a mark, in every frame in which the cursor moves.
import assert from "node:assert/strict";
import { test } from "node:test";
import { heapAt } from "../src/data/heap";
import { stackSums } from "../src/data/measures";
import { counted, madeDevice } from "./made";

test("growth compares the cursor's live blocks with the mark's, which are computed once", () => {
    const device = madeDevice({ blocks: 20_000, slots: 4000, lastTick: 100_000 });
    const { blocks } = device;
    const plain = blocks.stack;
    const heaps = [30_000, 40_000, 41_000, 60_000].map((tick) => heapAt(device, tick));
    const reads = { count: 0 };
    blocks.stack = counted(plain as Uint32Array, reads);
    heaps.forEach((heap, at) => {
        reads.count = 0;
        const times = { t0: 0, t1: device.lastTick, cursor: heap.tick, mark: 40_000 };
        const { sums, shrunk, total } = stackSums(device, heap, "growth", times);
        assert.ok(heap.live.length > 500);
        if (at > 0) {
            assert.ok(
                reads.count < 2.5 * heap.live.length,
                `${reads.count} looks at ${heap.live.length} blocks`,
            );
        }
        const more = new Map<number, number>();
        const sign = heap.tick < 40_000 ? -1 : 1;
        for (const [rows, by] of [
            [heap.live, sign],
            [device.live.at(40_000), -sign],
        ] as const) {
            for (const row of rows) {
                more.set(plain[row], (more.get(plain[row]) ?? 0) + by * blocks.size[row]);
            }
        }
        assert.deepEqual(
            new Map([...more].filter(([, bytes]) => bytes > 0).sort((a, b) => a[0] - b[0])),
            sums,
        );
        assert.deepEqual(
            new Map(
                [...more]
                    .filter(([, bytes]) => bytes < 0)
                    .map(([stack, bytes]): [number, number] => [stack, -bytes])
                    .sort((a, b) => a[0] - b[0]),
            ),
            shrunk,
        );
        assert.equal(
            total,
            [...sums.values()].reduce((a, b) => a + b, 0),
        );
    });
});
