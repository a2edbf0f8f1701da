// The other computations of the panels, each compared with the simplest correct implementation.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { StackTables } from "../src/data/header";
import { formatBytes } from "../src/data/format";
import { heapAt } from "../src/data/heap";
import { kindOfCategory, kindsOf, mostKinds } from "../src/data/kinds";
import { lifeOf, lifeWindow } from "../src/data/life";
import { never } from "../src/data/model";
import { copyText, csvText, rowsText, sortedRows, type TableData } from "../src/data/rows";
import { countAll, countLive, visitHits, wantedStacks } from "../src/data/hits";
import { finish } from "../src/data/steps";
import { Stacks } from "../src/data/stacks";
import { windowRows } from "../src/data/windowrows";
import { blocks, count, device, lastTick, randomNumbers, rows, tables } from "./randomblocks";

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
            categoryOf.get(blocks.stack[row]) ?? "other",
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

test("a category has one colour, whatever else the device has", () => {
    const stacks = new Stacks(tables);
    for (const categories of [
        ["parameters", "kv cache"],
        Array.from({ length: 9 }, (_, at) => `category ${at}`),
    ]) {
        const head = { ...device.head, categories };
        head.stack_categories = { stack: [3, 5], category: [1, categories.length - 1] };
        const kinds = kindsOf({ ...device, head }, stacks, "category")!;
        for (const row of rows) {
            const of = { 3: categories[1], 5: categories.at(-1)! }[blocks.stack[row]] ?? "other";
            assert.equal(kinds.of[row], kindOfCategory(head, of), of);
        }
        const some = categories.length < mostKinds;
        assert.match(kinds.names.at(-1)!, some ? /^other$/ : /^2 others: /);
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
        assert.deepEqual(countAll(device, wantedStacks(wanted)), sum(rows.filter(hit)));
        const heap = heapAt(device, t0);
        assert.deepEqual(
            countLive(device, heap, wantedStacks(wanted)),
            sum([...heap.live].filter(hit)),
        );
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
            finish(visitHits(device, area, wantedStacks(wanted), (row) => seen.push(row))),
            sum(inside),
        );
        assert.deepEqual(
            seen.sort((a, b) => a - b),
            inside,
        );
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
