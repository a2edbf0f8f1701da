// Blocks at random times and places with stacks, and sums over them in the simplest way.
import type { StackTables } from "../src/data/header";
import { LiveIndex } from "../src/data/liveindex";
import { type DeviceModel, never } from "../src/data/model";

export function randomNumbers(seed: number): (below: number) => number {
    let state = seed;
    return (below) => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return Math.floor((state / 2 ** 32) * below);
    };
}

// main (user) > run (site-packages/torch) > forward (site-packages/torch) > keep (user) > malloc
export const tables: StackTables = {
    strings: [
        "",
        "main",
        "/home/me/train.py",
        "run",
        "/usr/lib/python3/dist-packages/torch/nn/module.py",
        "forward",
        "keep",
        "/home/me/samples.py",
        "c10::malloc(unsigned long)",
        "libc10_cuda.so",
        "MyExtension::cache()",
        "libmine.so",
        "pd",
        "/x/site-packages/pandas/core.py",
        "train.py:1 main",
        "nn/module.py:2 run",
        "nn/module.py:3 forward",
        "samples.py:33 keep",
        "c10::malloc in libc10_cuda.so",
        "MyExtension::cache in libmine.so",
        "pandas/core.py:9 pd",
        "torch",
        "pandas",
    ],
    frames: {
        function: [0, 1, 3, 5, 6, 8, 10, 12],
        file: [0, 2, 4, 4, 7, 9, 11, 13],
        line: [0, 1, 2, 3, 33, 0, 0, 9],
        python: [0, 1, 1, 1, 1, 0, 0, 1],
        label: [0, 14, 15, 16, 17, 18, 19, 20],
        library: [0, 0, 21, 21, 0, 21, 0, 22],
    },
    // 0 root, 1 main, 2 run, 3 fwd, 4 keep, 5 malloc; then main>malloc (6), main>ext (7),
    // main>ext>malloc (8), main>run>malloc (9), main>pandas (10)
    stacks: {
        parent: [0, 0, 1, 2, 3, 4, 1, 1, 7, 2, 1],
        frame: [0, 1, 2, 3, 4, 5, 5, 6, 5, 5, 7],
        telling: [0, 0, 1, 2, 0, 1, 1, 1, 2, 2, 1],
    },
};

export const count = 400;
export const lastTick = 10_000;

// One unit of 2^20 bytes, with blocks at random times and places. Some are never freed.
export function model(): DeviceModel {
    const random = randomNumbers(5);
    const start = Uint32Array.from({ length: count }, () => random(lastTick)).sort();
    const freed = start.map((from) => (random(10) === 0 ? never : from + 1 + random(3000)));
    const end = freed.map((at) =>
        at === never ? never : at + (random(4) === 0 ? random(500) : 0),
    );
    const size = Float64Array.from(start, () => 512 * (1 + random(40)));
    const units = {
        count: 1,
        start: [0],
        end: [never],
        offset: Float64Array.of(0),
        size: [1 << 20],
        pool: [0],
        stream: [0],
        small: [1],
    };
    return {
        head: {
            phase_lanes: ["steps", "NVTX"],
            phase_names: ["step 1", "load", "train"],
            streams: ["default", "0x7"],
            categories: ["parameters", "kv cache"],
            stack_categories: { stack: [3, 5, 7], category: [1, 0, 1] },
            tick_ns: 1,
        } as DeviceModel["head"],
        lastTick,
        complete: true,
        units,
        pools: [
            { name: "", changes: [] },
            { name: "private pool 1", changes: [] },
        ],
        blocks: {
            count,
            start,
            freed,
            end,
            size,
            unit: new Uint32Array(count),
            offset: Float64Array.from(start, () => 512 * random(2000)),
            excess: new Int32Array(count),
            stack: Uint32Array.from(start, () => random(11)),
            stream: Uint8Array.from(start, () => random(2)),
        },
        spanBlock: new Uint32Array(0),
        spanUnit: new Uint32Array(0),
        live: new LiveIndex(start, end),
        phases: {
            count: 3,
            start: Uint32Array.of(0, 100, 5000),
            end: Uint32Array.of(9000, 4000, never),
            name: Uint32Array.of(0, 1, 2),
            lane: Uint8Array.of(0, 1, 1),
            ranges: Uint32Array.of(1, 1, 1),
        },
    } as unknown as DeviceModel;
}

export const device = model();
export const { blocks } = device;
export const rows = [...Array(count).keys()];
export const liveAt = (row: number, tick: number): boolean =>
    blocks.start[row] <= tick && tick < blocks.end[row];
export const times = { t0: 2000, t1: 6000, cursor: 7000, mark: 3000 };

export function bruteSums(which: (row: number) => boolean): Map<number, number> {
    const sums = new Map<number, number>();
    for (const row of rows) {
        if (which(row)) {
            sums.set(blocks.stack[row], (sums.get(blocks.stack[row]) ?? 0) + blocks.size[row]);
        }
    }
    return sums;
}

export const sorted = (sums: Map<number, number>): [number, number][] =>
    [...sums].sort((a, b) => a[0] - b[0]);
