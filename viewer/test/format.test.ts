// Both programs write the same texts: the list is also checked against analyzer/support/units.cpp.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { formatBytes, formatChange, formatCount, formatTime } from "../src/data/format";

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

test("a difference of sizes has its sign", () => {
    assert.deepEqual([0, 20 * 2 ** 20, -3 * 2 ** 10].map(formatChange), [
        "0 B",
        "+20 MiB",
        "-3 KiB",
    ]);
});
