// The share of each pixel that rectangles cover, and along a line ranges, which can be taken away
// again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CoverageGrid, LineCoverage } from "../src/data/coverage";
import { randomNumbers, sharesOf } from "./made";

test("coverage adds up areas, clipped at the edges", () => {
    const random = randomNumbers(5);
    const grid = new CoverageGrid(8, 6);
    const expected = new Float64Array(48);
    for (let i = 0; i < 200; ++i) {
        const [left, bottom] = [random(1000) / 100 - 1, random(1000) / 100 - 2];
        const [right, top] = [left + random(500) / 100, bottom + random(300) / 100];
        grid.add(left, right, bottom, top);
        for (let row = 0; row < 6; ++row) {
            for (let column = 0; column < 8; ++column) {
                const across = Math.max(0, Math.min(right, column + 1) - Math.max(left, column));
                const up = Math.max(0, Math.min(top, row + 1) - Math.max(bottom, row));
                expected[row * 8 + column] += across * up;
            }
        }
    }
    sharesOf(grid).forEach((share, i) =>
        assert.ok(Math.abs(share - expected[i]) < 1e-4, `cell ${i}`),
    );
});

test("coverage along a line equals that of the grid", () => {
    const random = randomNumbers(9);
    const line = new LineCoverage(12);
    const grid = new CoverageGrid(12, 1);
    for (let i = 0; i < 50; ++i) {
        const [from, to] = [random(1600) / 100 - 2, random(1600) / 100 - 2].sort((a, b) => a - b);
        const ends = i % 3 === 0 ? [from, (from + to) / 2, to] : [from, to]; // one after the other
        for (let at = 1; at < ends.length; ++at) line.add(ends[at - 1], ends[at]);
        grid.add(from, to, 0, 1);
    }
    const shares = line.shares();
    assert.equal(line.shares(), shares);
    sharesOf(grid).forEach((share, i) =>
        assert.ok(Math.abs(share - shares[i]) < 1e-5, `${i}: ${share} ${shares[i]}`),
    );
    line.add(3, 4);
    line.clear();
    assert.deepEqual([...line.shares()], new Array(12).fill(0));
});

test("coverage from which ranges are taken away equals one that never had them", () => {
    const random = randomNumbers(19);
    const line = new LineCoverage(5);
    for (const length of [12, 40, 7]) {
        line.clear(length);
        const ranges: [number, number][] = [];
        for (let i = 0; i < 200; ++i) {
            const fresh = new LineCoverage(length);
            const before = [...line.shares()];
            const range: [number, number] =
                i % 3 === 2 ? ranges.splice(random(ranges.length), 1)[0] : [0, 0];
            if (i % 3 === 2) {
                line.add(...range, -1);
            } else {
                range[0] = (random(1000) / 1000) * length;
                range[1] = range[0] + (random(1000) / 4000) * length;
                line.add(...range);
                ranges.push(range);
            }
            for (const one of ranges) fresh.add(...one);
            const [first, behind] = line.update();
            assert.ok(first >= Math.floor(range[0]) && behind <= Math.floor(range[1]) + 1, `${i}`);
            const [shares, wanted] = [line.shares(), fresh.shares()];
            for (let at = 0; at < length; ++at) {
                assert.ok(Math.abs(shares[at] - wanted[at]) < 1e-9, `${i} at ${at}`);
                if (at < first || at >= behind) assert.equal(shares[at], before[at]);
            }
        }
    }
});
