// The card of a hole. FRAGTRACE_PAGES holds pages of made-up data.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
    accessProblems,
    drawnText,
    eventually,
    hash,
    pageFile,
    settle,
    share,
    text,
    visitor,
} from "./look.mjs";

const run = pageFile("run");
const board = pageFile("checkerboard");
const teal = [0, 133, 122];
const on = visitor();

test("a hole has its size, age, neighbours, what to free, and the request that failed", () =>
    on(board, {}, async (page) => {
        assert.equal(await page.locator("#hole").isVisible(), false);
        await page.keyboard.press("h");
        const { hole } = await hash(page);
        assert.ok(Number(hole) >= 0);
        const card = await drawnText(page, "#hole");
        // A segment of 20 MiB: its left half is free, a block of "keep" is in its right half.
        for (const part of [
            /^Hole · 10 MiB\s*10,485,248 B at 0x/,
            /free for\s+[\d.]+ (us|ms|s), since/,
            /before it\s+the end of the segment/,
            /after it\s+10 MiB\s*fragment\.py:11 keep; without it 20 MiB are free/,
            /to be freed\s+1 block, 10 MiB: then the segment of 20 MiB can be returned/,
            /failed\s+512 MiB at .*\s*out of memory: the hole had 10 MiB then, too small/,
        ]) {
            assert.match(card, part);
        }
        for (const picture of ["#segments", "#map"]) {
            assert.ok((await share(page, `${picture} + canvas`, teal)) > 0.0001, picture);
        }
        // The neighbour is a block to go to, and the hole stays in the link.
        await page.reload();
        await page.waitForSelector("html[data-ready]");
        await settle(page);
        await eventually(async () => assert.equal(await drawnText(page, "#hole"), card));
        await page.click('#hole dd button:has-text("10 MiB") >> nth=-1');
        assert.equal((await hash(page)).hole, undefined);
        assert.match(await drawnText(page, "#details"), /fragment\.py:11 keep/);
    }));

test("over a hole, both pictures give its size and its age before its address", async () => {
    await on(board, {}, async (page) => {
        await page.keyboard.press("h");
        const card = await drawnText(page, "#hole");
        const age = /free for\s+([\d.]+ (?:us|ms|s)), since/.exec(card)[1];
        const segments = await page.locator("#segments").boundingBox();
        await page.mouse.move(segments.x + 4, segments.y + 25);
        assert.match(
            await text(page, "#tip"),
            new RegExp(`^hole of 10 MiB, free for ${age} \\(0x[0-9a-f]+\\)$`),
        );
    });
    await on(run, {}, async (page) => {
        const map = await page.locator("#map").boundingBox();
        const tipAt = async (y) => {
            await page.mouse.move(map.x + map.width - 10, map.y + y); // the column "at cursor"
            return text(page, "#tip");
        };
        await page.keyboard.press("h");
        const size = /^Hole · (.*)/.exec(await drawnText(page, "#hole"))[1];
        const { hole } = await hash(page);
        const link = (await page.url()).replace(/&a[01]=[^&]*/g, "");
        await page.goto(`${link}&a0=${hole}&a1=${Number(hole) + 4096}`);
        await settle(page);
        const tip = await tipAt(map.height / 2);
        assert.match(tip, /^hole of .* MiB, free for [\d.]+ (us|ms|s) \(0x[0-9a-f]+\)$/);
        assert.ok(tip.startsWith(`hole of ${size}`), size);
    });
});

test("a click on a hole selects it, keys step through holes by size", () =>
    on(run, {}, async (page) => {
        const sizes = [];
        for (const key of ["h", "h", "h", "H", "H"]) {
            await page.keyboard.press(key);
            await settle(page);
            sizes.push((await drawnText(page, "#hole")).match(/^Hole · .*\s*([\d,]+) B at/)[1]);
        }
        assert.deepEqual(sizes.slice(3), [sizes[1], sizes[0]]);
        const bytes = sizes.map((size) => Number(size.replaceAll(",", "")));
        assert.ok(bytes[0] >= bytes[1] && bytes[1] >= bytes[2]);
        await page.click('#hole [title="close this card"]');
        assert.equal((await hash(page)).hole, undefined);
        assert.equal(await page.locator("#hole").isVisible(), false);
        const box = await page.locator("#segments").boundingBox();
        await page.mouse.click(box.x + 30, box.y + 25); // the worst segment begins with a hole
        await settle(page);
        assert.match(await drawnText(page, "#hole"), /^Hole · /);
        assert.equal(await page.locator("#details").isVisible(), false);
        // Where memory is in use, there is no card.
        await page.goto((await page.url()).replace(/hole=\d+/, "hole=99999999999"));
        await settle(page);
        assert.equal(await page.locator("#hole").isVisible(), false);
        await page.keyboard.press("Escape");
    }));

test("axe finds nothing with every card open", async () => {
    const link =
        "#r0=20000000&r1=40000000&s0=50000000&s1=60000000&selected=200&whatif=1&culprit=0&q=main&zoom=2";
    for (const [width, scheme] of [
        [1400, "light"],
        [390, "dark"],
    ]) {
        await on(run, { width, height: 960, scheme, hash: link }, async (page) => {
            await page.keyboard.press("h");
            await settle(page);
            for (const id of ["range", "hole", "details"]) {
                assert.ok(await page.locator(`#${id}`).isVisible(), id);
            }
            assert.deepEqual(await accessProblems(page), []);
        });
    }
});

test("the card fits on a narrow screen, in both themes", async () => {
    for (const scheme of ["light", "dark"]) {
        await on(board, { width: 390, height: 844, scheme }, async (page) => {
            await page.keyboard.press("h");
            await settle(page);
            assert.ok(await page.locator("#hole").isVisible());
            const over = await page.evaluate(
                () => document.documentElement.scrollWidth - innerWidth,
            );
            assert.ok(over <= 0, `${over} pixels too wide`);
        });
    }
});
