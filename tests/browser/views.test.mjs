// The views and their interactions in a real browser. Each interaction is checked by its effect on
// the URL, the pixels or the text.
//
// FRAGTRACE_PAGES holds pages of made-up data.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
    changedPage,
    download,
    eventually,
    hash,
    pageFile,
    print,
    settle,
    share,
    text,
    visitor,
} from "./look.mjs";

const board = pageFile("checkerboard");
const run = pageFile("run");
const on = visitor();

test("the verdict names the blocking line and the remedy", () =>
    on(board, {}, async (page) => {
        const verdict = await text(page, "#verdict");
        assert.match(
            verdict,
            /culprit\s+fragment\.py:11 keep prevents 940 MiB of free memory from being reused/,
        );
        assert.match(verdict, /what helps\s+expandable_segments:True/);
        assert.match(verdict, /tried\s+expandable_segments:True: ended normally/);
    }));

test("pinned memory has a track on its own scale, with hover, status and table", async () => {
    await on(run, {}, async (page) => {
        await page.keyboard.press("0");
        await settle(page);
        const box = await page.locator("#chart").boundingBox();
        // Two lanes of 13 px and the axis are below the track.
        const y = box.y + box.height - 16 - 2 * 13 - 3 - 14;
        await page.mouse.move(box.x + 64 + (box.width - 98) * 0.35, y);
        assert.match(
            await text(page, "#tip"),
            /: 3 GiB pinned host memory of the process\s+peak 3 GiB at /,
        );
        await page.mouse.click(box.x + 64 + (box.width - 98) * 0.2, y);
        await eventually(async () =>
            assert.match(await text(page, "#status"), /512 MiB pinned host memory; /),
        );
        await page.click("#chart-table");
        assert.match(
            await text(page, "dialog"),
            /belongs to no card, at [^]*pinned host memory\s+512 MiB\s+536,870,912 B\s+3 GiB/,
        );
        await page.click("#dialog-close");
    });
    await on(board, {}, async (page) => {
        assert.doesNotMatch(await text(page, "#status"), /pinned/);
        await page.click("#chart-table");
        assert.match(await text(page, "dialog"), /Events/);
        assert.doesNotMatch(await text(page, "dialog"), /belongs to no card/);
    });
});

test("stacks have four measures, icicle and flame, and folded libraries", () =>
    on(run, {}, async (page) => {
        const seen = new Set([await print(page, "#icicle")]);
        for (const [key, measure] of [
            ["2", "live"],
            ["3", "churn"],
            ["4", "growth"],
            ["1", "holes"],
        ]) {
            await page.keyboard.press(key);
            assert.equal((await hash(page)).stacks, measure);
            assert.equal(await page.inputValue("#stacks"), measure);
            seen.add(await print(page, "#icicle"));
        }
        assert.equal(seen.size, 4, "each measure is another picture");
        await page.selectOption("#stacks", "churn");
        await settle(page);
        const icicle = await print(page, "#icicle");
        await page.selectOption("#shape", "flame");
        assert.equal((await hash(page)).shape, "flame");
        assert.notEqual(await print(page, "#icicle"), icicle);
        await page.selectOption("#shape", "icicle");
        await settle(page);
        await page.evaluate(() => document.activeElement.blur());
        assert.equal(await print(page, "#icicle"), icicle);
        await page.keyboard.press("1");
        await settle(page);
        const whole = await print(page, "#icicle");
        await page.keyboard.press("g");
        assert.equal((await hash(page)).fold, "0", "they were folded");
        assert.equal(await page.getAttribute("#fold", "aria-pressed"), "false");
        const all = await print(page, "#icicle");
        assert.notEqual(all, whole);
        await page.reload();
        await page.waitForSelector("html[data-ready]");
        await settle(page);
        assert.equal(await print(page, "#icicle"), all, "the link keeps it");
        await page.click("#fold");
        assert.equal((await hash(page)).fold, undefined);
    }));

test("growth is relative to the mark", () =>
    on(run, {}, async (page) => {
        await page.keyboard.press("4");
        for (let i = 0; i < 4; ++i) await page.keyboard.press("Shift+ArrowLeft");
        await page.keyboard.press("m");
        const { mark, cursor } = await hash(page);
        assert.equal(mark, cursor);
        assert.ok(
            (await share(page, "#chart + canvas", [0, 133, 122])) > 0.0001,
            "the mark is drawn",
        );
        await page.click("#stacks-table");
        assert.match(await text(page, "dialog"), /Stacks by growth since the mark\s+0 rows/);
        await page.click("#dialog-close");
        for (let i = 0; i < 4; ++i) await page.keyboard.press("Shift+ArrowRight");
        await settle(page);
        await page.click("#stacks-table");
        assert.match(await text(page, "dialog"), /[1-9][0-9]* rows/);
        await page.click("#dialog-close");
        await page.goto((await page.url()).replace(/mark=\d+/, "mark=1e99"));
        await page.reload();
        await page.waitForSelector("html[data-ready]");
    }));

test("search accepts expressions, explains errors in them, and marks the results", () =>
    on(run, { hash: "#stacks=live" }, async (page) => {
        const status = (expected) =>
            eventually(async () => assert.match(await text(page, "#status"), expected));
        await page.fill("#search", "/^samples\\.py:[0-9]+/");
        await status(/search "\/\^samples.*": [1-9][0-9,]* blocks/);
        await settle(page);
        assert.ok((await share(page, "#icicle", [0, 133, 122])) > 0.0003);
        await page.click("#fold");
        await status(/search "\/\^samples.*": [1-9][0-9,]* blocks/);
        await settle(page);
        assert.ok((await share(page, "#icicle", [0, 133, 122])) > 0.0003, "folded");
        await page.fill("#search", "/([/");
        await status(/search "\/\(\[\/": not a regular expression: /);
        await page.fill("#search", "/(?=samples)sam(p)les\\.(?<!x)\\1y/");
        await status(/": [1-9][0-9,]* blocks/);
    }));

// Tries every way to split a name: 2^39 ways for a name of 40 letters.
const endless = "/^(.+)+~$/";

test("an endless expression is stopped, and the page stays usable", () =>
    on(run, { hash: `#q=${encodeURIComponent(endless)}` }, async (page) => {
        await page.evaluate(() => {
            window.longest = 0;
            let last = performance.now();
            const look = (now) => {
                window.longest = Math.max(window.longest, now - last);
                last = now;
                requestAnimationFrame(look);
            };
            requestAnimationFrame(look);
        });
        await page.fill("#search", "");
        await page.fill("#search", endless);
        await page.evaluate(() => document.activeElement.blur());
        await settle(page);
        assert.match(await text(page, "#status"), /": searching\. cursor/);
        const before = (await hash(page)).cursor;
        await page.keyboard.press("ArrowLeft");
        assert.notEqual((await hash(page)).cursor, before);
        await eventually(async () =>
            assert.match(
                await text(page, "#status"),
                /": stopped after 2 s, the expression is too slow\. cursor/,
            ),
        );
        assert.ok((await page.evaluate(() => window.longest)) < 1500, "no frame takes seconds");
        await page.fill("#search", "samples.py");
        await settle(page);
        assert.match(await text(page, "#status"), /": [1-9][0-9,]* blocks/);
        await page.fill("#search", "/samples.py$|^samples/");
        await eventually(async () =>
            assert.match(await text(page, "#status"), /": [1-9][0-9,]* blocks/),
        );
        // The next search ends one that is still running, together with its time limit.
        await page.fill("#search", endless);
        await settle(page);
        await page.fill("#search", "/samples/");
        await eventually(async () =>
            assert.match(await text(page, "#status"), /": [1-9][0-9,]* blocks/),
        );
        await page.waitForTimeout(2500);
        assert.match(await text(page, "#status"), /"\/samples\/": [1-9][0-9,]* blocks/);
    }));

test("a search marks and counts every block that it finds", () =>
    on(pageFile("crowd"), { hash: "#cursor=300000000" }, async (page) => {
        const mark = [0, 133, 122];
        const lower = () =>
            page.evaluate(([r, g, b]) => {
                const canvas = document.querySelector("#map + canvas");
                const top = Math.floor(canvas.height * 0.8);
                const { data } = canvas
                    .getContext("2d")
                    .getImageData(70, top, canvas.width - 100, canvas.height - top);
                let near = 0;
                for (let i = 0; i < data.length; i += 4) {
                    if (
                        data[i + 3] > 60 &&
                        Math.abs(data[i] - r) +
                            Math.abs(data[i + 1] - g) +
                            Math.abs(data[i + 2] - b) <
                            24
                    ) {
                        ++near;
                    }
                }
                return near / (data.length / 4);
            }, mark);
        await page.keyboard.press("0");
        assert.equal(await lower(), 0);
        await page.fill("#search", "crowd.py");
        await eventually(async () =>
            assert.match(
                await text(page, "#status"),
                /search "crowd\.py": 300,000 blocks, [0-9.]+ GiB \([0-9,]+ B\) in the trace; [0-9,]+ blocks, [^;]* at the cursor/,
            ),
        );
        await settle(page);
        // The blocks with the highest addresses are the last ones of the file, and lie in the right
        // half.
        const all = await lower();
        assert.ok(all > 0.25, `${all}`);
        assert.ok((await share(page, "#segments + canvas", mark, 60)) > 0.1, "and in the segments");
        await page.fill("#search", "/layer199$/");
        await eventually(async () => {
            const found = Number(
                (await text(page, "#status"))
                    .match(/layer199\$\/"?: ([\d,]+) blocks/)[1]
                    .replaceAll(",", ""),
            );
            assert.ok(found > 1200 && found < 1800, `${found} of a two-hundredth`);
        });
        await settle(page);
        const few = await lower();
        assert.ok(few > 0 && few < all, `${few}`);
        await page.keyboard.press("Escape");
        await settle(page);
        assert.equal(await lower(), 0);
    }));

// Marks are drawn on a layer above the segments, so that nothing else is redrawn.
test("a search, a stack and a selection are marked on a layer above the segments", async () => {
    const mark = [0, 133, 122];
    for (const path of [run, pageFile("crowd")]) {
        await on(
            path,
            { hash: path === run ? "" : "#cursor=300000000&t0=0&t1=600000000" },
            async (page) => {
                const marked = () => share(page, "#segments + canvas", mark, 60);
                // A spot painted on the segments stays until they are redrawn.
                const drop = (colour) =>
                    page.evaluate((colour) => {
                        const context = document.querySelector("#segments").getContext("2d");
                        context.fillStyle = colour ?? "#0000";
                        context.fillRect(0, 0, 3, 3);
                        return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).join();
                    }, colour);
                assert.equal(await marked(), 0);
                assert.equal(await share(page, "#segments", mark), 0);
                // The line of status may need more room for a search, once.
                const words = path === run ? "Linear.__init__" : "crowd.py";
                await page.fill("#search", words);
                await settle(page);
                await page.fill("#search", "");
                await settle(page);
                await drop("rgb(1, 2, 3)");
                await page.fill("#search", words);
                await settle(page);
                assert.ok((await marked()) > 0.02, `${path}: a search`);
                assert.equal(await drop(), "1,2,3");
                await page.fill("#search", "");
                await settle(page);
                assert.equal(await marked(), 0);
                await page.evaluate(() => document.activeElement.blur());
                await page.keyboard.press("]");
                await settle(page);
                assert.match(await text(page, "#details"), /^Block/);
                const selected = await marked();
                assert.ok(
                    selected > 0 && selected < 0.02,
                    `${path}: a selected block, ${selected}`,
                );
                await page.keyboard.press("Escape");
                await settle(page);
                assert.equal(await marked(), 0);
                await drop("rgb(1, 2, 3)");
                await page.focus("#icicle");
                await page.keyboard.press("ArrowDown");
                await page.keyboard.press("Enter");
                await settle(page);
                assert.ok(Number((await hash(page)).stack) > 0);
                assert.ok((await marked()) > 0.0005, `${path}: a stack`);
                assert.equal(await drop(), "1,2,3");
                const saved = await download(page, () => page.click("#svg"));
                assert.match(saved.text, /#00857a/, "and they are in what is saved");
            },
        );
    }
});

test("a what-if row draws its replayed curve over the chart", () =>
    on(run, {}, async (page) => {
        const green = [26, 127, 55];
        assert.equal(await share(page, "#chart", green), 0);
        const row = page.locator("#whatif-list tbody tr").nth(1);
        await row.click();
        await settle(page);
        assert.equal((await hash(page)).whatif, "1");
        assert.equal(await row.getAttribute("aria-selected"), "true");
        assert.ok((await share(page, "#chart", green)) > 0.002);
        // 10 of 32 GiB in the first half of the run, 20 in the second.
        await page.keyboard.press("0");
        await settle(page);
        const heights = await page.evaluate(([r, g, b]) => {
            const canvas = document.querySelector("#chart");
            const context = canvas.getContext("2d");
            return [0.48, 0.7].map((x) => {
                const column = context.getImageData(
                    Math.round(64 + x * (canvas.width - 64 - 34)),
                    0,
                    1,
                    canvas.height,
                ).data; // margins of the plot
                for (let y = 20; y < canvas.height; ++y) {
                    if (
                        Math.abs(column[4 * y] - r) +
                            Math.abs(column[4 * y + 1] - g) +
                            Math.abs(column[4 * y + 2] - b) <
                        24
                    ) {
                        return y;
                    }
                }
                return -1;
            });
        }, green);
        assert.ok(heights[0] > heights[1] && heights[1] > 0, `${heights}`);
        await row.press("Enter");
        await settle(page);
        assert.equal(await share(page, "#chart", green), 0);
        await page.keyboard.press("v");
        assert.equal((await hash(page)).whatif, "1");
        await page.keyboard.press("v");
        assert.equal((await hash(page)).whatif, undefined);
    }));

test("lanes and markers have names", () =>
    on(run, {}, async (page) => {
        await page.keyboard.press("0");
        await settle(page);
        // The failure came after the last step. At 50 ms the run was within a step.
        assert.match(await text(page, "#status"), /^cursor [0-9.]+ ms: /);
        await page.evaluate(
            () => (location.hash = location.hash.replace(/cursor=\d+/, "cursor=50000000")),
        );
        await settle(page);
        assert.match(
            await text(page, "#status"),
            /^cursor 50(\.0+)? ms in (forward|backward <b>pass<\/b>|step \d+): /,
        );
        const box = await page.locator("#chart").boundingBox();
        const tip = async (x, y) => {
            await page.mouse.move(x, y);
            await page.mouse.move(x + 1, y);
            return page.locator("#tip").innerText();
        };
        // without the names at the left and the state at the cursor at the right
        const plot = box.width - 64 - 34;
        const middle = box.x + 64 + plot / 2;
        const above = new Set();
        for (let x = middle - 12; x < middle + 6; x += 2) above.add(await tip(x, box.y + 18));
        assert.ok(
            [...above].some((text) => /: 12 cudaMallocs <script>$/.test(text)),
            [...above].join(),
        );
        above.clear();
        for (let x = box.x + 64 + plot / 3 - 12, end = x + 20; x < end; x += 2) {
            above.add(await tip(x, box.y + 18));
        }
        assert.ok(
            [...above].some((text) => /: empty_cache$/.test(text)),
            [...above].join(),
        );
        assert.match(await tip(middle, box.y + box.height - 16 - 13 - 6), /^step \d+\n/);
        const names = new Set();
        for (let x = middle; x < middle + 60; x += 1) {
            names.add((await tip(x, box.y + box.height - 16 - 6)).split("\n")[0]);
        }
        names.delete(""); // between two ranges
        assert.deepEqual([...names].sort(), ["backward <b>pass</b>", "forward"]);
        assert.match(await tip(middle, box.y + 60), /up to .* reserved/);
    }));

test("the hover text in a zoomed window has the figures of the drawn pixel", () =>
    on(run, {}, async (page) => {
        await page.evaluate(() => (location.hash = "#t0=60000000&t1=60200000&cursor=60000000"));
        await settle(page);
        const box = await page.locator("#chart").boundingBox();
        const figures = new Set();
        for (let part = 0.1; part < 1; part += 0.1) {
            const [x, y] = [box.x + 64 + (box.width - 98) * part, box.y + 60];
            await page.mouse.move(x, y);
            const tip = await text(page, "#tip");
            if (tip.includes("mean over this pixel")) continue;
            const [, requested, held, reserved] =
                /\n(.*) requested, (.*) in holes, .* releasable; (?!up to)(.*) reserved$/.exec(tip);
            await page.mouse.click(x, y);
            await settle(page);
            const status = await text(page, "#status");
            for (const part of [`: ${requested} requested, `, `; ${held} in holes, `]) {
                assert.ok(status.includes(part), `${tip}, but after a click ${status}`);
            }
            assert.ok(status.includes(` ${reserved} reserved; `), `${tip}, then ${status}`);
            figures.add(requested + held);
        }
        assert.ok(figures.size > 2, "the memory changes in this window");
    }));

test("the hover text follows the view while the pointer rests", () =>
    on(run, {}, async (page) => {
        await page.keyboard.press("0");
        await settle(page);
        const chart = await page.locator("#chart").boundingBox();
        await page.mouse.move(chart.x + 64 + (chart.width - 98) * 0.9, chart.y + 60);
        const before = await text(page, "#tip");
        assert.match(before, / reserved$/);
        for (let i = 0; i < 4; ++i) await page.keyboard.press("a");
        await page.keyboard.press("w");
        await settle(page);
        assert.notEqual(await text(page, "#tip"), before, "the window moved");

        const map = await page.locator("#map").boundingBox();
        const middle = map.y + map.height / 2;
        await page.mouse.move(map.x + map.width / 2, middle);
        await page.mouse.move(map.x + map.width - 13, middle);
        const atCursor = await text(page, "#tip");
        assert.notEqual(atCursor, "");
        for (let i = 0; i < 12; ++i) await page.keyboard.press("Shift+ArrowLeft");
        await settle(page);
        assert.notEqual(await text(page, "#tip"), atCursor, "the cursor moved");

        for (const [x, y] of [
            [map.x + 30, middle],
            [map.x + map.width / 2, map.y + map.height - 5],
        ]) {
            await page.mouse.move(x, y);
            assert.equal(await page.isVisible("#tip"), false, "over the labels of the axes");
        }
    }));

test("a category has one colour in the bar and in the pictures", () =>
    changedPage(
        run,
        ({ devices: [device] }) => {
            device.categories = ["gradients", "parameters"];
            const stack = Array.from({ length: 60 }, (_, node) => node);
            device.stack_categories = { stack, category: stack.map((node) => node % 2) };
            device.cards[0].categories = ["gradients", "other", "parameters"].map((name) => ({
                name,
                bytes: 1,
                note: "",
            }));
            device.cards[0].holders ??= [];
        },
        (path) =>
            on(path, { hash: "#card=0&colour=category" }, async (page) => {
                const colours = (legend) =>
                    page.$$eval(`${legend} > span`, (entries) =>
                        Object.fromEntries(
                            entries.map((entry) => [
                                entry.textContent.replace(/ [\d.]+ B$/, ""),
                                entry.querySelector("i").style.background,
                            ]),
                        ),
                    );
                const bar = await colours("#culprits .legend");
                const map = await colours("#map-legend");
                for (const name of ["other", "parameters", "gradients"]) {
                    assert.ok(map[name], `${name} is in the legend of the map`);
                    assert.equal(bar[name], map[name], name);
                }
            }),
    ));

test("the colour of blocks is chosen for all pictures of addresses, and free memory has none", () =>
    on(board, { hash: "#culprit=-1" }, async (page) => {
        const orange = [242, 140, 28];
        const pictures = ["#segments", "#map ~ .over"];
        for (const picture of pictures) assert.ok((await share(page, picture, orange)) > 0.001);
        const before = await Promise.all(pictures.map((picture) => print(page, picture)));
        await page.selectOption("#colour", "stack");
        await settle(page);
        for (const [at, picture] of pictures.entries()) {
            assert.notEqual(await print(page, picture), before[at], picture);
            assert.ok((await share(page, picture, orange)) < 0.0005, picture);
        }
        assert.doesNotMatch(await text(page, "#map-legend"), /hole|cached/);
    }));

test("only the left button moves the cursor, and a drag ends without its last event", () =>
    on(run, {}, async (page) => {
        await page.keyboard.press("0");
        await page.keyboard.press("w");
        for (const picture of ["#chart", "#map"]) {
            const box = await page.locator(picture).boundingBox();
            const [x, y] = [box.x + box.width / 3, box.y + 60];
            const before = await hash(page);
            for (const button of ["right", "middle"]) {
                await page.mouse.move(x, y);
                await page.mouse.down({ button });
                await page.mouse.move(x + 40, y);
                await page.mouse.up({ button });
            }
            assert.deepEqual(await hash(page), before, picture);
            await page.mouse.move(x, y);
            await page.mouse.down();
            await page.mouse.move(x + 40, y);
            const { t0 } = await hash(page);
            assert.notEqual(t0, before.t0, "dragging pans");
            await page.$eval(
                picture,
                (canvas, clientX) =>
                    canvas.dispatchEvent(new PointerEvent("pointermove", { clientX, buttons: 0 })),
                x + 200,
            );
            assert.equal((await hash(page)).t0, t0, "the button was released elsewhere");
            await page.mouse.up();
        }
    }));

test("a zoom into addresses alone says how to see all", () =>
    on(run, {}, async (page) => {
        await page.keyboard.press("0");
        await settle(page);
        assert.equal(await text(page, "#window"), "");
        await page.keyboard.press("W");
        await settle(page);
        assert.match(
            await text(page, "#window"),
            /^[\d.]+ GiB of [\d.]+ GiB of addresses; press 0 to see all$/,
        );
    }));

test("the text about the window has room on a small screen", () =>
    on(run, { width: 320 }, async (page) => {
        await page.keyboard.press("0");
        await page.keyboard.press("w");
        await settle(page);
        const { width, height } = await page.locator("#window").boundingBox();
        assert.ok(width > 200 && height < 40, `${width} x ${height}`);
    }));

test("a long name of a phase is cut in the status line and in the hover text", () =>
    changedPage(
        run,
        ({ devices }) => {
            devices[0].phase_names = devices[0].phase_names.map(() => "phase ".repeat(500));
        },
        (path) =>
            on(path, { hash: "#cursor=50000000" }, async (page) => {
                assert.match(await text(page, "#status"), / in phase phase [a-z ]+…: /);
                const { height } = await page.locator("#status").boundingBox();
                assert.ok(height < 60, `${height}`);
                await page.keyboard.press("0");
                const box = await page.locator("#chart").boundingBox();
                await page.mouse.move(box.x + box.width / 2, box.y + box.height - 16 - 6);
                assert.match(await text(page, "#tip"), /^phase .{20,120}…\n/);
            }),
    ));

test("no change of size makes the browser report a loop", () =>
    on(run, {}, async (page) => {
        await page.evaluate(() => {
            window.loops = 0;
            addEventListener("error", () => ++window.loops);
        });
        for (let i = 0; i < 20; ++i) {
            const [width, height] = [300 + ((i * 397) % 1300), 200 + ((i * 211) % 900)];
            await page.setViewportSize({ width, height });
            await page.keyboard.press(["a", "w", "e", "n"][i % 4]);
            await settle(page);
        }
        assert.equal(await page.evaluate(() => window.loops), 0);
    }));

test("moments of a block are told apart, with their digits in hover text and table", () =>
    on(run, {}, async (page) => {
        // Many short blocks, late in the run.
        await page.evaluate(() => (location.hash = "#t0=60000000&t1=60200000&cursor=60100000"));
        await settle(page);
        const map = await page.locator("#map").boundingBox();
        await page.mouse.move(map.x + map.width / 2, map.y + map.height / 2);
        assert.match(await text(page, "#tip"), /(allocated at|free for) [\d.]+/);
        await page.click("#map-table");
        const shown = await page.$$eval("#dialog .datatable:last-of-type tbody tr", (rows) =>
            rows.map(({ cells }) => [cells[2].title, cells[2].textContent]),
        );
        const moments = new Map(shown);
        assert.ok(moments.size > 5, `${moments.size}`);
        assert.equal(new Set(moments.values()).size, moments.size);
    }));

test("blocks have seven colour modes, and the legend names the mode", () =>
    on(run, {}, async (page) => {
        const maps = new Set([await print(page, "#map")]);
        for (const by of ["age", "phase", "stream", "pool", "category", "stack"]) {
            await page.keyboard.press("c");
            await settle(page);
            assert.equal((await hash(page)).colour, by);
            assert.match(await text(page, "#map-mode"), new RegExp(`coloured by ${by}`));
            maps.add(await print(page, "#map"));
            const legend = await text(page, "#map-legend");
            if (by === "phase") assert.match(legend, /forward/);
            if (by === "stack") {
                assert.match(legend, /samples\.py:33 SampleCache\.add|model\.py:\d+ Layer/);
            }
            if (by === "age") assert.match(legend, /never freed/);
        }
        // The run has one stream and one pool, so these two look the same.
        assert.equal(maps.size, 5);
        await page.keyboard.press("c");
        assert.equal((await hash(page)).colour, undefined);
        assert.match(await text(page, "#map-legend"), /hole/);
    }));

// They are sorted and drawn in steps. Until then the pictures stay as they are.
test("300,000 blocks change their colours, on the map and in full segments", () =>
    on(pageFile("crowd"), { hash: "#cursor=300000000&t0=0&t1=600000000" }, async (page) => {
        const pictures = async () => [await print(page, "#map"), await print(page, "#segments")];
        const shows = (mode) =>
            eventually(async () => assert.equal(await text(page, "#map-mode"), mode));
        await shows("shares of area per pixel");
        const state = await pictures();
        const seen = new Set(state);
        for (const by of ["age", "stack"]) {
            await page.selectOption("#colour", by);
            await shows(`coloured by ${by}, mixed by area`);
            for (const picture of await pictures()) {
                assert.ok(!seen.has(picture), `coloured by ${by}`);
                seen.add(picture);
            }
        }
        await page.selectOption("#colour", "state");
        await shows("shares of area per pixel");
        assert.deepEqual(await pictures(), state);
    }));

test("a block's details show its life and link to other blocks at its bytes", () =>
    on(board, {}, async (page) => {
        // The left half of the first segment: a freed block of "scratch".
        await page.keyboard.press("0");
        await page.goto(
            (await page.url()).replace(/cursor=\d+/, "cursor=20000000") + "&selected=0",
        );
        await page.reload();
        await page.waitForSelector("html[data-ready]");
        await page.waitForSelector("#details:not([hidden])");
        assert.match(
            await text(page, "#details"),
            /allocated[^]*freed[^]*after[^]*reused by\s+no block before the end of the trace/,
        );
        await page.keyboard.press("z");
        const zoomed = await hash(page);
        assert.ok(Number(zoomed.a1) - Number(zoomed.a0) < 30 * 2 ** 20);
        await page.keyboard.press("]");
        assert.notEqual((await hash(page)).selected, "0");
        await page.keyboard.press("Escape");
        assert.equal(await page.locator("#details").isVisible(), false);
    }));

test("reused memory can be followed from block to block", () =>
    on(run, { hash: "#selected=200" }, async (page) => {
        await page.waitForSelector("#details:not([hidden])");
        const next = page.locator("#details dd button").last();
        const name = await next.getAttribute("title");
        assert.match(name, /select block [\d,]+/);
        await next.click();
        assert.equal((await hash(page)).selected, name.match(/[\d,]+/)[0].replaceAll(",", ""));
    }));

test("play moves the cursor until a key, or one step with reduced motion", async () => {
    await on(run, {}, async (page) => {
        await page.keyboard.press("0");
        await page.evaluate(() => document.activeElement.blur());
        const start = await hash(page);
        const before = await text(page, "#status");
        await page.keyboard.press(" ");
        assert.equal(await page.getAttribute("#play", "aria-pressed"), "true");
        await eventually(async () => assert.notEqual(await text(page, "#status"), before));
        await page.keyboard.press("Escape");
        const stopped = await hash(page);
        assert.equal(await page.getAttribute("#play", "aria-pressed"), "false");
        assert.ok(
            Number(stopped.cursor) > Number(start.cursor),
            `from ${start.cursor} to ${stopped.cursor}`,
        );
        assert.ok(Number(stopped.cursor) < Number(stopped.t1), "it was stopped on its way");
        await page.waitForTimeout(300);
        assert.equal((await hash(page)).cursor, stopped.cursor);
    });
    await on(run, {}, async (page) => {
        await page.emulateMedia({ reducedMotion: "reduce" });
        await page.keyboard.press("0");
        const start = await hash(page);
        await page.click("#play");
        const moved = await hash(page);
        assert.equal(await page.getAttribute("#play", "aria-pressed"), "false");
        // A twentieth of the window.
        assert.ok(
            Math.abs(
                Number(moved.cursor) -
                    Number(start.cursor) -
                    (Number(start.t1) - Number(start.t0)) / 20,
            ) < 2,
            `from ${start.cursor} to ${moved.cursor}`,
        );
        assert.equal((await hash(page)).cursor, moved.cursor, "and rests there");
    });
});
