// The processes of a job: their names, their places in the strip, and their descriptions.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Header, Rank } from "../src/data/header";
import {
    heatBytes,
    heatCertainty,
    heatMeasures,
    type HeatRow,
    heatRows,
    unknownParts,
} from "../src/data/heat";
import {
    fillOf,
    generationStarts,
    rankAt,
    rankLabel,
    ranksText,
    rankTables,
    shortName,
    slotsOf,
    worstOf,
} from "../src/data/ranks";

const row = (change: Partial<Rank> = {}): Rank => ({
    rank: 3,
    pid: 4711,
    gpu: 0,
    host: "",
    generation: null,
    helper: "",
    trace: true,
    capacity: 16,
    peak_allocated: 4,
    peak_reserved: 8,
    retries: 0,
    ooms: 0,
    first_oom_ns: null,
    first_failure: null,
    start_after_ns: 0,
    ended: "ended normally",
    program: "python train.py",
    file: "a.ftrace",
    command: "fraganalyze a",
    device: null,
    reserved_heat: null,
    allocated_heat: null,
    ...change,
});
const header = (ranks: Rank[], whole: number, unreadable: Header["unreadable"] = []): Header =>
    ({
        ranks,
        unreadable,
        processes: Array.from({ length: whole }),
        devices: [{ blocks: 5 }],
        job: [],
    }) as unknown as Header;

test("where there is little room, a process has its rank, its number or its file", () => {
    assert.equal(shortName(row()), "rank 3");
    assert.equal(shortName(row({ rank: null })), "pid 4711");
    assert.equal(shortName(row({ rank: null, pid: 0, file: "a/oom.pickle" })), "oom.pickle");
});

test("a process is named by rank, process id and device, with its outcome", () => {
    assert.equal(rankLabel(row({ ooms: 2, retries: 1 })), "rank 3 · pid 4711 · GPU 0 · OOM");
    assert.equal(rankLabel(row({ retries: 1 })), "rank 3 · pid 4711 · GPU 0 · retries");
    assert.equal(
        rankLabel(row({ rank: null, pid: 0, gpu: null })),
        "no rank · a.ftrace · no GPU memory",
    );
});

test("a process with several devices is counted once", () => {
    const ranks = [
        row({ gpu: 0, device: 0, ooms: 1 }),
        row({ gpu: 1, ooms: 1 }),
        row({ command: "b" }),
    ];
    assert.equal(
        ranksText(header(ranks, 1)),
        "1 of 2 complete in this file (underlined), 1 as one line each; 1 ran out of memory",
    );
    assert.equal(
        ranksText(header([row()], 1, [{ file: "x", reason: "y" }])),
        "all 1 complete in this file; no out-of-memory is known; 1 unreadable",
    );
});

test("no process is said to have no out-of-memory if that is unknown", () => {
    assert.match(ranksText(header([row({ ooms: null })], 1)), /no out-of-memory is known$/);
    assert.match(ranksText(header([row({ ooms: null }), row({ ooms: 1 })], 1)), /1 ran out/);
    const whole = header([row()], 1);
    assert.match(ranksText(whole), /none ran out of memory$/);
    for (const label of ["missing", "partial", "damaged"]) {
        const job: Header["job"] = [{ kind: "row", label, parts: [] }];
        assert.match(ranksText({ ...whole, job }), /no out-of-memory is known$/);
    }
    assert.equal(rankLabel(row({ ooms: null, retries: null })), "rank 3 · pid 4711 · GPU 0");
});

test("rows over time: first failures, out-of-memories by their time, then the peaks that differ most", () => {
    const at = (rank: number, change: Partial<Rank>): Rank =>
        row({ rank, allocated_heat: btoa("\u0001\u00ff"), start_after_ns: 9 - rank, ...change });
    const of = {
        ...header(
            [
                at(0, {}),
                at(1, { first_failure: 1 }),
                at(2, { peak_reserved: 2 }),
                at(3, { ooms: 1, first_oom_ns: 5, first_failure: 0 }),
                at(4, { peak_reserved: 6 }),
                at(5, { ooms: 1, first_oom_ns: 1 }),
                at(6, { allocated_heat: null }),
            ],
            1,
        ),
        heat: { columns: 2, column_ns: 1, full_bytes: 254 },
    } as Header;
    const ranks = (byRank: boolean): (number | null)[] =>
        heatRows(of, byRank).map(({ rank }) => rank.rank);
    assert.deepEqual(ranks(false), [3, 1, 5, 2, 4, 0]);
    assert.deepEqual(ranks(true), [0, 1, 2, 3, 4, 5]);
});

test("memory over time is at most or at least the figure shown, and unknown if it is not known", () => {
    const of = {
        ...header([row({ capacity: 300, allocated_heat: btoa("\u0000\u0066\u0001") })], 1),
        heat: { columns: 3, column_ns: 1, full_bytes: 253 },
    } as Header;
    const [unknown] = heatRows(of, true);
    const known = { ...unknown, reserved: new Uint8Array([0, 202, 1]) };
    const shown = (from: HeatRow): (number | null)[] =>
        heatMeasures.map((measure) => heatBytes(of, from, measure, 1));
    assert.deepEqual(heatMeasures.map(heatCertainty), ["at most", "at most", "at least", "about"]);
    assert.deepEqual(shown(known), [200, 100, 100, 100]);
    assert.deepEqual(shown(unknown), [null, 100, null, null]);
    assert.equal(heatBytes(of, known, "reserved", 0), null);
    assert.equal(heatBytes(of, known, "reserved", 2), null);
});

test("a line in the strip marks where another generation begins", () => {
    const of = (...generations: (number | null)[]): number[] =>
        generationStarts(generations.map((generation) => row({ generation })));
    assert.deepEqual(of(0, 0, 1, 1, 2, 0), [2, 4, 5]);
    assert.deepEqual(of(null, null), []);
});

test("the parts of a row in which nothing is known are not those in which a process did not run", () => {
    const parts = (values: string): [number, number][] =>
        unknownParts(
            heatRows(header([row({ allocated_heat: btoa(values) })], 1), true)[0],
            values.length,
        );
    assert.deepEqual(parts("\u0001\u0002\u0001\u0001\u0000"), [
        [0, 1],
        [2, 4],
    ]);
    assert.deepEqual(parts("\u0000\u0003"), []);
});

test("the row under a point is the one drawn there, as by brute force", () => {
    for (const [count, width] of [
        [2, 900],
        [40, 900],
        [900, 900],
        [5000, 900],
        [1, 3],
    ]) {
        const ranks = Array.from({ length: count }, (_, i) =>
            row({ peak_reserved: (i * 7919) % 1009, ooms: i % 613 === 600 ? 1 : 0 }),
        );
        const slots = slotsOf(count, width);
        const seen = new Set<number>();
        for (let x = 0; x < width; ++x) {
            const hit = rankAt(ranks, width, x);
            if (x >= count * slots.width) {
                assert.equal(hit, -1);
            } else {
                const places = ranks.flatMap((_, i) =>
                    (
                        slots.width >= 1
                            ? i * slots.width <= x && x < (i + 1) * slots.width
                            : Math.floor(x / slots.width) <= i &&
                              i <
                                  Math.max(
                                      Math.floor(x / slots.width) + 1,
                                      Math.floor((x + 1) / slots.width),
                                  )
                    )
                        ? [i]
                        : [],
                );
                assert.ok(
                    places.includes(hit),
                    `${count} rows, ${width} pixels, at ${x}: ${hit} of ${places.join()}`,
                );
                assert.ok(
                    places.every((i) => ranks[i].ooms! <= ranks[hit].ooms!),
                    "a failure is not covered",
                );
            }
            if (hit >= 0) seen.add(hit);
        }
        ranks.forEach((rank, i) =>
            assert.ok(!rank.ooms || seen.has(i), `failure ${i} of ${count} can be reached`),
        );
    }
    assert.equal(rankAt([row()], 100, -1), -1);
    assert.equal(
        worstOf([row(), row({ retries: 1, peak_reserved: 1 }), row({ peak_reserved: 16 })], 0, 3),
        1,
    );
});

test("a bar is a share of its own capacity, else of the largest value", () => {
    assert.equal(fillOf(row(), 100), 0.5);
    assert.equal(fillOf(row({ capacity: null }), 100), 0.08);
    assert.equal(fillOf(row({ peak_reserved: 17 }), 100), 1);
});

test("the table has a row per process and device and names unreadable traces", () => {
    const [all, unread] = rankTables(
        header([row({ device: 0 }), row({ first_oom_ns: 5, pid: 0 })], 1, [
            { file: "x", reason: "y" },
        ]),
    );
    assert.equal(all.columns.length, all.rows[0].length);
    assert.equal(all.rows[0][11], "complete, 5 blocks");
    assert.equal(all.rows[1][11], "one line");
    assert.equal(all.rows[1][1], null);
    assert.deepEqual(unread.rows, [["x", "y"]]);
});
