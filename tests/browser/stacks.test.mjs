// The panel of stacks: its shapes, zoom, search within it, and copied stacks.
//
// FRAGTRACE_PAGES holds pages of made-up data.
import assert from "node:assert/strict";
import { test } from "node:test";
import { drawnText, eventually, hash, pageFile, print, settle, visitor } from "./look.mjs";

const run = pageFile("run");
const on = visitor();

/** The label of the box that the keys of the panel reach, as the status line says it. */
async function boxAfter(page, ...keys) {
    await page.focus("#icicle");
    for (const key of keys) await page.keyboard.press(key);
    return drawnText(page, "#status");
}

const size = / ([\d.]+ (?:B|[KMGT]iB))/;
const nameOf = (label) => label.split(size)[0];
const bytesOf = (label) => label.match(size)[1];

test("the stacks have four shapes, chosen by list and key, and kept in the link", () =>
    on(run, { hash: "#stacks=churn" }, async (page) => {
        const seen = new Set([await print(page, "#icicle")]);
        for (const shape of ["flame", "bottom-up", "callers"]) {
            await page.keyboard.press("f");
            assert.equal((await hash(page)).shape, shape);
            assert.equal(await page.inputValue("#shape"), shape);
            seen.add(await print(page, "#icicle"));
        }
        assert.equal(seen.size, 4, "each is another picture");
        const around = await print(page, "#icicle");
        await page.reload();
        await page.waitForSelector("html[data-ready]");
        await settle(page);
        assert.equal(await print(page, "#icicle"), around);
        await page.selectOption("#shape", "icicle");
        assert.equal((await hash(page)).shape, undefined);
    }));

test("bottom-up, the lines that allocate come first and their callers below", () =>
    on(run, { hash: "#stacks=live&shape=bottom-up" }, async (page) => {
        const line = await boxAfter(page, "ArrowDown");
        // Names follow the way from the allocation to its callers.
        assert.match(line, /^(model|metrics|samples)\.py:\d+ .* ‹ train\.py:318 main/);
        await page.keyboard.press("Enter");
        const { stack } = await hash(page);
        assert.ok(Number(stack) > 0);
        const marked = await print(page, "#segments + canvas");
        await page.keyboard.press("Enter");
        await settle(page);
        assert.notEqual(await print(page, "#segments + canvas"), marked, "its blocks are marked");
        // The same line in the other tree has another number: the mark does not move to a stranger.
        await page.keyboard.press("Enter");
        await page.selectOption("#shape", "icicle");
        assert.equal((await hash(page)).stack, undefined);
    }));

test("a line of the verdict is marked in every shape", () =>
    on(run, {}, async (page) => {
        for (const shape of ["icicle", "bottom-up"]) {
            await page.selectOption("#shape", shape);
            await settle(page);
            const plain = await print(page, "#icicle");
            await page.locator("#culprits tbody tr").first().click();
            await settle(page);
            assert.notEqual(await print(page, "#icicle"), plain, shape);
            await page.locator("#culprits tbody tr").first().click();
            await settle(page);
        }
    }));

test("a box is zoomed into by a double click or a key, and out again", () =>
    on(run, { hash: "#stacks=churn" }, async (page) => {
        const whole = await print(page, "#icicle");
        assert.equal(await page.locator("#zoom-out").isVisible(), false);
        const second = await boxAfter(page, "ArrowDown", "ArrowDown");
        await page.keyboard.press("Shift+Enter");
        const { zoom } = await hash(page);
        assert.ok(Number(zoom) > 0);
        assert.notEqual(await print(page, "#icicle"), whole);
        // The box now has the first row and the whole width.
        assert.ok((await boxAfter(page, "ArrowUp", "ArrowUp")).startsWith(nameOf(second)));
        await page.keyboard.press("Backspace");
        assert.equal((await hash(page)).zoom, undefined);
        const box = await page.locator("#icicle").boundingBox();
        await page.mouse.dblclick(box.x + 20, box.y + 19 * 1.5);
        assert.ok(Number((await hash(page)).zoom) > 0);
        await page.click("#zoom-out");
        assert.equal((await hash(page)).zoom, undefined);
        assert.equal(await page.locator("#zoom-out").isVisible(), false);
    }));

test("only the stacks that match a search are drawn, with their callers", () =>
    on(run, { hash: "#stacks=churn" }, async (page) => {
        assert.equal(await page.locator("#only").isVisible(), false);
        const total = async () => bytesOf(await boxAfter(page, "ArrowUp"));
        const all = await total();
        await page.fill("#search", "Layer3.forward");
        await settle(page);
        const marks = await print(page, "#icicle");
        await page.click("#only");
        assert.equal((await hash(page)).only, "1");
        assert.notEqual(await print(page, "#icicle"), marks);
        assert.notEqual(await total(), all);
        assert.match(await boxAfter(page, "ArrowDown"), /train\.py:318 main/, "the callers stay");
        await page.click("#stacks-table");
        const rows = await page.$$eval(".datatable:first-child tbody tr", (found) =>
            found.map((row) => row.textContent),
        );
        assert.ok(rows.length > 0 && rows.every((row) => row.includes("Layer3.forward")));
        await page.click("#dialog-close");
        await page.fill("#search", "");
        await settle(page);
        assert.equal(await total(), all, "without a search all are drawn");
    }));

test("callers and callees of a frame: a click goes to another frame", () =>
    on(run, { hash: "#stacks=churn" }, async (page) => {
        // The frame of the marked box.
        await boxAfter(page, "ArrowDown", "ArrowDown");
        await page.keyboard.press("Enter");
        await page.selectOption("#shape", "callers");
        const chosen = await hash(page);
        assert.ok(Number(chosen.frame) > 0);
        const first = await boxAfter(page, "ArrowLeft");
        assert.match(first, /^train\.py:201 step .*: allocated in the window/);
        await boxAfter(page, "ArrowUp");
        await page.keyboard.press("Enter");
        const caller = await hash(page);
        assert.notEqual(caller.frame, chosen.frame);
        await settle(page);
        assert.match(await boxAfter(page, "ArrowLeft"), /^train\.py:318 main .*: allocated/);
        await page.goto((await page.url()).replace(/frame=\d+/, "frame=0"));
        await page.reload();
        await page.waitForSelector("html[data-ready]");
        assert.match(await boxAfter(page, "ArrowUp"), /no bytes of no stack recorded/);
    }));

test("a stack is copied, with one line per frame", () =>
    on(run, { hash: "#stacks=churn" }, async (page) => {
        await page.evaluate(() =>
            Object.defineProperty(navigator, "clipboard", {
                value: { writeText: async (copied) => void (window.copied = copied) },
            }),
        );
        const copied = () =>
            eventually(() =>
                page.evaluate(() => {
                    const { copied } = window;
                    if (!copied) throw new Error("nothing copied");
                    window.copied = "";
                    return copied;
                }),
            );
        await page.keyboard.press("y");
        assert.match(
            await drawnText(page, "#status"),
            /mark a box of the stacks or select a block/,
        );
        await boxAfter(page, "ArrowDown", "ArrowDown", "ArrowDown");
        await page.keyboard.press("Enter");
        await settle(page);
        await page.click("#stack-copy");
        const inner = (await copied()).split("\n");
        assert.match(
            inner.at(-1),
            /^train\.py:318 main {2}\(\/home\/user\/project\/train\.py:318\)$/,
        );
        assert.ok(inner.length > 1);
        await page.keyboard.press("f");
        await page.keyboard.press("f");
        await settle(page);
        await boxAfter(page, "ArrowDown");
        await page.keyboard.press("Enter");
        await settle(page);
        await page.keyboard.press("y");
        assert.match((await copied()).split("\n").at(-1), /^train\.py:318 main/, "bottom-up, too");
        await page.keyboard.press("Escape");
        await page.keyboard.press("]");
        await settle(page);
        await page.click('#details button:has-text("copy stack")');
        assert.match((await copied()).split("\n").at(-1), /^train\.py:318 main/);
        assert.match(await drawnText(page, "#status"), /stack of the block copied/);
    }));

test("the bar of the stacks fits at every width, in both themes", async () => {
    for (const [width, scheme] of [
        [390, "light"],
        [1024, "dark"],
        [1400, "light"],
    ]) {
        const options = { width, height: 900, scheme, hash: "#q=main&zoom=2&stack=3&stacks=churn" };
        await on(run, options, async (page) => {
            const cut = await page.evaluate(() => {
                const panel = document.getElementById("stacks-panel").getBoundingClientRect();
                return [...document.querySelectorAll("#stacks-panel .bar > *")]
                    .filter((child) => child.getBoundingClientRect().right > panel.right + 1)
                    .map((child) => child.id || child.className);
            });
            assert.deepEqual(cut, [], `at ${width}`);
            const over = await page.evaluate(
                () => document.documentElement.scrollWidth - innerWidth,
            );
            assert.ok(over <= 0, `${over} pixels too wide at ${width}`);
        });
    }
});

test("a hidden function is left out of the stacks until it is shown again", () =>
    on(run, { hash: "#stacks=live&shape=bottom-up" }, async (page) => {
        const first = nameOf(await boxAfter(page, "ArrowDown")).split(" ‹ ");
        const before = await print(page, "#icicle");
        assert.equal(await page.isVisible("#hide-function"), false, "no box is marked");
        await page.keyboard.press("Enter");
        await settle(page);
        const name = (await page.innerText("#hide-function")).replace("hide ", "");
        assert.ok(
            first.some((frame) => frame.endsWith(` ${name}`)),
            `${name} in ${first.join()}`,
        );
        await page.click("#hide-function");
        const link = await hash(page);
        assert.match(link.hidden, /^\d+$/);
        assert.equal(link.stack, undefined);
        assert.equal(await page.innerText("#show-hidden"), "show 1 hidden");
        const next = nameOf(await boxAfter(page, "ArrowUp", "ArrowDown")).split(" ‹ ");
        assert.deepEqual(
            next,
            first.filter((frame) => !frame.endsWith(` ${name}`)),
        );
        // A second one, by key; the link keeps both.
        await page.keyboard.press("Enter");
        await page.keyboard.press("u");
        assert.match((await hash(page)).hidden, /^\d+,\d+$/);
        assert.notEqual(await print(page, "#icicle"), before);
        const rest = await boxAfter(page, "ArrowDown");
        await page.reload();
        await page.waitForSelector("html[data-ready]");
        await settle(page);
        assert.equal(await page.innerText("#show-hidden"), "show 2 hidden");
        assert.equal(await boxAfter(page, "ArrowDown"), rest);
        await page.keyboard.press("U");
        assert.equal((await hash(page)).hidden, undefined);
        assert.equal(await page.isVisible("#show-hidden"), false);
        assert.deepEqual(nameOf(await boxAfter(page, "ArrowDown")).split(" ‹ "), first);
    }));
