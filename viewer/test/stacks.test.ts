// The tree of stacks: bytes per stack, folding, names, search, and the trees made from it. Each is
// compared with the simplest correct implementation.
import assert from "node:assert/strict";
import { test } from "node:test";
import { foldStacks } from "../src/data/fold";
import type { StackTables } from "../src/data/header";
import { heapAt } from "../src/data/heap";
import { heldByStack, keptByPools } from "../src/data/held";
import { LiveIndex } from "../src/data/liveindex";
import { onlyStacks, stackSums } from "../src/data/measures";
import { type DeviceModel, never } from "../src/data/model";
import { expressionOf, findExpression, findText } from "../src/data/search";
import { ShownStacks } from "../src/data/shownstacks";
import { Stacks } from "../src/data/stacks";
import {
    blocks,
    bruteSums,
    device,
    liveAt,
    randomNumbers,
    rows,
    sorted,
    tables,
    times,
} from "./randomblocks";

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

const perStack = new Map(Array.from({ length: 11 }, (_, node) => [node, 2 ** node]));

/** The labels from a node of a drawn tree to its root. */
const way = (stacks: Stacks, node: number): string[] =>
    stacks.frames(node).map((at) => stacks.label(at));

test("folding joins library frames in a row and keeps the user's own", () => {
    const { tables: folded, to } = foldStacks(tables, { fold: true, hidden: "" });
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

test("a hidden function is left out with all its lines: its callees follow its callers", () => {
    const frameOf = (label: string): string =>
        String(tables.frames.label.findIndex((at) => tables.strings[at] === label));
    const whole = new Stacks(tables);
    const paths = (fold: boolean, hidden: string): string[][] => {
        const { tables: folded, to } = foldStacks(tables, { fold, hidden });
        const stacks = new Stacks(folded);
        for (let node = 1; node < stacks.count; ++node) {
            assert.ok(folded.stacks.parent[node] < node);
        }
        return Array.from({ length: whole.count }, (_, node) => way(stacks, to[node]));
    };
    const full = paths(false, "");
    const gone = frameOf("samples.py:33 keep");
    assert.deepEqual(
        paths(false, gone),
        full.map((path) => path.filter((label) => label !== "samples.py:33 keep")),
    );
    // Without `keep`, the library frames above and below it are one run.
    assert.deepEqual(paths(true, gone)[5], ["torch …", "train.py:1 main"]);
    const both = `${gone},${frameOf("train.py:1 main")}`;
    assert.deepEqual(paths(true, both)[5], ["torch …"]);
    assert.deepEqual(paths(true, both)[1], []);
    assert.deepEqual(paths(false, "99999"), full, "no such frame");
    // The stack has the name of a frame that is drawn.
    const { tables: folded, to } = foldStacks(tables, { fold: false, hidden: gone });
    const stacks = new Stacks(folded);
    assert.equal(stacks.label(stacks.telling(to[5])), full[3][0]);
    const shown = new ShownStacks(tables, whole);
    for (const shape of ["icicle", "bottom-up"] as const) {
        shown.use(new Uint8Array(11).fill(1));
        const sums = shown.sums(perStack, { fold: false, hidden: gone, shape });
        const all = [...sums.values()].reduce((sum, bytes) => sum + bytes, 0);
        assert.equal(all, 2 ** 11 - 1, "no bytes are lost");
    }
});

test("the frames of libraries between the user's own are one part", () => {
    const stacks = new Stacks(tables);
    const parts = (node: number, least: number) => stacks.parts(stacks.frames(node), least);
    assert.deepEqual(parts(5, 2), [
        [0, 1],
        [1, 2],
        [2, 4],
        [4, 5],
    ]);
    assert.equal(parts(5, 3).length, 5);
    assert.deepEqual(parts(9, 2), [
        [0, 2],
        [2, 3],
    ]);
    const frames = { ...tables.frames, library: tables.frames.library.map(() => 21) };
    const foreign = new Stacks({ ...tables, frames });
    assert.equal(foreign.parts(foreign.frames(5), 2).length, 5, "nothing but libraries");
});

test("very many callers are counted, not named", () => {
    const stacks = new Stacks(tables);
    assert.equal(
        stacks.callers(5, 2),
        "samples.py:33 keep ‹ nn/module.py:3 forward ‹ 2 more frames",
    );
    assert.equal(stacks.callers(5, 3).endsWith(" ‹ 1 more frame"), true);
    assert.equal(stacks.callers(2, 3), "train.py:1 main");
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
        const hits = findText(shown.names({ fold, hidden: "" }), text);
        const marks = shown.matches(hits, stacks.search(hits), {
            fold,
            hidden: "",
            shape: "flame",
        });
        assert.equal(marks.length, shown.tree({ fold, hidden: "", shape: "flame" }).count);
        return [...marks].flatMap((hit, node) => (hit ? [node] : []));
    };
    assert.deepEqual(found("keep", false), [4, 5]);
    const folded = { fold: true, hidden: "", shape: "icicle" } as const;
    const keep = shown.node(4, folded);
    assert.equal(shown.tree(folded).label(keep), "samples.py:33 keep");
    assert.deepEqual(found("keep", true), [keep, shown.node(5, folded)]);
    const torch = shown.node(2, folded);
    assert.equal(shown.tree(folded).label(torch), "torch …");
    assert.ok(found("torch …", true).includes(torch));
    assert.deepEqual(found("torch …", false), []);
});

test("the bottom-up tree begins with the lines that reports name", () => {
    const stacks = new Stacks(tables);
    const shown = new ShownStacks(tables, stacks);
    shown.use(new Uint8Array(11).fill(1));
    for (const fold of [false, true]) {
        const choice = { fold, hidden: "", shape: "bottom-up" } as const;
        const tree = shown.tree(choice);
        const sums = shown.sums(perStack, choice);
        const all = [...sums.values()].reduce((sum, bytes) => sum + bytes, 0);
        assert.equal(all, 2 ** 11 - 1, "no bytes are lost");
        const { boxes, total } = tree.layout(sums, 0);
        assert.equal(total, all);
        // Below the root: one box per line, with the bytes of all stacks that it names.
        const lines = new Map<string, number>();
        for (let node = 1; node < 11; ++node) {
            const at = shown.node(node, { fold, hidden: "", shape: "icicle" });
            const base = shown.tree({ fold, hidden: "", shape: "icicle" });
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
    const choice = { fold: false, hidden: "", shape: "bottom-up" } as const;
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
    const { trees, callers, callees } = shown.around(run, { fold: false, hidden: "" }, perStack);
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
    const none = shown.around(0, { fold: false, hidden: "" }, perStack);
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
