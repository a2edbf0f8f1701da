// Ranges of time: selected by pointer and keys, measured, compared, and kept in the link.
//
// FRAGTRACE_PAGES holds pages of made-up data.
import assert from "node:assert/strict";
import { test } from "node:test";
import { drawnText, eventually, hash, pageFile, settle, share, visitor } from "./look.mjs";

const run = pageFile("run");
const teal = [0, 133, 122];
const on = visitor();

/** Drags in a picture from one share of its width to another. */
async function drag(page, selector, from, to) {
    const box = await page.locator(selector).boundingBox();
    const y = box.y + box.height / 2;
    await page.mouse.move(box.x + from * box.width, y);
    await page.mouse.down();
    await page.mouse.move(box.x + (0.5 * from + 0.5 * to) * box.width, y);
    await page.mouse.move(box.x + to * box.width, y);
    await page.mouse.up();
}

async function dragWithShift(page, selector, from, to) {
    await page.keyboard.down("Shift");
    await drag(page, selector, from, to);
    await page.keyboard.up("Shift");
}

/** Allocated bytes at a tick, as the table of the chart says. */
async function allocatedAt(page, tick) {
    await page.evaluate(
        (tick) => (location.hash = location.hash.replace(/cursor=\d+/, `cursor=${tick}`)),
        tick,
    );
    await settle(page);
    await page.click("#chart-table");
    const parts = await page.$$eval(".datatable:first-child tbody tr", (rows) =>
        rows.slice(0, 2).map((row) => Number(row.cells[1].title)),
    );
    await page.click("#dialog-close");
    return parts[0] + parts[1]; // requested, rounding and slack
}

/** The columns of the table of lines: exact numbers, and the name in the last column. */
async function lines(page) {
    await page.click('#range button:has-text("table")');
    const rows = await page.$$eval(".datatable tbody tr", (all) =>
        all.map((row) => [...row.cells].map((cell) => cell.title || cell.textContent)),
    );
    const title = await drawnText(page, ".datatable h2");
    await page.click("#dialog-close");
    return { rows, title };
}

const sum = (rows, column) => rows.reduce((all, row) => all + Number(row[column]), 0);

for (const picture of ["#chart", "#map"]) {
    test(`a drag with Shift in ${picture} selects a range, whose change is exact`, () =>
        on(run, {}, async (page) => {
            await page.keyboard.press("0");
            const before = await hash(page);
            await dragWithShift(page, picture, 0.3, 0.6);
            const view = await hash(page);
            assert.deepEqual([view.t0, view.t1], [before.t0, before.t1], "the window stays");
            assert.ok(Number(view.r0) < Number(view.r1));
            for (const id of ["chart", "map"]) {
                assert.ok((await share(page, `#${id} + canvas`, teal)) > 0.0005, id);
            }
            await eventually(async () => {
                const panel = await drawnText(page, "#range");
                for (const part of ["change of allocated memory", "allocated", "freed", "peak"]) {
                    assert.ok(panel.includes(part), `${part} in: ${panel}`);
                }
                assert.match(
                    await drawnText(page, "#status"),
                    /^range A: [+-].* peak .*\. cursor /,
                );
            });
            const { rows } = await lines(page);
            const change = sum(rows, 0);
            assert.equal(sum(rows, 1) - sum(rows, 3), change, "allocated minus freed");
            const [first, last] = [
                await allocatedAt(page, view.r0),
                await allocatedAt(page, view.r1),
            ];
            assert.equal(change, last - first);
        }));
}

test("an edge of a range can be dragged, and a drag without Shift still pans", () =>
    on(run, {}, async (page) => {
        await dragWithShift(page, "#chart", 0.3, 0.6);
        const first = await hash(page);
        await drag(page, "#chart", 0.6, 0.7);
        const longer = await hash(page);
        assert.equal(longer.r0, first.r0);
        assert.ok(Number(longer.r1) > Number(first.r1));
        await page.keyboard.press("w");
        await drag(page, "#chart", 0.25, 0.2);
        const moved = await hash(page);
        assert.deepEqual([moved.r0, moved.r1], [longer.r0, longer.r1]);
        assert.notEqual(moved.t0, longer.t0);
        // The button lets a plain drag select, for fingers and pens.
        await page.keyboard.press("0");
        await page.click("#drag");
        await settle(page);
        assert.equal(await page.getAttribute("#drag", "aria-pressed"), "true");
        await drag(page, "#map", 0.2, 0.4);
        const chosen = await hash(page);
        assert.equal(chosen.drag, "range");
        assert.ok(Number(chosen.r0) < Number(chosen.r1));
        assert.notEqual(chosen.r1, moved.r1);
        await page.keyboard.press("x");
        assert.equal((await hash(page)).drag, undefined);
    }));

test("keys select a range, compare it with the step before, zoom to it and remove it", () =>
    on(run, {}, async (page) => {
        await page.keyboard.press("0");
        const whole = await hash(page);
        await page.keyboard.press("r");
        const window = await hash(page);
        assert.deepEqual([window.r0, window.r1], [whole.t0, whole.t1]);
        await page.keyboard.press("r");
        assert.equal((await hash(page)).r0, undefined);
        await page.keyboard.press("m");
        const { mark } = await hash(page);
        for (let i = 0; i < 3; ++i) await page.keyboard.press("Shift+ArrowLeft");
        await page.keyboard.press("r");
        const marked = await hash(page);
        assert.deepEqual([marked.r0, marked.r1], [marked.cursor, mark]);
        // In a step: first the phase, then the step around it.
        await page.evaluate(
            () => (location.hash = location.hash.replace(/cursor=\d+/, "cursor=50000000")),
        );
        await settle(page);
        await page.keyboard.press("e");
        await eventually(async () =>
            assert.match(await drawnText(page, "#range"), /(forward|backward <b>pass<\/b>):/),
        );
        await page.keyboard.press("e");
        const step = await eventually(async () =>
            Number((await drawnText(page, "#range")).match(/step (\d+):/)[1]),
        );
        await page.keyboard.press("R");
        const two = await hash(page);
        assert.ok(Number(two.s1) <= Number(two.r0), "the step before ends before this one");
        await eventually(async () => {
            const panel = await drawnText(page, "#range");
            assert.match(panel, new RegExp(`A\\s*step ${step}:[^]*B\\s*step ${step - 1}:`));
            assert.match(panel, /A − B/, "the later one minus the earlier one");
        });
        const { rows, title } = await lines(page);
        assert.match(title, /^Memory by line, A: .* to .*; B: /);
        assert.equal(rows[0].length, 11, "five figures of each range, and the line");
        await page.keyboard.press("Z");
        const zoomed = await hash(page);
        assert.ok(Number(zoomed.t0) < Number(two.s0) && Number(zoomed.t1) > Number(two.r1));
        assert.ok(Number(zoomed.t1) - Number(zoomed.t0) < 1.2 * (two.r1 - two.s0));
        // The next selection changes the second range.
        await page.keyboard.press("0");
        await dragWithShift(page, "#chart", 0.2, 0.25);
        const other = await hash(page);
        assert.deepEqual([other.r0, other.r1], [two.r0, two.r1]);
        assert.notEqual(other.s0, two.s0);
        await page.keyboard.press("Escape");
        assert.equal((await hash(page)).r0, undefined);
        assert.equal(await page.locator("#range").isVisible(), false);
        await page.keyboard.press("R");
        assert.match(await drawnText(page, "#status"), /select a range first/);
    }));

test("the lines of a range are sorted by change or by bytes, and a click marks their blocks", () =>
    on(run, { hash: "#r0=20000000&r1=80000000" }, async (page) => {
        const first = () => drawnText(page, "#range table[role=grid] tbody tr:first-child");
        const byChange = await first();
        await page.click('#range button:has-text("bytes allocated")');
        assert.equal((await hash(page)).by, "allocated");
        const sizes = (await lines(page)).rows.map((row) => Number(row[1]));
        assert.deepEqual(
            sizes,
            [...sizes].sort((a, b) => b - a),
        );
        assert.notEqual(await first(), byChange);
        const marked = () => share(page, "#map + canvas", teal, 60);
        await page.click("#range");
        const before = await marked();
        await page.locator("#range table[role=grid] tbody tr").first().click();
        await settle(page);
        assert.ok(Number((await hash(page)).line) >= 0);
        assert.equal(await page.locator('#range tr[aria-selected="true"]').count(), 1);
        assert.ok((await marked()) > before, "its blocks are marked");
        // Only one thing is marked at a time.
        await page.focus("#icicle");
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("Enter");
        const { line, stack } = await hash(page);
        assert.equal(line, undefined);
        assert.ok(Number(stack) > 0);
        // The peak is a place to go to.
        await page.click("#range .figures button");
        const { cursor } = await hash(page);
        assert.ok(Number(cursor) >= 20000000 && Number(cursor) <= 80000000);
    }));

test("the stacks by bytes allocated are those of the range", () =>
    on(run, { hash: "#stacks=churn&r0=20000000&r1=80000000" }, async (page) => {
        const { rows } = await lines(page);
        await page.click("#stacks-table");
        assert.match(await drawnText(page, "dialog"), /Stacks by allocated in range A/);
        const stacks = await page.$$eval(".datatable:first-child tbody td:first-child", (cells) =>
            cells.reduce((bytes, cell) => bytes + Number(cell.title), 0),
        );
        await page.click("#dialog-close");
        assert.equal(stacks, sum(rows, 1));
    }));

test("a link restores ranges, and ignores incomplete ones", async () => {
    let panel;
    const link = "#r0=20000000&r1=40000000&s0=50000000&s1=70000000&by=allocated&line=3&drag=range";
    await on(run, { hash: link }, async (page) => {
        await eventually(async () => {
            panel = await drawnText(page, "#range");
            assert.match(panel, /Two ranges of time[^]*By line[^]*allocated at/);
        });
        const view = await hash(page);
        for (const [key, value] of new URLSearchParams(link.slice(1))) {
            assert.equal(view[key], value, key);
        }
        await page.reload();
        await page.waitForSelector("html[data-ready]");
        await settle(page);
        await eventually(async () => assert.equal(await drawnText(page, "#range"), panel));
    });
    for (const part of ["r0=5", "r1=5", "r0=7&r1=7", "s0=1&s1=9", "r0=-1&r1=0.5", "r0=x&r1=9"]) {
        await on(run, { hash: `#${part}` }, async (page) => {
            assert.equal(await page.locator("#range").isVisible(), false, part);
        });
    }
});

test("on a narrow screen the range follows the chart, in both themes", async () => {
    for (const scheme of ["light", "dark"]) {
        const options = { width: 390, height: 844, scheme, hash: "#r0=20000000&r1=40000000" };
        await on(run, options, async (page) => {
            const [chart, panel, map] = await Promise.all(
                ["#time", "#range", "#addresses"].map((id) => page.locator(id).boundingBox()),
            );
            assert.ok(chart.y + chart.height <= panel.y && panel.y + panel.height <= map.y);
            assert.ok(panel.height > 100);
            const over = await page.evaluate(
                () => document.documentElement.scrollWidth - innerWidth,
            );
            assert.ok(over <= 0, `${over} pixels too wide`);
            await page.keyboard.press("R");
            await settle(page);
            const cut = await page.$eval(
                "#range",
                (place) => place.scrollWidth - place.clientWidth,
            );
            assert.ok(cut <= 0, `${cut} pixels of two ranges are cut off`);
        });
    }
});

test("a range of many blocks is measured in steps, and the page stays responsive", () =>
    on(pageFile("many"), {}, async (page) => {
        await page.keyboard.press("0");
        await page.keyboard.press("r");
        await eventually(async () =>
            assert.match(
                await drawnText(page, "#range"),
                /peak allocated[^]*By line[^]*allocated at/,
            ),
        );
        const { rows } = await lines(page);
        const blocks = sum(rows, 2);
        const { t0, t1 } = await hash(page);
        assert.ok(blocks > 200_000, `${blocks} blocks from ${t0} to ${t1}`);
    }));

test("two ranges show at least six lines of the program at every width", async () => {
    const ranges = "#r0=20000000&r1=40000000&s0=50000000&s1=70000000";
    for (const [width, height] of [
        [1440, 960],
        [1024, 768],
        [820, 1180],
        [390, 844],
    ]) {
        await on(run, { width, height, hash: ranges }, async (page) => {
            await page.waitForSelector("#range table[role=grid]");
            const { whole, cut } = await page.$eval("#range", (panel) => {
                const box = panel.getBoundingClientRect();
                const bottom = box.bottom - 20; // above the word "more"
                const rows = [...panel.querySelectorAll("table[role=grid] tbody tr")];
                return {
                    whole: rows.filter((row) => row.getBoundingClientRect().bottom <= bottom)
                        .length,
                    cut: [...panel.querySelectorAll("tr, .headline *")].filter(
                        (part) => part.getBoundingClientRect().right > box.right,
                    ).length,
                };
            });
            assert.ok(whole >= 6, `${whole} rows at ${width} pixels`);
            assert.equal(cut, 0, `${width} pixels`);
            const side = await page.locator("#side").boundingBox();
            assert.ok(side.height >= 120, `the side has ${side.height} pixels at ${width}`);
            const segments = await page.locator("#segments").boundingBox();
            assert.ok(segments.height >= 110, `the segments have ${segments.height} pixels`);
        });
    }
});
