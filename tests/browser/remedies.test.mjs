// What a reader does next: copies a setting or a command, goes to the blocks that block free
// memory, and from an allocation to its free.
//
// FRAGTRACE_PAGES holds pages of made-up data.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
    changedPage,
    drawnText,
    eventually,
    hash,
    pageFile,
    settle,
    text,
    visitor,
} from "./look.mjs";

const run = pageFile("run");
const board = pageFile("checkerboard");
const on = visitor();

const setting = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
const trying = "fragtrace try train.4711.ftrace --remedy 1";

/** Clicks a button that copies, and returns what it copied. */
async function copied(page, selector) {
    await page.evaluate(() => {
        window.copied = "";
        Object.defineProperty(navigator, "clipboard", {
            configurable: true,
            value: { writeText: async (copied) => void (window.copied = copied) },
        });
    });
    await page.click(selector);
    return eventually(async () => {
        const text = await page.evaluate(() => window.copied);
        assert.notEqual(text, "");
        return text;
    });
}

for (const [width, scheme] of [
    [1400, "light"],
    [390, "dark"],
]) {
    test(`a row of what if has its cost, and commands to copy, at ${width} pixels`, () =>
        on(run, { width, height: 960, scheme }, async (page) => {
            const row = page.locator("#whatif-list tbody tr").nth(1);
            assert.match(await row.innerText(), /cost: none/);
            assert.match(await page.innerText("#whatif-list"), /compact\s+no allocator does this/);
            assert.equal(await page.locator("#whatif-list tr.below").count(), 0);
            await row.click();
            await settle(page);
            const below = page.locator("#whatif-list tr.below");
            assert.match(await below.innerText(), /setting\s+PYTORCH[^]*try it\s+fragtrace try/);
            const button = (name) => `#whatif-list [aria-label="copy the ${name}"]`;
            assert.equal(await copied(page, button("setting")), setting);
            assert.equal(await copied(page, button("try it")), trying);
            assert.match(await drawnText(page, "#status"), /copied/);
            assert.equal((await hash(page)).whatif, "1", "the row stays chosen");
            assert.equal(
                await copied(page, '#verdict [aria-label="copy the setting"]'),
                setting,
                "the verdict's change",
            );
            const over = await page.evaluate(
                () => document.documentElement.scrollWidth - innerWidth,
            );
            assert.ok(over <= 0, `${over} pixels too wide`);
            await row.click();
            await settle(page);
            assert.equal(await below.count(), 0);
        }));
}

test("the chosen row of what if and the focus survive a link and a key", () =>
    on(run, { hash: "#whatif=1" }, async (page) => {
        assert.equal(await page.locator("#whatif-list tr.below").count(), 1);
        const row = page.locator("#whatif-list tbody tr").nth(1);
        await row.focus();
        await page.keyboard.press("Enter");
        await settle(page);
        await page.keyboard.press("Enter");
        await settle(page);
        assert.equal((await hash(page)).whatif, "1");
        assert.equal(await row.evaluate((element) => element === document.activeElement), true);
    }));

test("a line that blocks free memory leads to its largest blocks", () =>
    on(board, {}, async (page) => {
        const rows = page.locator("#culprits tbody tr");
        await rows.first().click();
        await settle(page);
        const buttons = page.locator("#culprits tr.below button");
        assert.equal(await buttons.count(), 4);
        assert.match(await buttons.first().innerText(), /^10 MiB at /);
        await buttons.first().click();
        await settle(page);
        assert.match(await drawnText(page, "#details"), /^Block [\d,]+ · 10 MiB/);
        assert.match(await drawnText(page, "#details"), /fragment\.py:11 keep/);
        assert.equal((await hash(page)).culprit, "0", "its blocks stay marked");
    }));

test("from an allocation to its free, and back", () =>
    on(run, { hash: "#selected=200&cursor=0" }, async (page) => {
        await page.keyboard.press("b");
        const born = await hash(page);
        assert.ok(Number(born.cursor) > 0);
        await page.keyboard.press("b");
        const freed = await hash(page);
        assert.ok(Number(freed.cursor) > Number(born.cursor));
        await page.keyboard.press("b");
        assert.equal((await hash(page)).cursor, born.cursor);
        const times = page.locator("#details dd button");
        await times.nth(1).click();
        assert.equal((await hash(page)).cursor, freed.cursor);
        // A window elsewhere follows.
        await page.goto((await page.url()).replace(/t0=\d+&t1=\d+/, "t0=100000000&t1=110000000"));
        await settle(page);
        await page.keyboard.press("b");
        const moved = await hash(page);
        assert.equal(moved.cursor, born.cursor);
        assert.ok(Number(moved.t0) <= Number(moved.cursor));
        assert.ok(Number(moved.t1) >= Number(moved.cursor));
        await page.keyboard.press("Escape");
        await page.keyboard.press("b");
        assert.match(await drawnText(page, "#status"), /select a block first/);
    }));

test("what a what-if row costs needs few lines, and its name has room", () =>
    changedPage(
        run,
        ({ devices }) => {
            const [, ...rows] = devices[0].whatif;
            rows[0].usable = false;
            for (const row of rows) {
                row.cost =
                    "11 more cudaMallocs or maps, 19 more synchronisations, " +
                    "calls of empty_cache() in the program";
            }
        },
        async (path) => {
            for (const [width, most] of [
                [1440, 2],
                [820, 2],
                [390, 3],
            ]) {
                await on(path, { width }, async (page) => {
                    const { names, lines, chosen } = await page.evaluate(() => {
                        const list = document.getElementById("whatif-list");
                        const width16 = (cell) => {
                            const sixteen = document.createElement("span");
                            sixteen.textContent = "0".repeat(16);
                            sixteen.style.position = "absolute";
                            cell.append(sixteen);
                            const { width } = sixteen.getBoundingClientRect();
                            sixteen.remove();
                            return width;
                        };
                        const costs = [...list.querySelectorAll(".cost")];
                        const lineOf = (cost) => {
                            const range = document.createRange();
                            range.selectNodeContents(cost);
                            return new Set([...range.getClientRects()].map(({ top }) => top)).size;
                        };
                        const said = list.querySelector("tr.said");
                        said.click();
                        return {
                            names: [...list.querySelectorAll("tbody td.wrap")].map(
                                (cell) => cell.getBoundingClientRect().width / width16(cell),
                            ),
                            lines: Math.max(...costs.map(lineOf)),
                            chosen: said.previousElementSibling.textContent,
                        };
                    });
                    assert.match(await text(page, "#whatif-list"), /not usable/, `at ${width}`);
                    assert.ok(lines <= most, `${lines} lines at ${width}`);
                    assert.ok(Math.min(...names) >= 1, `${Math.min(...names)} at ${width}`);
                    const row = page.locator('#whatif-list tr[aria-selected="true"]');
                    assert.equal(await row.textContent(), chosen, "a click on the cost chooses");
                });
            }
        },
    ));
