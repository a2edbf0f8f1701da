// The functions without a browser, each compared with the simplest correct implementation.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { fromBase64, packedBytes, readPack, reusedArrays, unpack } from "../src/data/columns";
import { formatBytes, formatCount, formatMoment, formatTime, ticks } from "../src/data/format";
import { formatVersion, type Header, type PackDescription, parseHeader } from "../src/data/header";
import { findText } from "../src/data/search";
import { LiveIndex } from "../src/data/liveindex";
import { sourceOf } from "../src/data/sources";
import { Stacks } from "../src/data/stacks";
import { orderByTime } from "../src/data/sweep";
import { randomNumbers } from "./made";

test("columns are decoded from planes, widths and differences", () => {
    // Rows 1, 258, 70000 as two columns: differences of 3 bytes, plain values of 6.
    const raw = new Uint8Array([
        1, 1, 110, 0, 1, 16, 0, 0, 1, 1, 2, 112, 0, 1, 17, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0,
    ]);
    const columns = unpack(raw, {
        id: "x",
        rows: 3,
        bytes: 27,
        columns: [
            ["d", 3, 1],
            ["v", 6, 0],
        ],
    });
    assert.deepEqual([...columns.d], [1, 258, 70000]);
    assert.deepEqual([...columns.v], [1 + 7 * 2 ** 32, 258, 70000]);
    assert.throws(() =>
        unpack(raw.subarray(1), {
            id: "x",
            rows: 3,
            bytes: 26,
            columns: [
                ["d", 3, 1],
                ["v", 6, 0],
            ],
        }),
    );
});

test("columns: negative differences wrap around in every width", () => {
    const rows = [5, 3];
    for (const width of [1, 4, 6]) {
        const raw = new Uint8Array(2 * width);
        for (let plane = 0; plane < width; ++plane) {
            raw[plane * 2] = plane === 0 ? 5 : 0;
            raw[plane * 2 + 1] = plane === 0 ? 254 : 255;
        }
        assert.deepEqual(
            [...unpack(raw, { id: "x", rows: 2, bytes: raw.length, columns: [["c", width, 1]] }).c],
            rows,
        );
    }
});

test("arrays of an earlier pack are used again and leave nothing behind", () => {
    const arrays = reusedArrays();
    const read = (bytes: number[], rows: number, columns: PackDescription["columns"]) => {
        const raw = new Uint8Array(bytes);
        const description = { id: "x", rows, bytes: raw.length, columns };
        const [again, fresh] = [unpack(raw, description, arrays), unpack(raw, description)];
        assert.deepEqual(again, fresh);
        return again;
    };
    const first = read([9, 8, 7, 6, 5, 4, 3, 2, 1], 3, [
        ["a", 1, 0],
        ["b", 2, 1],
    ]);
    const second = read([1, 2, 0, 0], 2, [
        ["a", 0, 0],
        ["b", 2, 1],
    ]);
    assert.equal(second.b.buffer, first.b.buffer);
    const wider = read([1, 0, 0, 0, 0, 1], 1, [["a", 6, 0]]);
    assert.deepEqual([...wider.a], [2 ** 40 + 1]);
    read([1, 2, 3, 4, 5], 5, [["a", 1, 0]]);
    read([1, 2, 3, 4, 5, 6], 6, [["a", 1, 0]]);
});

test("a damaged or cut pack is reported in one sentence", async () => {
    const text = gzipSync(Buffer.from([1, 2, 3, 4])).toString("base64");
    const description = {
        id: "ft-0-x",
        rows: 4,
        bytes: 4,
        columns: [["c", 1, 0]] as [string, number, 0][],
    };
    const read = async (text: string | null, changed = description) =>
        readPack(packedBytes(text, changed), changed);
    assert.deepEqual([...(await read(text)).c], [1, 2, 3, 4]);
    const flipped = text.slice(0, 14) + (text[14] === "A" ? "B" : "A") + text.slice(15);
    for (const broken of [text.slice(0, 20), flipped, "", null, "%%%%"]) {
        await assert.rejects(read(broken), /the file is cut off/);
    }
    await assert.rejects(read(text, { ...description, rows: 5, bytes: 5 }), /cut off or damaged/);
    assert.deepEqual([...fromBase64("AQID")], [1, 2, 3]);
});

test("broken headers and headers of other formats are refused", () => {
    assert.throws(() => parseHeader('{"format":"fragtrace-page"'), /cut off/);
    assert.throws(() => parseHeader('{"format":"fragtrace-page","version":99}'), /99/);
});

test("the live index agrees with brute force", () => {
    const random = randomNumbers(11);
    for (const [count, span] of [
        [0, 10],
        [1, 10],
        [500, 40],
        [3000, 5000],
        [2000, 2000000],
    ]) {
        const start = Uint32Array.from({ length: count }, () => random(span)).sort();
        const end = start.map((from) =>
            random(10) === 0
                ? 0xffffffff
                : from +
                  1 +
                  random(
                      random(20) === 0 ? span : 3 + Math.floor((20 * span) / Math.max(1, count)),
                  ),
        );
        const index = new LiveIndex(start, end, 16);
        const offset = start.map((_, row) => (row * 7919) % 8191); // differ, in no order
        for (let trial = 0; trial < 300; ++trial) {
            // Half of the times lie just before a block's start, at which checkpoints lie.
            const from =
                trial % 2 === 0 || count === 0
                    ? random(span + 20)
                    : Math.max(0, start[(trial * 32) % count] - 1);
            const to = from + (trial % 3 === 0 ? 0 : random(200));
            const expected: number[] = [];
            for (let row = 0; row < count; ++row) {
                if (start[row] <= to && end[row] > from) expected.push(row);
            }
            assert.deepEqual(
                [...index.between(from, to)],
                expected,
                `${count} rows, ${from}..${to}`,
            );
            assert.deepEqual(
                [...index.inOrder(from, offset)],
                [...index.at(from)].sort((a, b) => offset[a] - offset[b]),
                `${count} rows by offset, ${from}`,
            );
        }
    }
});

test("a live block is found at each of its bytes and not after its end", () => {
    const index = new LiveIndex(Uint32Array.of(10, 20), Uint32Array.of(30, 0xffffffff));
    const find = (time: number, at: number): number =>
        index.find(time, at, [1000, 3000], [512, 512]);
    assert.deepEqual(
        [999, 1000, 1511, 1512].map((at) => find(10, at)),
        [-1, 0, 0, -1],
    );
    assert.deepEqual(
        [9, 10, 29, 30].map((time) => find(time, 1000)),
        [-1, 0, 0, -1],
    );
    assert.deepEqual(
        [19, 20, 0xfffffffe].map((time) => find(time, 3511)),
        [-1, 1, 1],
    );
});

test("sizes and times are written like the program's", () => {
    assert.equal(formatBytes(0), "0 B");
    assert.equal(formatBytes(1023), "1023 B");
    assert.equal(formatBytes(1024), "1 KiB");
    assert.equal(formatBytes(1.85 * 2 ** 30), "1.85 GiB");
    assert.equal(formatBytes(11.04 * 2 ** 20), "11 MiB");
    assert.equal(formatTime(350e6), "350 ms");
    assert.equal(formatTime(130e9), "2 min 10 s");
    assert.equal(formatMoment(1234567890, 1000), "1.234568 s");
    assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
    const few = ticks(0, 3, 10).map((at) => formatMoment(at, 1));
    assert.deepEqual(few, ["0 ns", "1 ns", "2 ns", "3 ns"]); // an axis of a few nanoseconds
    assert.deepEqual(ticks(0.2, 2.4, 10), [1, 2]);
    assert.deepEqual(
        ticks(0, 2 ** 32, 4, true),
        [0, 1, 2, 3, 4].map((i) => i * 2 ** 30),
    );
});

function header(): Header {
    return parseHeader(
        JSON.stringify({
            format: "fragtrace-page",
            version: formatVersion,
            title: "",
            processes: [],
            ranks: [],
            heat: { columns: 0, column_ns: 0, full_bytes: 1 },
            unreadable: [],
            comparison: null,
            devices: [],
            sources: [
                { file: 1, first_line: 5, lines: ["5", "6", "7", "8", "9", "10"], changed: false },
                { file: 3, first_line: 20, lines: ["20"], changed: true },
            ],
            strings: [
                "main",
                "a/train.py",
                "keep",
                "samples.py",
                "malloc",
                "lib.so",
                "other",
                "a/train.py:10 main",
                "samples.py:20 keep",
                "malloc in lib.so",
                "a/train.py:30 other",
                "",
                "lib.so",
            ],
            frames: {
                function: [0, 2, 4, 6],
                file: [1, 3, 5, 1],
                line: [10, 20, 0, 30],
                python: [1, 1, 0, 1],
                label: [7, 8, 9, 10],
                library: [11, 11, 12, 11],
            },
            // root > main > keep > malloc, main > other
            stacks: { parent: [0, 0, 1, 2, 1], frame: [0, 0, 1, 2, 3], telling: [0, 0, 0, 1, 0] },
        }),
    );
}

test("stacks have labels, can be searched, and their boxes add up", () => {
    const { strings } = header();
    const stacks = new Stacks(header());
    assert.equal(stacks.label(2), "samples.py:20 keep");
    assert.equal(stacks.label(3), "malloc in lib.so");
    assert.equal(stacks.label(0), "no stack recorded");
    assert.equal(stacks.telling(3), 2);
    assert.deepEqual(stacks.frames(3), [3, 2, 1]);
    assert.deepEqual([...stacks.search(findText(strings, "KEEP"))], [0, 0, 1, 1, 0]);
    const { boxes, total } = stacks.layout(
        new Map([
            [3, 70],
            [4, 30],
        ]),
        0,
    );
    assert.equal(total, 100);
    const chain = boxes.find((box) => box.node === 3)!;
    assert.deepEqual(chain.chain, [3, 2]);
    for (let depth = 0; depth < 3; ++depth) {
        const sum = boxes
            .filter((box) => box.depth === depth)
            .reduce((bytes, box) => bytes + box.to - box.from, 0);
        assert.equal(sum, 100);
    }
});

test("source code: a few lines around the line of a frame, or none", () => {
    const page = header();
    const lines = (frame: number): string[] | undefined => sourceOf(page, frame)?.lines;
    assert.deepEqual(lines(0), ["7", "8", "9", "10"]);
    assert.deepEqual(sourceOf(page, 1), {
        place: "samples.py:20",
        line: 20,
        first: 20,
        lines: ["20"],
        changed: true,
    });
    assert.equal(lines(2), undefined); // a frame without a line
    assert.equal(lines(3), undefined); // its file is there, its line is not
    assert.equal(lines(-1), undefined);
    page.sources[0].first_line = 1;
    page.sources[0].lines = Array.from({ length: 99 }, (_, i) => String(i + 1));
    assert.deepEqual(lines(0), ["7", "8", "9", "10", "11", "12", "13"]);
    page.frames.line[0] = 1;
    assert.deepEqual(lines(0), ["1", "2", "3", "4"]);
});

test("a deep stack causes neither recursion nor a stall", () => {
    const deep = header();
    deep.stacks = { parent: [0], frame: [0], telling: [0] };
    for (let node = 1; node < 50000; ++node) {
        deep.stacks.parent.push(node - 1);
        deep.stacks.frame.push(1);
        deep.stacks.telling.push(0);
    }
    const { boxes } = new Stacks(deep).layout(new Map([[49999, 5]]), 0);
    assert.equal(boxes.length, 2);
});

test("events are sorted by time, and equal times keep their order", () => {
    const random = randomNumbers(3);
    for (const [count, from, to] of [
        [0, 0, 10],
        [1, 5, 5],
        [300, 7, 30],
        [2000, 100, 5000000],
        [2000, 0, 0xfffffffe],
    ]) {
        const times = Uint32Array.from({ length: count }, () => from + random(to - from + 1));
        const steps = orderByTime(times, from, to);
        let result = steps.next();
        while (!result.done) result = steps.next();
        const expected = [...times.keys()].sort((a, b) => times[a] - times[b] || a - b);
        assert.deepEqual([...result.value], expected, `${count} in ${from}..${to}`);
    }
});

test("the live index stores a long-lived block a few times, not once per checkpoint", () => {
    const count = 20000;
    const start = Uint32Array.from({ length: count }, (_, i) => i);
    const index = new LiveIndex(start, new Uint32Array(count).fill(0xffffffff)) as unknown as {
        ids: Uint32Array;
    };
    assert.ok(index.ids.length < 12 * count, `${index.ids.length} entries`);
    assert.equal(
        new LiveIndex(start, new Uint32Array(count).fill(0xffffffff)).at(count - 1).length,
        count,
    );
});

test("counts are grouped by thousands", () => {
    const random = randomNumbers(21);
    for (const count of [
        0,
        7,
        999,
        1000,
        12345,
        123456,
        1234567,
        -1234567,
        1234.5678,
        17179869184,
        ...Array.from({ length: 200 }, () => random(2 ** 31) * random(1000)),
    ]) {
        assert.equal(formatCount(count), count.toLocaleString("en-US"));
    }
});
