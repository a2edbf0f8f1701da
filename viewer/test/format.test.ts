// Both programs write the same texts: the list is also checked against analyzer/support/units.cpp.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
    formatBytes,
    formatChange,
    formatCount,
    formatTime,
    formatWhole,
    momentsApart,
} from "../src/data/format";
import { addressLabels } from "../src/draw/map";

test("sizes, times and counts are written exactly as in the report", () => {
    const path = process.env.FRAGTRACE_FORMATS;
    assert.ok(path, "FRAGTRACE_FORMATS names the list");
    const write: Record<string, (value: number) => string> = {
        bytes: formatBytes,
        time: formatTime,
        count: formatCount,
    };
    const lines = readFileSync(path, "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => line.split("\t"));
    assert.ok(lines.length > 1000);
    const wrong = lines.filter(([kind, value, text]) => write[kind](Number(value)) !== text);
    assert.deepEqual(
        wrong.map(
            ([kind, value, text]) => `${kind} ${value}: ${write[kind](Number(value))}, not ${text}`,
        ),
        [],
    );
});

test("moments get the digits that tell them apart", () => {
    const shown = (...moments: number[]): string[] => moments.map(momentsApart(moments));
    assert.deepEqual(shown(12.9e6, 350e6), ["12.9 ms", "350 ms"]);
    assert.deepEqual(shown(12.93e6, 12.95e6, 12.93e6), ["12.93 ms", "12.95 ms", "12.93 ms"]);
    assert.deepEqual(shown(10_560e9, 10_560.25e9), ["10560.0 s", "10560.3 s"]);
    assert.deepEqual(shown(5e9), ["5 s"]);
});

test("offsets that look alike are labelled exactly", () => {
    const start = 80 * 2 ** 30 + 857 * 2 ** 20;
    assert.deepEqual(addressLabels([0, 2 ** 20]), [["+0"], ["+1 MiB"]]);
    assert.deepEqual(addressLabels([start, start + 1024, start + 1536]), [
        ["+80 GiB", "+857 MiB"],
        ["+80 GiB", "+857 MiB", "+1 KiB"],
        ["+80 GiB", "+857 MiB", "+1 KiB", "+512 B"],
    ]);
    assert.deepEqual(formatWhole(0), ["0 B"]);
});

test("a difference of sizes has its sign", () => {
    assert.deepEqual([0, 20 * 2 ** 20, -3 * 2 ** 10].map(formatChange), [
        "0 B",
        "+20 MiB",
        "-3 KiB",
    ]);
});
