// The rows that run when a part of the page's state changes.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Part } from "../src/state/store";
import { checkUpdates, runUpdates, type Update } from "../src/state/updates";

function recorded(rows: [on: Part[], makes?: Part, answer?: boolean][]): [Update[], string[]] {
    const ran: string[] = [];
    const table = rows.map(([on, makes, answer], at): Update => {
        const draw = (): boolean | undefined => {
            ran.push(`row ${at}`);
            return answer;
        };
        return makes ? { on, draw, makes } : { on, draw };
    });
    return [table, ran];
}

test("a row runs once if any of its parts changed, else not at all", () => {
    const [table, ran] = recorded([[["cursor", "mark"]], [["theme"]], [["mark"]]]);
    runUpdates(table, new Set<Part>(["cursor", "mark"]));
    assert.deepEqual(ran, ["row 0", "row 2"]);
});

test("a row runs if a row above changed a part that it depends on", () => {
    const [table, ran] = recorded([[["cursor"], "heap"], [["heap"], "sums"], [["sums"]]]);
    runUpdates(table, new Set<Part>(["cursor"]));
    assert.deepEqual(ran, ["row 0", "row 1", "row 2"]);
});

test("a row that returns false changes nothing", () => {
    const [table, ran] = recorded([[["t0"], "sweep", false], [["sweep"]]]);
    runUpdates(table, new Set<Part>(["t0"]));
    assert.deepEqual(ran, ["row 0"]);
});

test("the caller's set of changed parts stays unchanged", () => {
    const changed = new Set<Part>(["cursor"]);
    runUpdates(recorded([[["cursor"], "heap"]])[0], changed);
    assert.deepEqual([...changed], ["cursor"]);
});

test("a table whose row depends on a part of a row below is refused", () => {
    checkUpdates(recorded([[["cursor"], "heap"], [["heap"]]])[0]);
    for (const rows of [[[["heap"]], [["cursor"], "heap"]], [[["heap"], "heap"]]] as [
        Part[],
        Part?,
    ][][]) {
        assert.throws(() => checkUpdates(recorded(rows)[0]), /heap is made too late/);
    }
});
