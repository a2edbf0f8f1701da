// Without the pictures, without a pointer, and to take along: tables, exports, keys, sizes of windows.
// FRAGTRACE_PAGES holds pages of made-up data.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch } from "./browser.mjs";
import { download, hash, settle, text, visit } from "./look.mjs";

const pages = process.env.FRAGTRACE_PAGES;
const run = join(pages, "run.html");
let browser;
before(async () => (browser = await launch()));
after(async () => browser.close());
const on = (path, options, look) => visit(browser, path, options, look);

test("the table of stacks adds up to the totals in the status line, whatever is measured", () => on(run, {}, async (page) => {
    const total = async (id) => {
        await page.click(`#${id}-table`);
        const sum = await page.$$eval(".datatable:first-child tbody td:first-child", (cells) => cells.reduce((bytes, cell) => bytes + Number(cell.title), 0));
        await page.click("#dialog-close");
        return sum;
    };
    await page.click("#chart-table");
    const memory = Object.fromEntries(await page.$$eval(".datatable:first-child tbody tr", (rows) => rows.map((row) => [row.cells[0].textContent, Number(row.cells[1].title)])));
    await page.click("#dialog-close");
    assert.equal(memory.requested + memory["rounding and slack"] + memory["waiting for streams"] + memory["holes held open"] + memory["cached, releasable"], memory["reserved (sum)"]);
    await page.selectOption("#stacks", "live");
    await settle(page);
    assert.equal(await total("stacks"), memory["reserved (sum)"] - memory["holes held open"] - memory["cached, releasable"]);
    await page.selectOption("#stacks", "holes");
    await settle(page);
    assert.equal(await total("stacks"), memory["holes held open"]);
}));

test("tables behind every picture: sorted by a column, copied, saved as CSV", () => on(run, {}, async (page, context) => {
    await context.grantPermissions(["clipboard-read", "clipboard-write"]).catch(() => undefined);
    for (const id of ["chart", "map", "segments", "stacks", "whatif", "culprits"]) {
        await page.click(`#${id}-table`);
        assert.ok(await page.locator("dialog .datatable tbody tr").count() > 0, id);
        assert.equal(await page.locator("dialog img, dialog script, dialog b, dialog i").count(), 0);
        await page.click("#dialog-close");
    }
    await page.click("#map-table");
    const sizes = () => page.$$eval("dialog tbody td:first-child", (cells) => cells.map((cell) => Number(cell.title)));
    await page.click("dialog th:first-child .sort");
    const down = await sizes();
    assert.deepEqual(down, [...down].sort((a, b) => b - a));
    assert.equal(await page.getAttribute("dialog th:first-child", "aria-sort"), "descending");
    await page.click("dialog th:first-child .sort");
    const up = await sizes();
    assert.deepEqual(up, [...up].sort((a, b) => a - b));
    const saved = await download(page, () => page.click("dialog .headline button:has-text('CSV')"));
    assert.match(saved.name, /^fragtrace-blocks-at-.*\.csv$/);
    const lines = saved.text.trimEnd().split("\r\n");
    assert.equal(lines[0], "size,address,born,freed,state,stream,line");
    assert.match(await text(page, "dialog .faint"), new RegExp(`^${(lines.length - 1).toLocaleString("en-US")} rows`));
    await page.click("dialog .headline button:has-text('copy')");
    await settle(page);
    assert.match(await text(page, "dialog .faint"), /copied/);
}));

test("the SVG holds vectors and escaped text, and is well formed", () => on(run, { hash: "#stacks=live" }, async (page) => {
    const saved = await download(page, () => page.click("#svg"));
    assert.equal(saved.name, "fragtrace.svg");
    const problem = await page.evaluate((text) => {
        const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
        return parsed.querySelector("parsererror")?.textContent ?? (parsed.querySelector("script, foreignObject, img") ? "has markup of the trace" : null);
    }, saved.text);
    assert.equal(problem, null);
    assert.match(saved.text, /keep&lt;img src=x|Linear\.__init__/);
    assert.ok((saved.text.match(/<path /g) ?? []).length >= 6);
    assert.equal((saved.text.match(/<image /g) ?? []).length, 1);
    const image = await download(page, () => page.keyboard.press("i"));
    assert.equal(image.name, "fragtrace.png");
}));

test("everything can be done from the keyboard, and the help lists it", () => on(run, {}, async (page) => {
    await page.keyboard.press("?");
    const help = await text(page, "dialog");
    for (const key of ["space", "[", "z", "m", "c", "f", "g", "v", "i", "I"]) assert.ok(help.split(/\s+/).includes(key), key);
    await page.keyboard.press("Escape");
    // Tab reaches every control and picture that is shown.
    const wanted = await page.$$eval("button, select, input, canvas[tabindex], summary, tr[tabindex]", (all) => all.filter((element) => element.offsetParent !== null).length);
    await page.evaluate(() => document.activeElement.blur());
    const reached = new Set();
    for (let i = 0; i < wanted + 4; ++i) {
        await page.keyboard.press("Tab");
        reached.add(await page.evaluate(() => {
            const all = [...document.querySelectorAll("button, select, input, canvas[tabindex], summary, tr[tabindex]")];
            return all.indexOf(document.activeElement);
        }));
    }
    reached.delete(-1);
    assert.equal(reached.size, wanted);
    // In the stacks arrows walk boxes, say which, and Enter marks.
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

test("wall displays and narrow windows: nothing outside, no empty pictures", async () => {
    for (const [width, height] of [[1024, 768], [1440, 900], [2560, 1440], [3840, 2160]]) {
        await on(run, { width, height, hash: "#selected=200&colour=stack" }, async (page) => {
            const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
            assert.ok(over <= 0, `${over} pixels too wide at ${width}`);
            const hidden = await page.evaluate(() => {
                const bottom = document.getElementById("main").getBoundingClientRect().bottom;
                return [...document.querySelectorAll("main > section")].filter((section) => section.getBoundingClientRect().bottom > bottom + 1).map((section) => section.id);
            });
            assert.deepEqual(hidden, [], `below the status line at ${width}`);
            for (const id of ["chart", "map", "segments", "icicle"]) {
                const box = await page.locator("#" + id).boundingBox();
                assert.ok(box.height > 60 && box.width > 300, `${id} at ${width}: ${box.width} x ${box.height}`);
            }
            const overlaps = await page.evaluate(() => ["verdict", "culprits", "time", "addresses", "segments-panel", "stacks-panel", "side"].filter((id, i, all) => {
                const a = document.getElementById(id).getBoundingClientRect();
                return all.slice(i + 1).some((other) => {
                    const b = document.getElementById(other).getBoundingClientRect();
                    return a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
                });
            }));
            assert.deepEqual(overlaps, []);
        });
    }
});
