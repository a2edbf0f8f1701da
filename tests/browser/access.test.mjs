// The page without its pictures, without a pointer, and as exported files: tables, exports, keys,
// window sizes.
//
// FRAGTRACE_PAGES holds pages of made-up data.
import assert from "node:assert/strict";
import { test } from "node:test";
import { download, hash, pageFile, settle, text, visitor } from "./look.mjs";

const run = pageFile("run");
const on = visitor();

test("the table of stacks adds up to the status line's totals for every measure", () =>
    on(run, {}, async (page) => {
        const total = async (id) => {
            await page.click(`#${id}-table`);
            const sum = await page.$$eval(".datatable:first-child tbody td:first-child", (cells) =>
                cells.reduce((bytes, cell) => bytes + Number(cell.title), 0),
            );
            await page.click("#dialog-close");
            return sum;
        };
        await page.click("#chart-table");
        const memory = Object.fromEntries(
            await page.$$eval(".datatable:first-child tbody tr", (rows) =>
                rows.map((row) => [row.cells[0].textContent, Number(row.cells[1].title)]),
            ),
        );
        await page.click("#dialog-close");
        assert.equal(
            memory.requested +
                memory["rounding and slack"] +
                memory["pending: waiting for streams"] +
                memory.holes +
                memory["cached, can be returned to the driver"],
            memory["reserved (sum)"],
        );
        await page.selectOption("#stacks", "live");
        await settle(page);
        assert.equal(
            await total("stacks"),
            memory["reserved (sum)"] -
                memory.holes -
                memory["cached, can be returned to the driver"],
        );
        await page.selectOption("#stacks", "holes");
        await settle(page);
        assert.equal(await total("stacks"), memory.holes);
    }));

test("every picture has a table that can be sorted, copied and saved as CSV", () =>
    on(run, {}, async (page, context) => {
        await context
            .grantPermissions(["clipboard-read", "clipboard-write"])
            .catch(() => undefined);
        for (const id of ["chart", "map", "segments", "stacks", "whatif", "culprits"]) {
            await page.click(`#${id}-table`);
            assert.ok((await page.locator("dialog .datatable tbody tr").count()) > 0, id);
            assert.equal(
                await page.locator("dialog :is(img, script, b, i:not(.amount-bar))").count(),
                0,
            );
            await page.click("#dialog-close");
        }
        await page.click("#map-table");
        const sizes = () =>
            page.$$eval("dialog .datatable:first-child tbody td:first-child", (cells) =>
                cells.map((cell) => Number(cell.title)),
            );
        await page.click("dialog .datatable:first-child th:first-child .sort");
        const down = await sizes();
        assert.deepEqual(
            down,
            [...down].sort((a, b) => b - a),
        );
        assert.equal(
            await page.getAttribute("dialog .datatable:first-child th:first-child", "aria-sort"),
            "descending",
        );
        await page.click("dialog .datatable:first-child th:first-child .sort");
        const up = await sizes();
        assert.deepEqual(
            up,
            [...up].sort((a, b) => a - b),
        );
        const saved = await download(page, () =>
            page.click("dialog .datatable:first-child button:has-text('CSV')"),
        );
        assert.match(saved.name, /^fragtrace-blocks-at-.*\.csv$/);
        const lines = saved.text.trimEnd().split("\r\n");
        assert.equal(
            lines[0],
            '"size","address","allocated","freed","reusable","state","stream","line"',
        );
        assert.match(
            await text(page, "dialog .datatable:first-child .faint"),
            new RegExp(`^${(lines.length - 1).toLocaleString("en-US")} rows`),
        );
        await page.click("dialog .datatable:first-child button:has-text('copy')");
        await settle(page);
        assert.match(await text(page, "dialog .datatable:first-child .faint"), /copied/);
    }));

test("every action has a key, and the help lists it", () =>
    on(run, {}, async (page) => {
        await page.keyboard.press("?");
        const help = await text(page, "dialog");
        for (const key of ["space", "[", "z", "m", "c", "f", "g", "v", "i", "I"]) {
            assert.ok(help.split(/\s+/).includes(key), key);
        }
        await page.keyboard.press("Escape");
        // Tab reaches every control and picture that is visible.
        const wanted = await page.$$eval(
            "button, select, input, canvas[tabindex], summary, tr[tabindex]",
            (all) => all.filter((element) => element.offsetParent !== null).length,
        );
        await page.evaluate(() => document.activeElement.blur());
        const reached = new Set();
        for (let i = 0; i < wanted + 4; ++i) {
            await page.keyboard.press("Tab");
            reached.add(
                await page.evaluate(() => {
                    const all = [
                        ...document.querySelectorAll(
                            "button, select, input, canvas[tabindex], summary, tr[tabindex]",
                        ),
                    ];
                    return all.indexOf(document.activeElement);
                }),
            );
        }
        reached.delete(-1);
        assert.equal(reached.size, wanted);
        // In the stacks, arrow keys move between boxes and name them, and Enter marks one.
        await page.focus("#icicle");
        const { cursor } = await hash(page);
        await page.keyboard.press("ArrowDown");
        const said = await text(page, "#status");
        assert.match(said, /train\.py|model\.py|metrics\.py|samples\.py/);
        await page.keyboard.press("Enter");
        const marked = await hash(page);
        assert.equal(marked.cursor, cursor, "the cursor stays");
        assert.ok(Number(marked.stack) > 0);
    }));

test("the status line is shown in full at every width, and keeps its height", async () => {
    const hash = "#r0=20000000&r1=40000000&s0=50000000&s1=70000000&q=a&only=1";
    for (const width of [1440, 1024, 820, 390]) {
        await on(run, { width, hash }, async (page) => {
            const status = () =>
                page.$eval("#status", (line) => ({
                    height: line.offsetHeight,
                    hidden: line.scrollHeight - line.clientHeight,
                    wider: line.scrollWidth - line.clientWidth,
                    text: line.textContent,
                }));
            const long = await status();
            assert.match(long.text, /^search .*range B: .* in \d+ segments$/);
            assert.ok(long.hidden <= 0 && long.wider <= 0, `${width}: ${JSON.stringify(long)}`);
            if (width < 1000) return; // the whole document scrolls, the line is at its end
            await page.fill("#search", "");
            await page.keyboard.press("Escape");
            await settle(page);
            const short = await status();
            assert.ok(short.text.length < long.text.length);
            assert.equal(short.height, long.height, `the panels do not move at ${width}`);
        });
    }
});

test("on very wide and narrow windows nothing is cut off and no picture is empty", async () => {
    for (const [width, height] of [
        [1024, 768],
        [1440, 900],
        [2560, 1440],
        [3840, 2160],
    ]) {
        await on(run, { width, height, hash: "#selected=200&colour=stack" }, async (page) => {
            const over = await page.evaluate(
                () => document.documentElement.scrollWidth - innerWidth,
            );
            assert.ok(over <= 0, `${over} pixels too wide at ${width}`);
            // Content that does not fit can be scrolled to, and this is shown. The status line
            // covers nothing.
            const { outside, covered, more, scrolls } = await page.evaluate(() => {
                const main = document.getElementById("main");
                const [top, end] = [
                    main.getBoundingClientRect().top - main.scrollTop,
                    main.scrollHeight,
                ];
                return {
                    outside: [...main.querySelectorAll("section")]
                        .filter((section) => section.getBoundingClientRect().bottom - top > end + 1)
                        .map((section) => section.id),
                    covered:
                        main.getBoundingClientRect().bottom -
                        document.getElementById("status").getBoundingClientRect().top,
                    more: main.dataset.more,
                    scrolls: main.scrollHeight > main.clientHeight + 3,
                };
            });
            assert.deepEqual(outside, [], `cannot be reached at ${width}`);
            assert.ok(covered <= 0, `the status line covers ${covered} pixels at ${width}`);
            assert.equal(more, String(scrolls), `at ${width}`);
            for (const id of ["chart", "map", "segments", "icicle"]) {
                const box = await page.locator("#" + id).boundingBox();
                assert.ok(
                    box.height > 60 && box.width > 300,
                    `${id} at ${width}: ${box.width} x ${box.height}`,
                );
            }
            const overlaps = await page.evaluate(() =>
                [
                    "verdict",
                    "culprits",
                    "time",
                    "addresses",
                    "segments-panel",
                    "stacks-panel",
                    "side",
                ].filter((id, i, all) => {
                    const a = document.getElementById(id).getBoundingClientRect();
                    return all.slice(i + 1).some((other) => {
                        const b = document.getElementById(other).getBoundingClientRect();
                        return (
                            a.left < b.right - 1 &&
                            b.left < a.right - 1 &&
                            a.top < b.bottom - 1 &&
                            b.top < a.bottom - 1
                        );
                    });
                }),
            );
            assert.deepEqual(overlaps, []);
        });
    }
});

test("every table shows all its columns, and words and numbers stay whole, at every width", async () => {
    for (const name of ["run", "runs", "screens"]) {
        for (const width of [1440, 1100, 1024, 820, 390]) {
            await on(pageFile(name), { width, height: 900 }, async (page) => {
                const { tables, cut, broken } = await page.evaluate(() => {
                    const around = (node) => {
                        const range = document.createRange();
                        range.selectNodeContents(node);
                        return range;
                    };
                    // A long name stands for those of real traces.
                    for (const code of document.querySelectorAll("#app td code")) {
                        code.append(
                            ..."/estimators"
                                .repeat(2)
                                .split(/(?=\/)/)
                                .flatMap((part) => [document.createElement("wbr"), part]),
                        );
                    }
                    const cut = [];
                    const broken = [];
                    const cells = [...document.querySelectorAll("#app :is(td, th)")].filter(
                        (cell) => cell.offsetParent && cell.textContent,
                    );
                    for (const cell of cells) {
                        const { right } = around(cell).getBoundingClientRect();
                        const box = cell.closest(".card, #side, #range").getBoundingClientRect();
                        if (right > box.right + 1) cut.push(cell.textContent);
                        const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
                        for (let text; (text = texts.nextNode());) {
                            for (const word of text.data.matchAll(/[\p{L}\p{N}]{2,20}/gu)) {
                                const range = around(text);
                                range.setStart(text, word.index);
                                range.setEnd(text, word.index + word[0].length);
                                const tops = [...range.getClientRects()].map(({ top }) => top);
                                if (new Set(tops).size > 1) broken.push(word[0]);
                            }
                        }
                    }
                    return { tables: cells.length, cut, broken };
                });
                assert.ok(tables > 10);
                assert.deepEqual(cut, [], `${name} at ${width}`);
                assert.deepEqual(broken, [], `${name} at ${width}`);
            });
        }
    }
});

test("a setting breaks after its separators, and is copied without them", () =>
    on(run, { width: 390 }, async (page) => {
        const code = page.locator("#whatif-list td code").first();
        assert.equal(await code.textContent(), "expandable_segments:True");
        assert.ok((await code.locator("wbr").count()) >= 2);
    }));

test("forced colours keep the colours that have a meaning", () =>
    on(pageFile("screens"), { hash: "#device=1" }, async (page) => {
        await page.emulateMedia({ forcedColors: "active" });
        await page.locator("#drag").click();
        await page.locator("#culprits tr[tabindex]").first().click();
        await settle(page);
        const adjusted = await page.$$eval(
            ".parts i, #drag, #culprits tr[aria-selected=true] td:first-child, #verdict .kind",
            (elements) => elements.map((element) => getComputedStyle(element).forcedColorAdjust),
        );
        assert.ok(adjusted.length >= 4);
        assert.deepEqual([...new Set(adjusted)], ["none"]);
        // What is drawn, because the computed colour is the same.
        const image = (await page.locator(".parts").first().screenshot()).toString("base64");
        const colours = await page.evaluate(async (image) => {
            // The page's security policy allows no fetch().
            const bytes = Uint8Array.from(atob(image), (letter) => letter.charCodeAt(0));
            const bitmap = await createImageBitmap(new Blob([bytes]));
            const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
            const context = canvas.getContext("2d");
            context.drawImage(bitmap, 0, 0);
            const { data } = context.getImageData(0, bitmap.height / 2, bitmap.width, 1);
            return new Set(new Uint32Array(data.buffer)).size;
        }, image);
        assert.ok(colours >= 2, `the bar of categories has ${colours} colours`);
    }));

test("chart and map share one time axis and move together", () =>
    on(run, {}, async (page) => {
        const places = async () => ({
            chart: await page.locator("#chart").boundingBox(),
            map: await page.locator("#map").boundingBox(),
        });
        for (const [width, height] of [
            [1024, 768],
            [1440, 960],
            [2560, 1440],
        ]) {
            await page.setViewportSize({ width, height });
            await settle(page);
            const { chart, map } = await places();
            assert.deepEqual([chart.x, chart.width], [map.x, map.width], `at ${width}`);
            assert.ok(chart.y + chart.height <= map.y);
            // The cursor is one line: its darkest column is the same in both pictures.
            const lines = await page.evaluate(() =>
                ["chart", "map"].map((id) => {
                    const over = document.querySelector(`#${id} + canvas`);
                    const row = over
                        .getContext("2d")
                        .getImageData(0, over.height - 20, over.width - 40, 1).data;
                    let best = -1;
                    for (let x = 64; x < over.width - 40; ++x) {
                        if (
                            row[4 * x + 3] > 200 &&
                            row[4 * x] < 60 &&
                            (best < 0 || row[4 * x] < row[4 * best])
                        ) {
                            best = x;
                        }
                    }
                    return best;
                }),
            );
            assert.ok(lines[0] > 64 && lines[0] === lines[1], `${lines} at ${width}`);
        }
        const { chart, map } = await places();
        await page.keyboard.press("0");
        const before = await hash(page);
        // The same x is the same moment in both pictures.
        await page.mouse.click(chart.x + 400, chart.y + 60);
        const { cursor } = await hash(page);
        await page.mouse.click(chart.x + 700, chart.y + 60);
        assert.notEqual((await hash(page)).cursor, cursor);
        await page.mouse.click(map.x + 400, map.y + 60);
        assert.equal((await hash(page)).cursor, cursor);
        // The column at the right shows the cursor's moment. A click there selects one of its
        // blocks and does not move the cursor.
        await page.mouse.click(map.x + map.width - 10, map.y + 20);
        const chosen = await hash(page);
        assert.equal(chosen.cursor, cursor);
        assert.ok(Number(chosen.selected) >= 0);
        await page.mouse.click(chart.x + chart.width - 10, chart.y + 60);
        assert.equal((await hash(page)).cursor, cursor);
        for (const place of [chart, map]) {
            await page.mouse.move(place.x + 400, place.y + 60);
            await page.mouse.wheel(0, -300);
            const zoomed = await hash(page);
            assert.ok(
                Number(zoomed.t1) - Number(zoomed.t0) < Number(before.t1) - Number(before.t0),
            );
            await page.keyboard.press("0");
            await settle(page);
        }
    }));

test("a row cut off by the window is announced until its end is visible", () =>
    on(run, { height: 820 }, async (page) => {
        const list = page.locator("#side");
        const state = () =>
            list.evaluate((place) => ({
                more: place.dataset.more,
                left: place.scrollHeight - place.clientHeight - place.scrollTop,
                hint: getComputedStyle(place, "::after").content,
            }));
        await page.evaluate(() => (document.getElementById("side").style.maxHeight = "70px"));
        await settle(page);
        let now = await state();
        assert.ok(
            now.left > 3 && now.more === "true" && now.hint.includes("more"),
            JSON.stringify(now),
        );
        await list.evaluate((place) => (place.scrollTop = place.scrollHeight));
        await settle(page);
        now = await state();
        assert.ok(
            now.left <= 3 && now.more === "false" && now.hint === "none",
            JSON.stringify(now),
        );
    }));

test("a view of part of the time says how to see the whole run", () =>
    on(run, { width: 1024, height: 768 }, async (page) => {
        await page.keyboard.press("w");
        await settle(page);
        assert.match(
            await text(page, "#window"),
            /^[\d.]+ m?s to [\d.]+ m?s of [\d.]+ m?s; press 0 to see all$/,
        );
        const { width, scroll } = await page.$eval("#window", (place) => ({
            width: place.clientWidth,
            scroll: place.scrollWidth,
        }));
        assert.ok(scroll <= width, "and is not cut");
        await page.keyboard.press("0");
        await settle(page);
        assert.equal(await text(page, "#window"), "");
        assert.match(await text(page, "#chart-legend"), /highest allocated/);
    }));
