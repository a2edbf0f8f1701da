// The page as a person uses it, in a real browser. FRAGTRACE_PAGES holds pages of made-up data.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { open } from "./browser.mjs";
import {
    changedPage,
    eventually,
    hash,
    pageFile,
    settle,
    share as shareNear,
    sharedBrowser,
    text,
    visit,
} from "./look.mjs";

const board = pageFile("checkerboard");
const run = pageFile("run");
const shared = sharedBrowser();
const on = (path, options, look) => visit(shared.browser, path, options, look);
const share = (page, selector, colour, reach = 40) => shareNear(page, selector, colour, reach);
const orange = [242, 140, 28];
const plum = [74, 6, 51];

test("a page without a device shows what the report says about the process", () =>
    changedPage(
        board,
        (data) => {
            data.devices = [];
            data.processes[0].lines = [
                { label: "memory", text: "This process allocated no GPU memory." },
                { label: "failed", text: "cudaMalloc <failed>" },
            ];
        },
        (path) =>
            on(path, {}, async (page) => {
                const shown = await text(page, "body");
                for (const part of [
                    "This process allocated no GPU memory.",
                    "cudaMalloc <failed>",
                ]) {
                    assert.ok(shown.includes(part), shown);
                }
                assert.doesNotMatch(shown, /cannot be shown|search/);
            }),
    ));

test("the page opens with the verdict, its four bars and the blocking lines", () =>
    on(board, {}, async (page) => {
        assert.equal(await page.getAttribute("html", "data-blocks"), "188");
        const verdict = await text(page, "#verdict");
        for (const part of [
            "OOM",
            "Out of memory despite free memory",
            "requested",
            "512 MiB",
            "free, in holes",
            "940 MiB",
            "largest free block",
            "10 MiB",
            "free on the device",
            "20 MiB",
        ]) {
            assert.ok(verdict.includes(part), `${part} in: ${verdict}`);
        }
        const widths = await page.$$eval(".fill", (bars) =>
            bars.map((bar) => parseFloat(bar.style.width)),
        );
        assert.deepEqual(widths.map(Math.round), [54, 100, 1, 2]);
        assert.match(await text(page, "#culprits"), /940 MiB\s+940 MiB\s+94\s+fragment.py:11 keep/);
        assert.match(await text(page, "#status"), /94 blocks in 94 segments/);
        assert.match(await text(page, "#status"), /940 MiB in holes, 0 B releasable/);
        assert.match(await text(page, "#totals"), /985,613,312 B/);
    }));

test("the pictures show orange holes and plum blocking blocks without distortion", () =>
    on(board, {}, async (page) => {
        const segments = await share(page, "#segments", orange);
        assert.ok(segments > 0.15 && segments < 0.5, `orange of the segments ${segments}`);
        const pins = await share(page, "#segments", plum);
        assert.ok(pins > 0.2 && pins < 0.5, `plum of the segments ${pins}`);
        assert.ok((await share(page, "#chart", orange)) > 0.005);
        for (const id of ["chart", "map", "segments", "icicle"]) {
            const fits = await page.evaluate((id) => {
                const canvas = document.getElementById(id);
                const box = canvas.getBoundingClientRect();
                return (
                    Math.abs(canvas.width - box.width * devicePixelRatio) <= 1 &&
                    Math.abs(canvas.height - box.height * devicePixelRatio) <= 1 &&
                    box.height > 60
                );
            }, id);
            assert.ok(fits, id);
        }
    }));

test("the map explains its colours and shows the cache", () =>
    on(run, {}, async (page) => {
        assert.equal(await text(page, "#map-mode"), "shares of area per pixel");
        const exact = await share(page, "#map", [243, 234, 208], 30);
        assert.ok(exact > 0.02, `cached ${exact}`);
    }));

test("keys move, zoom, step, search and switch views", () =>
    on(run, {}, async (page) => {
        await page.keyboard.press("0");
        const start = await hash(page);
        await page.keyboard.press("ArrowLeft");
        const moved = await hash(page);
        assert.ok(Number(moved.cursor) < Number(start.cursor));
        await page.keyboard.press("w");
        const zoomed = await hash(page);
        assert.ok(Number(zoomed.t1) - Number(zoomed.t0) < Number(start.t1) - Number(start.t0));
        await page.keyboard.press("a");
        assert.ok(Number((await hash(page)).t0) < Number(zoomed.t0));
        await page.keyboard.press("d");
        await page.keyboard.press("W");
        assert.ok(Number((await hash(page)).a1) < Number(start.a1));
        await page.keyboard.press("0");
        const whole = await hash(page);
        assert.deepEqual([whole.t0, whole.t1, whole.a1], [start.t0, start.t1, start.a1]);
        await page.keyboard.press("n");
        assert.equal((await hash(page)).cursor, start.cursor);
        await page.keyboard.press("t");
        await page.waitForSelector('html[data-theme="dark"]');
        await page.keyboard.press("/");
        assert.equal(await page.evaluate(() => document.activeElement.id), "search");
        await page.keyboard.type("samples.py");
        await settle(page);
        assert.match(await text(page, "#status"), /search "samples.py": [1-9][0-9,]* blocks/);
        await page.keyboard.press("Escape");
        await page.keyboard.press("?");
        assert.ok(await page.locator("dialog").isVisible());
        assert.match(await text(page, "dialog"), /cursor back/);
    }));

test("a click selects a block everywhere and shows its life and stack", () =>
    on(board, {}, async (page) => {
        const box = await page.locator("#segments").boundingBox();
        // The first segment: its left half is a hole, its right half is a block that blocks the
        // hole's release.
        const x = await page.evaluate(([r, g, b]) => {
            const canvas = document.querySelector("#segments");
            const row = canvas.getContext("2d").getImageData(0, 25, canvas.width, 1).data;
            for (let x = 6; x < canvas.width; ++x) {
                if (
                    [r, g, b].every(
                        (value, i) =>
                            Math.abs(row[4 * (x - 3) + i] - value) +
                                Math.abs(row[4 * x + i] - value) <
                            8,
                    )
                ) {
                    return x;
                }
            }
            return -1;
        }, plum);
        await page.mouse.click(box.x + x, box.y + 25);
        await page.waitForSelector("#details:not([hidden])");
        const details = await text(page, "#details");
        for (const part of [
            "not before the end",
            "fragment.py:11 keep",
            "fragment.py:20 main",
            "requested 10,485,248 B",
        ]) {
            assert.ok(details.includes(part), `${part} in: ${details}`);
        }
        await page.click('#details button[aria-label="close block details"]');
        await page.waitForSelector("#details", { state: "hidden" });
        const map = await page.locator("#map").boundingBox();
        await page.mouse.click(map.x + map.width / 2, map.y + 20);
        await page.waitForSelector("#details:not([hidden])");
        assert.ok(Number((await hash(page)).selected) >= 0);
    }));

test("tables explain their columns and mark the recorded row and rows with retries", () =>
    on(run, {}, async (page) => {
        for (const table of ["#culprits-list", "#whatif-list"]) {
            const titles = await page.$$eval(`${table} th`, (heads) =>
                heads.map((head) => head.title),
            );
            assert.ok(
                titles.length >= 4 && titles.every((title) => title.length > 8),
                `${table}: ${titles}`,
            );
        }
        assert.deepEqual(
            await page.$$eval("#culprits-list table:first-of-type th", (heads) =>
                heads.slice(0, 5).map((head) => head.textContent),
            ),
            ["blocked", "live bytes", "blocks", "allocated at", "age of oldest"],
        );
        const rows = await page.$$eval("#whatif-list tbody tr", (lines) =>
            lines.map((line) => line.innerText.replace(/\s+/g, " ")),
        );
        assert.match(
            rows[0],
            /^as recorded: default settings ✗ 1 OOM exact 31 GiB 6 GiB 1 GiB 1,108/,
        );
        assert.match(rows[1], /✓ fits estimate 26 GiB 1 GiB 0 B 214/);
        assert.match(await text(page, "#whatif"), /exact\s.*at least\s.*estimate\s/s);
        assert.match(await text(page, "#verdict"), /Requested by model.py:40 Layer3.forward/);
        await page.keyboard.press("?");
        for (const word of [
            "hole",
            "releasable",
            "blocked memory",
            "retry",
            "exact",
            "at least",
            "estimate",
        ]) {
            assert.ok((await text(page, "dialog")).includes(word), word);
        }
    }));

test("events are counted, and a zero has no bar", () =>
    on(pageFile("two"), { hash: "#device=1" }, async (page) => {
        assert.match(await text(page, "#verdict"), /NEAR MISS.*peak, 2 of 2/s);
        const filled = await page.$$eval("#verdict .track", (tracks) =>
            tracks.map((track) => track.querySelectorAll(".fill").length),
        );
        assert.deepEqual(filled, [1, 0, 1]);
        const ends = await page.$$eval("#verdict .fill", (bars) =>
            bars.map((bar) =>
                [parseFloat(bar.style.left), parseFloat(bar.style.width)].map(Math.round),
            ),
        );
        assert.deepEqual(
            ends,
            [
                [0, 25],
                [25, 75],
            ],
            "parts of a whole follow each other",
        );
        await page.keyboard.press("p");
        await settle(page);
        assert.match(await text(page, "#verdict"), /RETRY.*event 1 of 2/s);
    }));

test("a click on a blocking line marks only its blocks", () =>
    on(run, {}, async (page) => {
        const rows = page.locator("#culprits tbody tr");
        const before = await share(page, "#segments", plum);
        // In this made-up run only the blocks of the first row are named.
        await rows.nth(1).click();
        await settle(page);
        assert.ok(before > 0.005);
        assert.equal(await share(page, "#segments", plum), 0, "none of another row");
        await rows.first().click();
        await settle(page);
        assert.equal(
            await page.locator("#culprits tbody tr").first().getAttribute("aria-selected"),
            "true",
        );
        assert.equal(await share(page, "#segments", plum), before);
        assert.ok(
            (await share(page, "#icicle", [0, 133, 122])) > 0.01,
            "its stack is marked in the icicle",
        );
        await page.locator("#culprits tbody tr").first().press("Enter");
        await settle(page);
        assert.equal(
            await page.locator("#culprits tbody tr").first().getAttribute("aria-selected"),
            "false",
        );
        assert.equal(await share(page, "#segments", plum), before, "and all of them again");
    }));

test("a link shows the sender's view, a broken one the default view", async () => {
    await on(
        run,
        { hash: "#t0=1000000&t1=9000000&cursor=2000000&q=metrics&theme=dark&stacks=live" },
        async (page) => {
            const now = await hash(page);
            assert.deepEqual(
                [now.t0, now.t1, now.cursor, now.q, now.stacks],
                ["1000000", "9000000", "2000000", "metrics", "live"],
            );
            assert.equal(await page.getAttribute("html", "data-theme"), "dark");
            assert.equal(await page.inputValue("#search"), "metrics");
        },
    );
    await on(
        run,
        { hash: "#t0=NaN&t1=-5&cursor=1e300&selected=99999999&device=77&card=55&%%%" },
        async (page) => {
            assert.match(await text(page, "#verdict"), /OOM/);
            assert.equal(await page.locator("#details").isVisible(), false);
        },
    );
});

test("names from the trace are text, never markup", () =>
    on(run, {}, async (page) => {
        assert.equal(await page.locator("img").count(), 0);
        assert.match(await text(page, "#run"), /NVIDIA H100 <b>80GB<\/b>/);
        assert.equal(
            await page.getAttribute("#run", "title"),
            "python train.py --config </script><script>alert(1)</script>",
        );
        await page.selectOption("#stacks", "live");
        await page.click("#stacks-table");
        assert.match(await text(page, "dialog"), /Linear.__init__/);
        assert.equal(await page.locator("dialog img").count(), 0);
    }));

test("the page's security policy blocks a foreign script or image", async () => {
    const folder = mkdtempSync(join(tmpdir(), "fragtrace-page-"));
    const path = join(folder, "foreign.html");
    const pixel = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==";
    writeFileSync(
        path,
        readFileSync(board, "utf8").replace(
            '<div id="app">',
            `<script>document.title = "taken"</script><img id="foreign" src="${pixel}"><div id="app">`,
        ),
    );
    const { page, problems } = await open(shared.browser, path);
    assert.equal(await page.title(), "fragment.py - fragtrace");
    assert.ok(
        problems.some((text) => /script/.test(text) && /Content Security Policy/.test(text)),
        problems.join(),
    );
    // The page shows no image. Even an image inside the file is not allowed.
    assert.ok(
        problems.some((text) => /image/.test(text) && /Content Security Policy/.test(text)),
        problems.join(),
    );
    assert.equal(await page.$eval("#foreign", (image) => image.naturalWidth), 0);
    rmSync(folder, { recursive: true });
});

test("a file cut off at any place says so", async () => {
    const folder = mkdtempSync(join(tmpdir(), "fragtrace-page-"));
    const whole = readFileSync(board, "utf8");
    const places = {
        header: whole.indexOf("ft-header") + 800,
        map: whole.indexOf('id="ft-0-map"') + 500,
        blocks: whole.indexOf('id="ft-0-blocks-0"') + 300,
        end: whole.indexOf('id="ft-end"') - 8,
        script: whole.indexOf("<script>") + 200,
    };
    for (const [name, at] of Object.entries(places)) {
        const path = join(folder, `${name}.html`);
        writeFileSync(path, whole.slice(0, at));
        const context = await shared.browser.newContext();
        const page = await context.newPage();
        await page.goto(`file://${path}`);
        await eventually(async () => assert.match(await text(page, "#plain"), /cut off/, name));
        assert.equal(await page.getAttribute("html", "data-ready"), null, name);
        await context.close();
    }
    rmSync(folder, { recursive: true });
});

test("data left out of the file is announced", () =>
    on(pageFile("cut-down"), {}, async (page) => {
        assert.equal(await page.getAttribute("html", "data-blocks"), "1000");
        assert.match(
            await text(page, "#count"),
            /1,000 blocks \([0-9,]+ more, [0-9.]+ [GT]iB, left out\)/,
        );
        assert.match(
            await text(page, "#notes"),
            /leaves out [0-9,]+ blocks, [0-9.]+ [GT]iB in all, that lived at most .* every total include them/s,
        );
    }));

test("segments left out of the file are announced, and the rest of the page is whole", () =>
    on(pageFile("few-segments"), {}, async (page) => {
        const left =
            /leaves out 54 segments .* in all, that lived at most .* and the blocks in them/;
        assert.match(await text(page, "#notes"), left);
        assert.match(await text(page, "#count"), /^80 blocks \(108 more, .* left out\)$/);
        assert.match(
            await text(page, "#status"),
            /40 blocks in 40 segments, without those that the file leaves out \(108 blocks, 54 segments/,
        );
        // The verdict is about all of them, and so is the overview.
        assert.match(await text(page, "#verdict"), /940 MiB is free inside reserved segments/);
        for (const key of ["w", "w", "d", "0", "n"]) await page.keyboard.press(key);
        await page.locator("#segments").click({ position: { x: 30, y: 30 } });
        await settle(page);
        assert.match(await text(page, "#details"), /fragment\.py:11 keep/);
    }));

test("the selector shows the second device with its pages, pools and pending blocks", () =>
    on(pageFile("two"), {}, async (page) => {
        assert.equal(await page.getAttribute("html", "data-blocks"), "190");
        assert.match(
            await text(page, "#program-pools"),
            /Pools of the program\s+frames \(other, device 0\)/,
        );
        await page.selectOption("#device", "1");
        await page.waitForFunction(() => location.hash.includes("device=1"));
        assert.match(await text(page, "#verdict"), /Retry/);
        assert.match(
            await text(page, "#culprits"),
            /Live memory by line[^]*holder <i>one<\/i>[^]*parameters[^]*and 3 more lines: 7 MiB/,
        );
        assert.match(await text(page, "#status"), /in 5 segments/);
        // Ticks of 10 ns: at 3 s the second block is freed but waits for another stream.
        await page.goto((await page.url()).replace(/cursor=\d+/, "cursor=300000000"));
        await page.reload();
        await page.waitForSelector("html[data-ready]");
        await page.waitForFunction(() =>
            /reserved/.test(document.querySelector("#status").textContent),
        );
        // Pages 0 and 1 have 10 MiB of holes, page 2 has 15 MiB, page 3 is free, and the private
        // pool keeps its 20 MiB.
        assert.match(
            await text(page, "#status"),
            /30 MiB allocated, 5 MiB pending, 100 MiB reserved; 45 MiB in holes, 20 MiB releasable/,
        );
    }));

test("every control has a name, and the pictures have tables", () =>
    on(run, {}, async (page) => {
        const nameless = await page.$$eval(
            "button, select, input, canvas:not([aria-hidden])",
            (elements) =>
                elements
                    .filter(
                        (element) =>
                            !(
                                element.getAttribute("aria-label") ||
                                element.textContent.trim() ||
                                element.labels?.length
                            ),
                    )
                    .map((element) => element.outerHTML),
        );
        assert.deepEqual(nameless, []);
        for (const [id, expected] of [
            ["chart-table", /reserved \(sum\)/],
            ["segments-table", /Holes at the cursor/],
            ["stacks-table", /blocked free memory/],
        ]) {
            await page.click("#" + id);
            assert.match(await text(page, "dialog"), expected);
            await page.click("#dialog-close");
        }
    }));

test("the picture can be saved as a file", () =>
    on(board, {}, async (page) => {
        const [download] = await Promise.all([page.waitForEvent("download"), page.click("#png")]);
        assert.equal(download.suggestedFilename(), "fragtrace.png");
    }));

test("the page fits into 1024 pixels, in light and in dark", async () => {
    for (const scheme of ["light", "dark"]) {
        await on(run, { width: 1024, height: 768, scheme }, async (page) => {
            assert.equal(await page.getAttribute("html", "data-theme"), scheme);
            const over = await page.evaluate(
                () => document.documentElement.scrollWidth - innerWidth,
            );
            assert.ok(over <= 0, `${over} pixels too wide`);
        });
    }
});

test("no title or button of a panel sticks out at any width", () =>
    on(run, {}, async (page) => {
        for (const width of [320, 390, 500, 640, 768, 900, 1000, 1024, 1100, 1200, 1440]) {
            await page.setViewportSize({ width, height: 900 });
            await settle(page);
            const out = await page.evaluate(() =>
                [...document.querySelectorAll("#addresses > *, .bar > *, .headline > *")]
                    .filter((child) => {
                        const box = child.getBoundingClientRect();
                        const { left, right } = child.parentElement.getBoundingClientRect();
                        return box.width > 0 && (box.left < left - 1 || box.right > right + 1);
                    })
                    .map((child) => child.id || child.className || child.tagName),
            );
            assert.deepEqual(out, [], `${width} pixels`);
        }
    }));
