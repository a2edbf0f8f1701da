// The page that compares two runs: its first screen, and the ways from there into both runs.
// FRAGTRACE_PAGES holds runs.html.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch } from "./browser.mjs";
import { drawnText, eventually, hash, print, settle, share, text, visit } from "./look.mjs";

const runs = join(process.env.FRAGTRACE_PAGES, "runs.html");
let browser;
before(async () => (browser = await launch()));
after(async () => browser.close());
const on = (options, look) =>
    visit(browser, runs, options, async (page, context) => {
        await page.waitForSelector("#runs-box:not([hidden])");
        await settle(page);
        await look(page, context);
    });
/** The data of a page, as it is in the file. */
function header(path) {
    const html = readFileSync(path, "utf8");
    return JSON.parse(/id="ft-header">(.*?)<\/script>/s.exec(html)[1]);
}

const spoken = async (page, selector) => (await text(page, selector)).replace(/\s+/g, " ");

test("the first screen says what differs, without scrolling", () =>
    on({ width: 1440, height: 960 }, async (page) => {
        assert.match(
            await text(page, "#comparison h2"),
            /^B reserves 1\.2 GiB more than A at its peak .*SampleCache\.add holds 800 MiB more/,
        );
        const right = await spoken(page, "#runs-right");
        assert.match(right, /verdict No failed request OOM ?Out of memory despite free memory/);
        assert.match(right, /peak reserved 29\.8 GiB 31 GiB \+1\.2 GiB/);
        assert.match(right, /Steps on gpu0: A 10, B 10; first difference in the 3rd: made up A B/);
        assert.match(right, /requests no more B/, "run A has no such place");
        assert.match(right, /log <i>x<\/i> 3 1 GiB -> 2 GiB 2 GiB 0 B/);
        assert.match(right, /save only in A/);
        assert.match(right, /command_line python train\.py python train\.py --log '<\/script>'/);
        assert.equal(
            await page.locator("#comparison b:not(.letter), #comparison i:not([class])").count(),
            0,
        );
        const rows = await page.locator("#runs-lines tbody tr").allInnerTexts();
        assert.equal(rows.length, 8);
        assert.match(rows[0], /^\+800 MiB\s+0 B\s+800 MiB\s+samples\.py:33 SampleCache\.add/);
        assert.match(rows[1], /^-96 MiB/);
        assert.match(await text(page, "#runs-lines"), /and 3 more: see the table/);
        for (const id of ["comparison-title", "runs-chart", "runs-right"]) {
            const box = await page.locator("#" + id).boundingBox();
            assert.ok(box.y + Math.min(box.height, 100) < 960, id);
        }
    }));

test("the chart has the curves of both runs, in both themes, by step and by time", () =>
    on({}, async (page) => {
        const dash = () => share(page, "#runs-chart", [0x1f, 0x5f, 0xae], 60);
        const solid = () => share(page, "#runs-chart", [0xb3, 0x47, 0x00], 60);
        assert.ok((await dash()) > 0.001 && (await solid()) > 0.002);
        const byStep = await print(page, "#runs-chart");
        assert.match(await text(page, "#runs-at"), /^Cursor: step \d+\. A: at most .* B: at most/);
        await page.selectOption("#runs-axis", "time");
        assert.equal((await hash(page)).axis, "time");
        assert.notEqual(await print(page, "#runs-chart"), byStep);
        assert.match(await text(page, "#runs-at"), /^Cursor: [\d.]+ m?s\. A: at most/);
        await page.keyboard.press("t");
        await settle(page);
        assert.equal(await dash(), 0);
        assert.ok((await share(page, "#runs-chart", [0xff, 0x9d, 0x4d], 60)) > 0.002);
    }));

test("switching the run keeps the step, the marked line and the link", () =>
    on({}, async (page) => {
        assert.match(await text(page, "#own-title"), /^Run B · GPU 0/);
        await page.locator("#runs-lines tbody tr").nth(1).click();
        await settle(page);
        const before = await hash(page);
        const place = await text(page, "#runs-at");
        await page.click("#switch-run");
        await eventually(async () =>
            assert.match(await text(page, "#own-title"), /^Run A · GPU 0/),
        );
        await settle(page);
        const there = await hash(page);
        assert.notEqual(there.device, before.device);
        assert.equal(there.line, before.line);
        assert.ok(Number(there.cursor) > Number(before.cursor), "run A is slower");
        assert.equal(/step \d+/.exec(await text(page, "#runs-at"))[0], /step \d+/.exec(place)[0]);
        assert.equal(await text(page, "#switch-run"), "show B");
        await page.keyboard.press("q");
        await eventually(async () => assert.match(await text(page, "#own-title"), /^Run B/));
        const back = await hash(page);
        assert.equal(back.device, before.device);
        assert.ok(Math.abs(Number(back.cursor) - Number(before.cursor)) <= 2);
    }));

test("a line of the table marks its blocks at the peak, and shows its stacks", () =>
    on({}, async (page) => {
        const row = page.locator("#runs-lines tbody tr").first();
        await row.focus();
        await page.keyboard.press("Enter");
        await settle(page);
        assert.equal(await row.getAttribute("aria-selected"), "true");
        const below = await spoken(page, "#runs-lines tr.below");
        assert.match(below, /In A this line is samples\.py:31 SampleCache\.add\./);
        assert.match(below, /\+800 MiB \(0 B → 800 MiB\): samples\.py:33 .* ‹ train\.py:318/);
        assert.ok(Number((await hash(page)).line) > 0);
        await page.keyboard.press("Enter");
        assert.equal((await hash(page)).line, undefined);
        await page.click("#runs-lines .headline button");
        assert.equal(await page.locator("dialog tbody tr").count(), 11);
    }));

test("a place where the runs differ opens in either run, as a range of time", () =>
    on({ width: 1024, height: 768 }, async (page) => {
        await page.locator(".places li").first().getByRole("button", { name: "A" }).click();
        await eventually(async () => assert.match(await text(page, "#own-title"), /^Run A/));
        await settle(page);
        const { comparison, devices } = header(runs);
        const ticks = comparison.places[0].times_ns[0].map((ns) =>
            Math.floor(ns / devices[comparison.devices[0].devices[0]].tick_ns),
        );
        const { r0, r1, cursor } = await hash(page);
        assert.deepEqual([r0, r1, cursor].map(Number), [...ticks, ticks[0]]);
        assert.match(await text(page, "#range"), /change of allocated memory/);
        assert.equal(await page.evaluate(() => document.activeElement.id), "own-title");
        const own = await page.locator("#own").boundingBox();
        assert.ok(own.y >= 0 && own.y < 300, `on the screen: ${own.y}`);
        assert.equal(await drawnText(page, "#to-overview"), "back to the comparison");
        await page.click("#to-overview");
        const first = await page.locator("#comparison").boundingBox();
        assert.ok(first.y >= 0 && first.y < 300);
    }));

test("a click in the chart moves the cursor of the open run there", () =>
    on({}, async (page) => {
        const before = Number((await hash(page)).cursor);
        const box = await page.locator("#runs-chart").boundingBox();
        await page.mouse.move(box.x + box.width / 3, box.y + 80);
        assert.match(await text(page, "#tip"), /^step \d+\. A: at most .* reserved; B: at most/);
        await page.mouse.click(box.x + box.width / 3, box.y + 80);
        assert.ok(Number((await hash(page)).cursor) < before);
    }));

test("the pictures are saved with that of both runs", () =>
    on({}, async (page) => {
        const [saved] = await Promise.all([
            page.waitForEvent("download"),
            page.keyboard.press("I"),
        ]);
        assert.match(readFileSync(await saved.path(), "utf8"), /Memory of both runs/);
    }));

test("on paper the comparison is complete and has no controls", () =>
    on({ scheme: "dark" }, async (page) => {
        await page.emulateMedia({ media: "print" });
        await page.setViewportSize({ width: 760, height: 1000 });
        await settle(page);
        assert.ok((await share(page, "#runs-chart", [255, 255, 255])) > 0.1);
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(over <= 0, `${over} pixels too wide`);
        assert.equal(await page.locator("#comparison button:visible").count(), 0);
    }));

test("nothing is cut off, and axe finds nothing, from a telephone to a wide screen", async () => {
    const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
    for (const [width, scheme] of [
        [390, "light"],
        [1024, "light"],
        [1440, "dark"],
    ]) {
        await on({ width, scheme }, async (page) => {
            await page.locator("#runs-lines tbody tr").first().click();
            await settle(page);
            const { over, cut } = await page.evaluate(() => ({
                over: document.documentElement.scrollWidth - innerWidth,
                cut: [...document.querySelectorAll("#comparison, #comparison > *, header")]
                    .filter((place) => place.scrollWidth > place.clientWidth + 1)
                    .map((place) => place.id || place.tagName),
            }));
            assert.ok(over <= 0, `${over} pixels too wide at ${width}`);
            assert.deepEqual(cut, [], `at ${width}`);
            await page.evaluate(axe);
            const { violations } = await page.evaluate(() => window.axe.run());
            assert.deepEqual(
                violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]),
                [],
            );
        });
    }
});
