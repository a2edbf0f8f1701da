// What the report says about a job: its rows under their headings, none lost.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Header, JobRow } from "../src/data/header";
import { jobBlocks, jobText } from "../src/data/jobrows";

const row = (kind: JobRow["kind"], label: string, text: string): JobRow => ({
    kind,
    label,
    parts: [{ text, ranks: [] }],
});
const header = (job: JobRow[]): Header => ({ job }) as unknown as Header;
const shown = (job: JobRow[]): string[] =>
    jobBlocks(header(job)).flatMap(({ heading, rows }) => [
        ...(heading ? [heading.parts[0].text] : []),
        ...rows.flatMap(({ label, lines }) => lines.map(([part]) => `${label}: ${part.text}`)),
    ]);

test("each failure has its rows, and equal labels are named once", () => {
    const job = [
        row("failure", "", "rank 3 ran out of memory first"),
        row("report", "verdict", "why"),
        row("row", "others", "7 ended"),
        row("failure", "", "rank 2 of generation 1 failed"),
        row("row", "differs", "rank 1"),
        row("row", "differs", "rank 2"),
        row("row", "", "2 more groups"),
        row("row", "card", "80 GiB"),
    ];
    const blocks = jobBlocks(header(job));
    assert.equal(blocks.length, 2);
    assert.deepEqual(
        blocks[1].rows.map(({ label, lines }) => [label, lines.length]),
        [
            ["differs", 3],
            ["card", 1],
        ],
    );
    assert.deepEqual(shown(job), [
        "rank 3 ran out of memory first",
        "verdict: why",
        "others: 7 ended",
        "rank 2 of generation 1 failed",
        "differs: rank 1",
        "differs: rank 2",
        "differs: 2 more groups",
        "card: 80 GiB",
    ]);
    assert.equal(jobText(header(job)).split("\n").length, job.length);
});

test("a job without a heading, and many unreadable traces", () => {
    const job = Array.from({ length: 11 }, (_, i) => row("unreadable", "unreadable", `file ${i}`));
    const all = shown(job);
    assert.equal(all.length, 9);
    assert.equal(all[7], "unreadable: file 7");
    assert.match(all[8], /^unreadable: 3 more traces could not be read/);
    assert.deepEqual(jobBlocks(header([])), []);
});
