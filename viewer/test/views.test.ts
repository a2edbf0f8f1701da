// The computations of the panels, each compared with the simplest correct implementation.
import assert from "node:assert/strict";
import { test } from "node:test";
import { foldStacks } from "../src/data/fold";
import type { StackTables } from "../src/data/header";
import { formatBytes } from "../src/data/format";
import { heapAt } from "../src/data/heap";
import { heldByStack, keptByPools } from "../src/data/held";
import { kindsOf, mostKinds } from "../src/data/kinds";
import { lifeOf, lifeWindow } from "../src/data/life";
import { LiveIndex } from "../src/data/liveindex";
import { onlyStacks, stackSums } from "../src/data/measures";
import { type DeviceModel, never } from "../src/data/model";
import { copyText, csvText, rowsText, sortedRows, type TableData } from "../src/data/rows";
import { countAll, countOf, visitHits } from "../src/data/hits";
import { finish } from "../src/data/steps";
import { expressionOf, findExpression, findText } from "../src/data/search";
import { ShownStacks } from "../src/data/shownstacks";
import { Stacks } from "../src/data/stacks";
import { windowRows } from "../src/data/windowrows";

function randomNumbers(seed: number): (below: number) => number {
    let state = seed;
    return (below) => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return Math.floor((state / 2 ** 32) * below);
    };
}

// main (user) > run (site-packages/torch) > forward (site-packages/torch) > keep (user) > malloc
const tables: StackTables = {
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

const count = 400;
const lastTick = 10_000;

// One unit of 2^20 bytes, with blocks at random times and places. Some are never freed.
function model(): DeviceModel {
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
        },
    } as unknown as DeviceModel;
}

const device = model();
const { blocks } = device;
const rows = [...Array(count).keys()];
const liveAt = (row: number, tick: number): boolean =>
    blocks.start[row] <= tick && tick < blocks.end[row];
const times = { t0: 2000, t1: 6000, cursor: 7000, mark: 3000 };

function bruteSums(which: (row: number) => boolean): Map<number, number> {
    const sums = new Map<number, number>();
    for (const row of rows) {
        if (which(row)) {
            sums.set(blocks.stack[row], (sums.get(blocks.stack[row]) ?? 0) + blocks.size[row]);
        }
    }
    return sums;
}

const sorted = (sums: Map<number, number>): [number, number][] =>
    [...sums].sort((a, b) => a[0] - b[0]);

test("live, churn and growth by stack equal the sums over every block", () => {
    const heap = heapAt(device, times.cursor);
    assert.deepEqual(
        sorted(stackSums(device, heap, "live", times).sums),
        sorted(bruteSums((row) => liveAt(row, times.cursor))),
    );
    const churn = stackSums(device, heap, "churn", times);
    assert.deepEqual(
        sorted(churn.sums),
        sorted(bruteSums((row) => blocks.start[row] > times.t0 && blocks.start[row] <= times.t1)),
    );
    assert.equal(
        [...churn.blocks().values()].reduce((a, b) => a + b),
        rows.filter((row) => blocks.start[row] > times.t0 && blocks.start[row] <= times.t1).length,
    );
    const before = bruteSums((row) => liveAt(row, times.mark));
    const after = bruteSums((row) => liveAt(row, times.cursor));
    const growth = stackSums(device, heap, "growth", times);
    for (let stack = 0; stack < 11; ++stack) {
        const more = (after.get(stack) ?? 0) - (before.get(stack) ?? 0);
        assert.equal((growth.sums.get(stack) ?? 0) - (growth.shrunk.get(stack) ?? 0), more);
    }
    // The earlier of the two counts. Without a mark it is the window's left edge.
    assert.deepEqual(
        stackSums(device, heap, "growth", { ...times, mark: 7000, cursor: 3000 }).sums,
        growth.sums,
    );
    assert.deepEqual(
        stackSums(device, heap, "growth", { ...times, mark: -1, t0: 3000 }).sums,
        growth.sums,
    );
});

// Native segments and pages of expandable ones, adjacent on the axis and filled with blocks that do
// not overlap. Some blocks span several units, some units are empty, and the pool of one empty unit
// keeps it.
function randomHeap(seed: number): DeviceModel {
    const random = randomNumbers(seed);
    const unitSize = Array.from({ length: 24 }, () => (1 + random(40)) * 4096);
    const unitOffset = new Float64Array(unitSize.length);
    for (let unit = 1; unit < unitSize.length; ++unit) {
        unitOffset[unit] = unitOffset[unit - 1] + unitSize[unit - 1];
    }
    const found: { offset: number; size: number; unit: number; spans: number[] }[] = [];
    const length = unitOffset[23] + unitSize[23];
    for (let at = random(30) * 512; at < length;) {
        const size = 512 * (1 + random(random(4) === 0 ? 500 : 30));
        const touched = unitSize.flatMap((bytes, unit) =>
            unitOffset[unit] < at + size && unitOffset[unit] + bytes > at ? [unit] : [],
        );
        if (at + size <= length) {
            found.push({ offset: at, size, unit: touched[0], spans: touched.slice(1) });
        }
        at += size + (random(3) === 0 ? 512 * random(random(3) === 0 ? 700 : 40) : 0);
    }
    const spans = found.flatMap(({ spans: further }, block) =>
        further.map((unit): [number, number] => [block, unit]),
    );
    const start = new Uint32Array(found.length);
    const end = new Uint32Array(found.length).fill(never);
    const always = new Array<number>(unitSize.length).fill(0);
    return {
        ...device,
        blocks: {
            ...blocks,
            count: found.length,
            start,
            end,
            freed: end,
            unit: Uint32Array.from(found, ({ unit }) => unit),
            size: Float64Array.from(found, ({ size }) => size),
            offset: Float64Array.from(found, ({ offset }) => offset),
            excess: new Int32Array(found.length),
            stack: Uint32Array.from(found, () => 1 + random(10)),
        },
        units: {
            count: 24,
            start: always,
            end: always.map(() => never),
            offset: unitOffset,
            size: unitSize,
            pool: unitSize.map(() => (random(4) === 0 ? 1 : 0)),
            stream: always,
            small: always,
        },
        spanBlock: Uint32Array.from(spans, ([block]) => block),
        spanUnit: Uint32Array.from(spans, ([, unit]) => unit),
        live: new LiveIndex(start, end),
    };
}

test("blocked memory per stack equals its definition over all blocks and units", () => {
    let kept = 0;
    let overSeveral = 0;
    for (let seed = 1; seed <= 60; ++seed) {
        const heapModel = randomHeap(seed);
        const { blocks: all, units } = heapModel;
        const heap = heapAt(heapModel, 5);
        const exact = new Map<number, number>(); // with fractions of bytes
        const parts = new Map<number, number>(); // number of units in which the stack has a share
        let alone = 0;
        let held = 0;
        for (let unit = 0; unit < units.count; ++unit) {
            const within = [...Array(all.count).keys()].map((row) =>
                Math.max(
                    0,
                    Math.min(
                        all.offset[row] + all.size[row],
                        units.offset[unit] + units.size[unit],
                    ) - Math.max(all.offset[row], units.offset[unit]),
                ),
            );
            const used = within.reduce((sum, bytes) => sum + bytes, 0);
            const free = units.size[unit] - used;
            if (used === 0 && units.pool[unit] === 1) alone += free;
            if (used > 0) held += free;
            within.forEach((bytes, row) => {
                if (bytes === 0) return;
                exact.set(all.stack[row], (exact.get(all.stack[row]) ?? 0) + (free * bytes) / used);
                parts.set(
                    all.stack[row],
                    (parts.get(all.stack[row]) ?? 0) + within.filter((other) => other > 0).length,
                );
            });
        }
        const sums = heldByStack(heapModel, heap);
        assert.equal(keptByPools(heap), alone);
        assert.equal(sums.get(0) ?? 0, alone);
        assert.equal(
            [...sums.values()].reduce((sum, bytes) => sum + bytes, 0),
            heap.held,
        );
        assert.equal(heap.held, held + alone);
        for (const [stack, bytes] of exact) {
            const is = sums.get(stack) ?? 0;
            assert.ok(
                Number.isInteger(is) && Math.abs(is - bytes) <= parts.get(stack)!,
                `seed ${seed}, stack ${stack}: ${is}, not ${bytes}`,
            );
        }
        kept += alone;
        overSeveral += heapModel.spanBlock.length;
        assert.equal(stackSums(heapModel, heap, "holes", times).total, heap.held);
    }
    assert.ok(kept > 0 && overSeveral > 100);
});

test("folding joins library frames in a row and keeps the user's own", () => {
    const { tables: folded, to } = foldStacks(tables);
    const stacks = new Stacks(folded);
    const path = (node: number): string[] => stacks.frames(to[node]).map((at) => stacks.label(at));
    assert.deepEqual(path(5), ["torch …", "samples.py:33 keep", "torch …", "train.py:1 main"]);
    assert.deepEqual(path(6), ["torch …", "train.py:1 main"]);
    assert.deepEqual(path(8), ["torch …", "MyExtension::cache in libmine.so", "train.py:1 main"]);
    assert.equal(to[2], to[3], "two frames of one library are one box");
    assert.equal(to[9], to[2], "and so is what it calls natively");
    assert.deepEqual(path(10), ["pandas …", "train.py:1 main"]);
    for (let node = 1; node < stacks.count; ++node) assert.ok(folded.stacks.parent[node] < node);
});

test("a stack is named after the innermost frame of the user's own", () => {
    const stacks = new Stacks(tables);
    assert.equal(stacks.label(stacks.telling(5)), "samples.py:33 keep");
    assert.equal(stacks.label(stacks.telling(9)), "train.py:1 main");
    assert.equal(stacks.label(stacks.telling(3)), "train.py:1 main");
});

function nodesOf(hits: Uint8Array): number[] {
    return [...new Stacks(tables).search(hits)].flatMap((hit, node) => (hit ? [node] : []));
}

test("search: text and expressions find a frame by its function, its file or its label", () => {
    const find = (source: string): number[] => {
        const answer = findExpression(tables.strings, source);
        return nodesOf("hits" in answer ? answer.hits : new Uint8Array(0));
    };
    assert.deepEqual(nodesOf(findText(tables.strings, "SAMPLES.py")), [4, 5]);
    assert.deepEqual(find("samples\\.py:3[0-9]"), [4, 5]);
    assert.deepEqual(find("^MY.*cache"), [7, 8]);
    assert.deepEqual(find("(s)amples\\.py:(?=3)(.)\\2"), [4, 5]);
    assert.deepEqual(find("nobody"), []);
});

test("search: a text between slashes is an expression", () => {
    assert.equal(expressionOf(" /a.b/ "), "a.b");
    assert.equal(expressionOf("/a.b/i"), "a.b");
    assert.equal(expressionOf("/home/me"), null);
    assert.equal(expressionOf("//"), null);
    assert.equal(expressionOf("a/b/"), null);
});

test("search: an invalid expression is reported in a few words", () => {
    for (const source of ["([a", "a**", "a\\", "(a", "a{3,2}"]) {
        const answer = findExpression(["a"], source);
        assert.match(
            "problem" in answer ? answer.problem : "",
            /^not a regular expression: \S[^/]+$/,
            source,
        );
    }
});

test("the folded tree has the full tree's matches and those of its own names", () => {
    const stacks = new Stacks(tables);
    const shown = new ShownStacks(tables, stacks);
    const found = (text: string, fold: boolean): number[] => {
        const hits = findText(shown.names(fold), text);
        const marks = shown.matches(hits, stacks.search(hits), { fold, shape: "flame" });
        assert.equal(marks.length, shown.tree({ fold, shape: "flame" }).count);
        return [...marks].flatMap((hit, node) => (hit ? [node] : []));
    };
    assert.deepEqual(found("keep", false), [4, 5]);
    const folded = { fold: true, shape: "icicle" } as const;
    const keep = shown.node(4, folded);
    assert.equal(shown.tree(folded).label(keep), "samples.py:33 keep");
    assert.deepEqual(found("keep", true), [keep, shown.node(5, folded)]);
    const torch = shown.node(2, folded);
    assert.equal(shown.tree(folded).label(torch), "torch …");
    assert.ok(found("torch …", true).includes(torch));
    assert.deepEqual(found("torch …", false), []);
});

const perStack = new Map(Array.from({ length: 11 }, (_, node) => [node, 2 ** node]));

/** The labels from a node of a drawn tree to its root. */
const way = (stacks: Stacks, node: number): string[] =>
    stacks.frames(node).map((at) => stacks.label(at));

test("the bottom-up tree begins with the lines that reports name", () => {
    const stacks = new Stacks(tables);
    const shown = new ShownStacks(tables, stacks);
    shown.use(new Uint8Array(11).fill(1));
    for (const fold of [false, true]) {
        const choice = { fold, shape: "bottom-up" } as const;
        const tree = shown.tree(choice);
        const sums = shown.sums(perStack, choice);
        const all = [...sums.values()].reduce((sum, bytes) => sum + bytes, 0);
        assert.equal(all, 2 ** 11 - 1, "no bytes are lost");
        const { boxes, total } = tree.layout(sums, 0);
        assert.equal(total, all);
        // Below the root: one box per line, with the bytes of all stacks that it names.
        const lines = new Map<string, number>();
        for (let node = 1; node < 11; ++node) {
            const at = shown.node(node, { fold, shape: "icicle" });
            const base = shown.tree({ fold, shape: "icicle" });
            const line = base.label(base.telling(at));
            lines.set(line, (lines.get(line) ?? 0) + 2 ** node);
        }
        const drawn = boxes
            .filter(({ depth }) => depth === 1)
            .map(({ chain, from, to }) => [tree.label(chain.at(-1)!), to - from]);
        assert.deepEqual(new Map(drawn as [string, number][]), lines);
    }
});

test("a mark in the bottom-up tree marks the stacks through its callers", () => {
    const stacks = new Stacks(tables);
    const shown = new ShownStacks(tables, stacks);
    shown.use(new Uint8Array(11).fill(1));
    const choice = { fold: false, shape: "bottom-up" } as const;
    const tree = shown.tree(choice);
    const keep = shown.node(5, choice); // keep > malloc, which keep names
    assert.deepEqual(way(tree, keep), ["samples.py:33 keep"]);
    assert.deepEqual(
        [...shown.andBelow(keep, choice)!].flatMap((hit, node) => (hit ? [node] : [])),
        [4, 5],
    );
    assert.equal(shown.andBelow(tree.count, choice), null);
    shown.use(new Uint8Array(11));
    assert.equal(shown.tree(choice).count, 1, "without blocks there is no tree");
});

test("the callers and the callees of a frame have the bytes of its stacks", () => {
    const stacks = new Stacks(tables);
    const shown = new ShownStacks(tables, stacks);
    shown.use(new Uint8Array(11).fill(1));
    const run = stacks.name(2);
    const { trees, callers, callees } = shown.around(run, false, perStack);
    const bytes = [2, 3, 4, 5, 9].reduce((sum, node) => sum + 2 ** node, 0);
    for (const [tree, sums] of [
        [trees.callers.stacks, callers],
        [trees.callees.stacks, callees],
    ] as const) {
        assert.equal(tree.layout(sums, 0, 1).total, bytes);
        assert.equal(tree.label(1), "nn/module.py:2 run");
    }
    assert.deepEqual(way(trees.callers.stacks, trees.callers.to[5]), [
        "train.py:1 main",
        "nn/module.py:2 run",
    ]);
    assert.deepEqual(way(trees.callees.stacks, trees.callees.to[5]), [
        "c10::malloc in libc10_cuda.so",
        "samples.py:33 keep",
        "nn/module.py:3 forward",
        "nn/module.py:2 run",
    ]);
    assert.equal(trees.callers.to[10], -1, "a stack without the frame");
    const none = shown.around(0, false, perStack);
    assert.deepEqual([none.callers.size, none.callees.size], [0, 0]);
});

test("a zoomed layout has the bytes below its box", () => {
    const stacks = new Stacks(tables);
    const { boxes, total } = stacks.layout(perStack, 0, 2);
    assert.equal(
        total,
        [2, 3, 4, 5, 9].reduce((sum, node) => sum + 2 ** node, 0),
    );
    assert.deepEqual([boxes[0].node, boxes[0].from, boxes[0].to], [2, 0, total]);
    const marks = stacks.search(findText(tables.strings, "keep"));
    const some = onlyStacks(
        { sums: perStack, total: 0, shrunk: new Map([[1, 5]]), blocks: () => new Map() },
        marks,
    );
    assert.deepEqual([...some.sums.keys()], [4, 5]);
    assert.deepEqual([some.total, some.shrunk.size], [2 ** 4 + 2 ** 5, 0]);
});

test("every block has a kind, and large kinds have a name", () => {
    const stacks = new Stacks(tables);
    assert.equal(kindsOf(device, stacks, "state"), null);
    for (const by of ["age", "phase", "stream", "pool", "category", "stack"] as const) {
        const kinds = kindsOf(device, stacks, by)!;
        assert.equal(kinds.of.length, count);
        assert.ok(kinds.names.length <= mostKinds + 1);
        for (const row of rows) assert.ok(kinds.of[row] < kinds.names.length, by);
    }
    const ages = kindsOf(device, stacks, "age")!;
    for (const row of rows) {
        assert.equal(ages.names[ages.of[row]] === "never freed", blocks.freed[row] === never);
    }
    const last = count - 1; // freed, but still waiting for another stream at the end of the trace
    const waiting = {
        ...device,
        blocks: { ...blocks, freed: blocks.freed.slice(), end: blocks.end.slice() },
    };
    waiting.blocks.freed[last] = blocks.start[last];
    waiting.blocks.end[last] = never;
    const share = (device.lastTick - blocks.start[last]) / device.lastTick;
    assert.ok(share < 0.01, "the last block begins late");
    assert.match(
        ages.names[kindsOf(waiting, stacks, "age")!.of[last]],
        /^(below 0.1 %|0.1 to 1 %)/,
    );
    const phase = kindsOf(device, stacks, "phase")!;
    for (const row of rows) {
        const at = blocks.start[row];
        assert.equal(
            phase.names[phase.of[row]],
            at >= 5000 ? "train" : at >= 100 && at < 4000 ? "load" : "in a step, in no phase",
        );
    }
    const category = kindsOf(device, stacks, "category")!;
    const categoryOf = new Map([
        [3, "kv cache"],
        [5, "parameters"],
        [7, "kv cache"],
    ]);
    for (const row of rows) {
        assert.equal(
            category.names[category.of[row]],
            categoryOf.get(blocks.stack[row]) ?? "unknown kind",
        );
    }
    const stream = kindsOf(device, stacks, "stream")!;
    for (const row of rows) {
        assert.equal(
            stream.names[stream.of[row]],
            `stream ${["default", "0x7"][blocks.stream[row]]}`,
        );
    }
});

test("kinds are ranked by bytes times time, hidden ones are counted", () => {
    // Each stack is a separate line: eight of ten have a name.
    const many: StackTables = {
        strings: [
            "",
            "/x/a.py",
            ...Array.from({ length: 10 }, (_, i) => `f${i}`),
            ...Array.from({ length: 10 }, (_, i) => `a.py:${i + 1} f${i}`),
        ],
        frames: {
            function: [0, ...Array.from({ length: 10 }, (_, i) => i + 2)],
            file: [0, ...Array<number>(10).fill(1)],
            line: [0, ...Array.from({ length: 10 }, (_, i) => i + 1)],
            python: Array<number>(11).fill(1),
            label: [0, ...Array.from({ length: 10 }, (_, i) => i + 12)],
            library: Array<number>(11).fill(0),
        },
        stacks: {
            parent: Array<number>(11).fill(0),
            frame: Array.from({ length: 11 }, (_, i) => i),
            telling: Array<number>(11).fill(0),
        },
    };
    const weights = new Map<number, number>();
    for (const row of rows) {
        weights.set(
            blocks.stack[row],
            (weights.get(blocks.stack[row]) ?? 0) +
                blocks.size[row] * (Math.min(blocks.end[row], lastTick) - blocks.start[row] + 1),
        );
    }
    const ranked = [...weights]
        .sort((a, b) => b[1] - a[1])
        .map(([stack]) => (stack === 0 ? "no stack recorded" : `a.py:${stack} f${stack - 1}`));
    const kinds = kindsOf(device, new Stacks(many), "stack")!;
    const other = new Set(ranked.slice(mostKinds));
    const left = rows.filter((row) =>
        other.has(
            blocks.stack[row] === 0
                ? "no stack recorded"
                : `a.py:${blocks.stack[row]} f${blocks.stack[row] - 1}`,
        ),
    );
    const leftBytes = formatBytes(left.reduce((bytes, row) => bytes + blocks.size[row], 0));
    assert.deepEqual(kinds.names, [
        ...ranked.slice(0, mostKinds),
        `${ranked.length - mostKinds} others: ${left.length} blocks, ${leftBytes} in all`,
    ]);
    for (const row of rows) {
        assert.equal(
            kinds.of[row] === mostKinds,
            other.has(
                blocks.stack[row] === 0
                    ? "no stack recorded"
                    : `a.py:${blocks.stack[row]} f${blocks.stack[row] - 1}`,
            ),
        );
    }
});

test("a search finds every matching block, in the whole run and in a window", () => {
    const random = randomNumbers(77);
    for (let trial = 0; trial < 40; ++trial) {
        const wanted = Uint8Array.from({ length: 11 }, () => random(2));
        const t0 = random(lastTick);
        const area = {
            t0,
            t1: t0 + random(3000),
            a0: random(500_000),
            a1: 500_000 + random(500_000),
        };
        const hit = (row: number): boolean => wanted[blocks.stack[row]] === 1;
        const sum = (of: number[]) => ({
            blocks: of.length,
            bytes: of.reduce((bytes, row) => bytes + blocks.size[row], 0),
        });
        assert.deepEqual(countAll(device, wanted), sum(rows.filter(hit)));
        const live = heapAt(device, t0).live;
        assert.deepEqual(countOf(device, live, wanted), sum([...live].filter(hit)));
        const inside = rows.filter(
            (row) =>
                hit(row) &&
                blocks.start[row] <= area.t1 &&
                blocks.end[row] > area.t0 &&
                blocks.offset[row] < area.a1 &&
                blocks.offset[row] + blocks.size[row] > area.a0,
        );
        const seen: number[] = [];
        assert.deepEqual(
            finish(visitHits(device, area, wanted, (row) => seen.push(row))),
            sum(inside),
        );
        assert.deepEqual(
            seen.sort((a, b) => a - b),
            inside,
        );
    }
});

test("stacks too thin for a box are counted with their bytes", () => {
    const random = randomNumbers(31);
    const wide: StackTables = {
        strings: ["", "f", "/x/a.py"],
        frames: {
            function: [0, 1],
            file: [0, 2],
            line: [0, 1],
            python: [0, 1],
            label: [0, 1],
            library: [0, 0],
        },
        stacks: {
            parent: [0, ...Array.from({ length: 300 }, (_, node) => random(node + 1))],
            frame: Array<number>(301).fill(1),
            telling: Array<number>(301).fill(0),
        },
    };
    const { parent } = wide.stacks;
    for (const share of [0, 0.01, 0.05]) {
        const sums = new Map(
            Array.from({ length: 120 }, (): [number, number] => [
                1 + random(300),
                1 + random(random(5) === 0 ? 4000 : 40),
            ]),
        );
        const { boxes, total, thin } = new Stacks(wide).layout(sums, share);
        const values = new Float64Array(301);
        for (const [node, bytes] of sums) {
            for (let at = node; ; at = parent[at]) {
                values[at] += bytes;
                if (at === 0) break;
            }
        }
        const drawn = new Set(boxes.flatMap((box) => box.chain));
        const left = [...values.keys()].filter(
            (node) => values[node] > 0 && !drawn.has(node) && drawn.has(parent[node]),
        );
        assert.deepEqual(thin, {
            branches: left.length,
            bytes: left.reduce((bytes, node) => bytes + values[node], 0),
        });
        assert.equal(total, values[0]);
        assert.equal(share === 0, thin.branches === 0);
    }
});

test("a block's life lists the blocks at its bytes before and after it", () => {
    for (const block of rows) {
        const life = lifeOf(device, block);
        const shares = (row: number): boolean =>
            row !== block &&
            blocks.offset[row] < blocks.offset[block] + blocks.size[block] &&
            blocks.offset[row] + blocks.size[row] > blocks.offset[block];
        const after =
            life.reusable === never
                ? []
                : rows
                      .filter((row) => shares(row) && blocks.start[row] >= life.reusable)
                      .slice(0, 5);
        assert.deepEqual(life.after, after);
        const alike = rows.filter(shares);
        assert.equal(
            life.moreAfter,
            life.reusable !== never &&
                alike.filter((row) => blocks.start[row] >= life.reusable).length > 5,
        );
        assert.equal(
            life.moreBefore,
            alike.filter((row) => row < block && blocks.end[row] <= blocks.start[block]).length > 5,
        );
        for (const row of life.before) {
            assert.ok(shares(row) && blocks.end[row] <= blocks.start[block]);
        }
        assert.equal(
            life.before.length,
            Math.min(
                5,
                rows.filter(
                    (row) => row < block && shares(row) && blocks.end[row] <= blocks.start[block],
                ).length,
            ),
        );
        const window = lifeWindow(device, block);
        assert.ok(
            window.t0 < blocks.start[block] &&
                window.t1 > Math.min(blocks.end[block], lastTick) &&
                window.a1 > window.a0,
        );
    }
});

test("a window lists all its blocks or the heaviest, and counts the rest", () => {
    const area = { t0: 2000, t1: 6000, a0: 100_000, a1: 900_000 };
    const inside = rows.filter(
        (row) =>
            blocks.start[row] <= area.t1 &&
            blocks.end[row] > area.t0 &&
            blocks.offset[row] < area.a1 &&
            blocks.offset[row] + blocks.size[row] > area.a0,
    );
    const sum = (of: number[]) => ({
        blocks: of.length,
        bytes: of.reduce((bytes, row) => bytes + blocks.size[row], 0),
    });
    const weight = (row: number): number =>
        blocks.size[row] * (Math.min(blocks.end[row], lastTick) - blocks.start[row] + 1);
    assert.ok(inside.length > 100);
    for (const most of [0, 1, 7, 60, inside.length - 1, inside.length, 1e6]) {
        const found = windowRows(device, area, most);
        const shown = [...found.rows];
        const left = inside.filter((row) => !shown.includes(row));
        assert.equal(shown.length, Math.min(most, inside.length));
        assert.ok(shown.every((row) => inside.includes(row)));
        assert.deepEqual(found.all, sum(inside));
        assert.deepEqual(found.left, sum(left));
        const heaviest = Math.max(0, ...left.map(weight));
        for (const row of shown) {
            assert.ok(weight(row) * 1.05 + 1 >= heaviest, `${weight(row)} and ${heaviest}`);
        }
    }
});

test("hidden rows are counted and added up", () => {
    const data: TableData = {
        title: "x",
        columns: [{ name: "at" }, { name: "size", show: (value) => `${value} B`, adds: true }],
        rows: Array.from({ length: 1200 }, (_, i) => [i, i % 3 === 0 ? null : 2]),
    };
    assert.equal(
        rowsText(data, data.rows, 500),
        `1,200 rows, the first 500 shown; sum of the others: ${data.rows.slice(500).filter((row) => row[1] !== null).length * 2} B`,
    );
    assert.equal(rowsText(data, data.rows.slice(0, 500), 500), "500 rows");
    assert.equal(
        rowsText({ ...data, columns: [{ name: "at" }, { name: "size" }] }, data.rows, 1),
        "1,200 rows, the first 1 shown",
    );
    for (const evil of ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "\uff1d1"]) {
        assert.match(
            csvText(data, [[evil, null]])
                .split("\r\n")
                .slice(1)
                .join("\r\n"),
            /^"?'/,
            JSON.stringify(evil),
        );
        assert.doesNotMatch(
            copyText(data, [[evil, null]]).split("\n")[1],
            /^[=+@-]/,
            JSON.stringify(evil),
        );
    }
});

test("tables can be sorted, and text stays text in CSV and on the clipboard", () => {
    const data: TableData = {
        title: "x",
        columns: [{ name: "bytes" }, { name: "name" }],
        rows: [
            [10, "b10"],
            [null, "=1+1"],
            [9, 'a"b,c'],
            [200, "b9\n<img>"],
        ],
    };
    assert.deepEqual(
        sortedRows(data.rows, 0, true).map((row) => row[0]),
        [null, 200, 10, 9].slice(1).concat([null] as never[]),
    );
    assert.deepEqual(
        sortedRows(data.rows, 0, false).map((row) => row[0]),
        [9, 10, 200, null],
    );
    assert.deepEqual(
        sortedRows(data.rows, 1, false)
            .slice(-2)
            .map((row) => row[1]),
        ["b9\n<img>", "b10"],
    );
    assert.equal(
        csvText(data, data.rows),
        `"bytes","name"\r\n10,"b10"\r\n,"'=1+1"\r\n9,"a""b,c"\r\n200,"b9\n<img>"\r\n`,
    );
    assert.equal(copyText(data, data.rows).split("\n").length, 5);
    assert.ok(copyText(data, data.rows).includes("'=1+1"));
});
