// Terms of a search that look at blocks: marks, numbers, tables, sums and links.
//
// FRAGTRACE_PAGES holds pages of made-up data.
import assert from "node:assert/strict";
import { test } from "node:test";
import { drawnText, eventually, hash, pageFile, print, settle, visitor } from "./look.mjs";

const run = pageFile("run");
const many = pageFile("many");
const on = visitor();

const matches = (status) =>
    /search ".*": ([\d,]+) blocks?, .* in the trace; ([\d,]+) blocks?, /
        .exec(status)
        .slice(1)
        .map((count) => Number(count.replaceAll(",", "")));

async function searched(page, query) {
    await page.fill("#search", query);
    await settle(page);
    return drawnText(page, "#status");
}

test("matches are counted on the open device", async () => {
    const query = "size>0";
    await on(pageFile("two"), {}, async (page) => {
        assert.match(await searched(page, query), /^search "size>0": .* on this device; /);
    });
    await on(run, {}, async (page) => {
        assert.match(await searched(page, query), /^search "size>0": .* in the trace; /);
    });
});

test("terms about size and lifetime choose blocks, in tables as well", () =>
    on(run, {}, async (page) => {
        const [all] = matches(await searched(page, "size>0"));
        const before = await print(page, "#segments + canvas");
        const [large, largeAtCursor] = matches(await searched(page, "size>1MiB"));
        const [others] = matches(await searched(page, "size<=1MiB"));
        assert.ok(large > 0 && others > 0);
        assert.equal(large + others, all);
        assert.notEqual(await print(page, "#segments + canvas"), before, "fewer blocks are marked");
        await searched(page, "size>1MiB");
        await page.click("#map-table");
        const tables = await page.$$eval(".datatable", (found) =>
            found.map((table) => ({
                title: table.querySelector("h2").textContent,
                first: [...table.querySelectorAll("tbody tr")].map((row) =>
                    Number(row.cells[0].title),
                ),
                bars: [...table.querySelectorAll("td:nth-child(3) .amount-bar")].map(({ style }) =>
                    parseFloat(style.width),
                ),
                third: [...table.querySelectorAll("tbody tr")].map((row) =>
                    Number(row.cells[2].title),
                ),
            })),
        );
        const [blocks, sizes, window] = tables;
        for (const { title } of tables) assert.match(title, /that match "size>1MiB"/);
        assert.equal(blocks.first.length, Math.min(500, largeAtCursor));
        for (const size of [...blocks.first, ...window.first]) assert.ok(size > 1 << 20);
        assert.match(sizes.title, /^Sizes of the blocks at /);
        assert.equal(
            sizes.third.reduce((sum, count) => sum + count, 0),
            largeAtCursor,
        );
        // The longest bar is that of the size with most blocks, the others are in proportion.
        const most = Math.max(...sizes.third);
        assert.equal(sizes.bars.length, sizes.third.length);
        sizes.bars.forEach((width, at) =>
            assert.ok(Math.abs(width - (100 * sizes.third[at]) / most) < 0.01, `${width} %`),
        );
        assert.deepEqual(blocks.bars, []);
    }));

test("terms go with text, are kept in the link, and are explained if they are wrong", () =>
    on(run, {}, async (page) => {
        const [both] = matches(await searched(page, "freed:never train.py"));
        const [text] = matches(await searched(page, "train.py"));
        const [never] = matches(await searched(page, "freed:never"));
        assert.ok(both > 0 && both <= text && both <= never);
        await searched(page, "/train\\.py/ freed:never");
        await eventually(async () =>
            assert.deepEqual(matches(await drawnText(page, "#status"))[0], both),
        );
        const query = (await hash(page)).q;
        await page.reload();
        await page.waitForSelector("html[data-ready]");
        assert.equal((await hash(page)).q, query);
        await eventually(async () =>
            assert.deepEqual(matches(await drawnText(page, "#status"))[0], both),
        );
        assert.match(await searched(page, "size>big"), /size: "big" is not like 1MiB/);
        assert.match(await searched(page, "foo:bar"), /"foo:" is no term; terms are size, age/);
        assert.match(await searched(page, "label:x"), /the trace has no label|no label has "x"/);
        assert.match(await searched(page, "pool:nonsense"), /no pool has "nonsense".*there are/);
    }));

test("only matches: the stacks have the bytes of the chosen blocks", () =>
    on(run, { hash: "#stacks=churn" }, async (page) => {
        const total = async () => {
            await page.focus("#icicle");
            await page.keyboard.press("ArrowUp");
            return drawnText(page, "#status");
        };
        const all = await total();
        await searched(page, "size>1MiB");
        await page.click("#only");
        await settle(page);
        const large = await total();
        assert.notEqual(large, all);
        await searched(page, "size<=1MiB");
        assert.notEqual(await total(), large);
        await searched(page, "");
        assert.equal(await total(), all);
    }));

test("among many blocks the matches arrive later", () =>
    on(many, {}, async (page) => {
        await page.fill("#search", "size>0");
        await eventually(async () => {
            const [found] = matches(await drawnText(page, "#status"));
            assert.ok(found > 100_000, `${found} blocks`);
        });
    }));
