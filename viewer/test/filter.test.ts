// Terms of a search that look at blocks, compared with the simplest correct implementation.
import assert from "node:assert/strict";
import { test } from "node:test";
import { blocksWith, parseQuery, type Term, unknownTerm } from "../src/data/filter";
import { heapAt } from "../src/data/heap";
import { countAll, countLive } from "../src/data/hits";
import { kindsOf } from "../src/data/kinds";
import { stackSums } from "../src/data/measures";
import { sizeClasses } from "../src/data/sizes";
import { never } from "../src/data/model";
import { finish } from "../src/data/steps";
import { Stacks } from "../src/data/stacks";
import { blocks, count, device, lastTick, rows, tables } from "./randomblocks";

const term = (key: string, sign: string, value: string): Term => ({ not: false, key, sign, value });
const stacks = new Stacks(tables);

function wanted(query: string): Uint8Array {
    const found = finish(blocksWith(device, stacks, parseQuery(query).terms));
    assert.ok(typeof found !== "string", query);
    return found;
}

function refused(query: string): string {
    const found = finish(blocksWith(device, stacks, parseQuery(query).terms));
    assert.ok(typeof found === "string", query);
    return found;
}

test("a search is divided into text and terms", () => {
    const cases: [string, string, Term[]][] = [
        ["", "", []],
        ["train.py", "train.py", []],
        ["train.py:30 main", "train.py:30 main", []],
        ["size>1MiB", "", [term("size", ">", "1MiB")]],
        ["Size<=2k keep", "keep", [term("size", "<=", "2k")]],
        ["size:512", "", [term("size", "=", "512")]],
        ["keep age>=1.5s size<4", "keep", [term("age", ">=", "1.5s"), term("size", "<", "4")]],
        ['phase:"first epoch" x', "x", [term("phase", "=", "first epoch")]],
        ['phase:"first epo', "", [term("phase", "=", "first epo")]],
        ["pool:", "", [term("pool", "=", "")]],
        ["/size>1 (a|b)/", "/size>1 (a|b)/", []],
        ["/a b/i freed:never", "/a b/i", [term("freed", "=", "never")]],
        ["freed:never /a b/", "/a b/", [term("freed", "=", "never")]],
        ["a/b/c.py", "a/b/c.py", []],
        ["-forward keep", "keep", [{ ...term("stack", "=", "forward"), not: true }]],
        ["-size>1MiB", "", [{ ...term("size", ">", "1MiB"), not: true }]],
        ['-"train.py:30 main"', "", [{ ...term("stack", "=", "train.py:30 main"), not: true }]],
        ["a-b - b-", "a-b - b-", []],
        ['"grow.py"', "grow.py", []],
        ['"a b" f("x")', 'a b f("x")', []],
        ["size=8 MiB keep", "keep", [term("size", "=", "8MiB")]],
        ["size=8,388,608", "", [term("size", "=", "8,388,608")]],
        ["-age>5 MS", "", [{ ...term("age", ">", "5MS"), not: true }]],
        ["size>4 main", "main", [term("size", ">", "4")]],
        ["std::size c10::pool:x", "std::size c10::pool:x", []],
    ];
    for (const [query, text, terms] of cases) {
        assert.deepEqual(parseQuery(query), { text, terms }, query);
    }
});

test("each term holds for the right blocks", () => {
    const tick = device.head.tick_ns;
    const lived = (row: number): number =>
        (Math.min(blocks.end[row], lastTick) - blocks.start[row]) * tick;
    const middle = [...rows].sort((a, b) => blocks.size[a] - blocks.size[b])[count >> 1];
    const size = blocks.size[middle];
    const age = lived(middle);
    const cases: [string, (row: number) => boolean][] = [
        [`size>${size}`, (row) => blocks.size[row] > size],
        [`size>=${size}`, (row) => blocks.size[row] >= size],
        [`size<${size}`, (row) => blocks.size[row] < size],
        [`size<=${size}B`, (row) => blocks.size[row] <= size],
        [`size=${size}`, (row) => blocks.size[row] === size],
        ["size>1KiB size<2k", (row) => blocks.size[row] > 1024 && blocks.size[row] < 2048],
        ["size>1kB", (row) => blocks.size[row] > 1000],
        ["size>1 kB", (row) => blocks.size[row] > 1000],
        ['size>"1 KiB"', (row) => blocks.size[row] > 1024],
        ["size>1,024", (row) => blocks.size[row] > 1024],
        ["size<1T", () => true],
        ["size>1TiB", () => false],
        ["size<0.000000001TB", (row) => blocks.size[row] < 1000],
        [`age>${age}ns`, (row) => lived(row) > age],
        ["age<1us", (row) => lived(row) < 1000],
        ["freed:never", (row) => blocks.freed[row] === never],
        ["freed:yes", (row) => blocks.freed[row] !== never],
        ["freed:never size>1", (row) => blocks.freed[row] === never && blocks.size[row] > 1],
        ["size>", () => true],
        [`-size>${size}`, (row) => blocks.size[row] <= size],
        ["-freed:never size>1KiB", (row) => blocks.freed[row] !== never && blocks.size[row] > 1024],
        [
            "-KEEP",
            (row) =>
                !stacks.frames(blocks.stack[row]).some((at) => stacks.label(at).includes("keep")),
        ],
    ];
    for (const [query, holds] of cases) {
        assert.deepEqual(
            [...wanted(query)],
            rows.map((row) => Number(holds(row))),
            query,
        );
    }
});

test("names of terms are those of the colours", () => {
    for (const by of ["stream", "pool", "category", "phase"] as const) {
        const kinds = kindsOf(device, stacks, by)!;
        let tried = 0;
        kinds.names.forEach((name, kind) => {
            if (name.includes("others:") || name.includes("in no phase")) return;
            const text = by === "stream" ? name.replace("stream ", "") : name;
            const same = kinds.names.filter((other) => other.includes(text));
            if (same.length > 1) return;
            ++tried;
            assert.deepEqual(
                [...wanted(`${by}:"${text.toUpperCase()}"`)],
                rows.map((row) => Number(kinds.of[row] === kind)),
                `${by}: ${name}`,
            );
        });
        assert.ok(tried > 0, by);
    }
});

test("label: finds blocks by the label at the end of a frame's name", () => {
    const strings = [...tables.strings];
    strings[tables.frames.label[4]] += ' "kv cache"';
    const named = new Stacks({ ...tables, strings });
    const found = (query: string): Uint8Array | string =>
        finish(blocksWith(device, named, parseQuery(query).terms));
    const inKeep = rows.map((row) =>
        Number(named.frames(blocks.stack[row]).some((node) => tables.stacks.frame[node] === 4)),
    );
    assert.ok(inKeep.includes(1) && inKeep.includes(0));
    assert.deepEqual([...found("label:CACHE")], inKeep);
    assert.deepEqual([...found('label:"kv c"')], inKeep);
    assert.equal(found("label:keep"), 'no label has "keep" in its name; there are kv cache');
    assert.match(refused("label:cache"), /^the trace has no label$/);
});

test("text that nothing contains is explained only if it looks like a term", () => {
    assert.match(unknownTerm("foo:bar")!, /"foo:" is no term; terms are size, .*label, phase$/);
    assert.match(unknownTerm("train.py lable:x")!, /"lable:"/);
    for (const text of ["std::vector", "std:", "file.py:12", "c10::x", "C:/x", "/a/b.py:3 main"]) {
        assert.equal(unknownTerm(text), null, text);
    }
});

test("a term that cannot be understood is explained", () => {
    assert.match(refused("size>big"), /^size: "big" is not like 1MiB$/);
    assert.match(refused("size>.5MiB"), /^size: ".5MiB" is not like 1MiB$/);
    assert.match(refused("size>1,00"), /is not like 1MiB/);
    assert.match(refused("age>5"), /^age: "5" is not like 10ms$/);
    assert.match(refused("age>5parsecs"), /is not like 10ms/);
    assert.match(refused("freed:maybe"), /neither never nor yes/);
    assert.match(refused("category:nonsense"), /no category has "nonsense".*there are other/);
    assert.match(refused("pool:nonsense"), /no pool has "nonsense".*small blocks/);
});

test("size classes are powers of two and add up", () => {
    const classes = sizeClasses(device, rows);
    for (const { from, to, blocks: number, bytes } of classes) {
        const inside = rows.filter((row) => blocks.size[row] >= from && blocks.size[row] < to);
        assert.equal(to, 2 * from);
        assert.equal(number, inside.length);
        assert.equal(
            bytes,
            inside.reduce((sum, row) => sum + blocks.size[row], 0),
        );
    }
    assert.equal(
        classes.reduce((sum, one) => sum + one.blocks, 0),
        count,
    );
    assert.deepEqual(
        classes.map(({ from }) => from),
        classes.map(({ from }) => from).sort((a, b) => a - b),
    );
});

test("numbers of blocks and sums of stacks count only the wanted blocks", () => {
    const some = wanted("size>1KiB");
    const stacks = Uint8Array.from({ length: 11 }, (_, node) => node % 2);
    const also = Uint8Array.from({ length: 11 }, (_, node) => Number(node === 4));
    for (const extra of [null, also]) {
        const hit = (row: number): boolean =>
            (stacks[blocks.stack[row]] === 1 && some[row] === 1) ||
            (extra !== null && extra[blocks.stack[row]] === 1);
        for (const tick of [3000, 3001, 9000]) {
            const heap = heapAt(device, tick);
            const counted = countLive(device, heap, { stacks, blocks: some, also: extra });
            assert.equal(counted.blocks, [...heap.live].filter(hit).length);
        }
    }
    const all = countAll(device, { stacks, blocks: some, also: null });
    const expected = rows.filter((row) => stacks[blocks.stack[row]] === 1 && some[row] === 1);
    assert.equal(all.blocks, expected.length);
    assert.equal(
        all.bytes,
        expected.reduce((bytes, row) => bytes + blocks.size[row], 0),
    );

    const heap = heapAt(device, 3000);
    const times = { t0: 500, t1: 6000, cursor: 3000, mark: 1000 };
    const bytesOf = (of: Iterable<number>): number =>
        [...of].reduce((bytes, row) => bytes + (some[row] === 1 ? blocks.size[row] : 0), 0);
    assert.equal(stackSums(device, heap, "live", times, some).total, bytesOf(heap.live));
    assert.equal(
        stackSums(device, heap, "churn", times, some).total,
        bytesOf(rows.filter((row) => blocks.start[row] > 500 && blocks.start[row] <= 6000)),
    );
    const grown = stackSums(device, heap, "growth", times, some);
    const lost = [...grown.shrunk.values()].reduce((sum, bytes) => sum + bytes, 0);
    assert.equal(grown.total - lost, bytesOf(heap.live) - bytesOf(heapAt(device, 1000).live));
    const holes = stackSums(device, heap, "holes", times, some);
    assert.ok(holes.total <= stackSums(device, heap, "holes", times).total);
});
