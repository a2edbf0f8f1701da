// Keyboard input to the page, and the page's output to a screen reader.
//
// FRAGTRACE_PAGES holds pages of made-up data.
import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually, hash, pageFile, settle, text, visitor } from "./look.mjs";

const board = pageFile("checkerboard");
const run = pageFile("run");
const on = visitor();

test("Alt and an arrow key move to the previous or next event", () =>
    on(pageFile("two"), { hash: "#device=1&cursor=0" }, async (page) => {
        const stops = [];
        for (let i = 0; i < 12; ++i) {
            await page.keyboard.press("Alt+ArrowRight");
            const { cursor } = await hash(page);
            if (cursor === stops.at(-1)) break;
            stops.push(cursor);
        }
        // Ticks of 10 ns, as in synthetic.cpp: two segments and two blocks. The second block is
        // freed after 2 s and reusable after 6 s. Then the end.
        assert.deepEqual(stops, [
            "100",
            "200",
            "500",
            "100000000",
            "200000000",
            "600000000",
            "1000000000",
        ]);
        const back = [];
        for (let i = 0; i < stops.length - 1; ++i) {
            await page.keyboard.press("Alt+ArrowLeft");
            back.push((await hash(page)).cursor);
        }
        assert.deepEqual(back, stops.slice(0, -1).reverse());
    }));

test("letters typed in a selector choose an entry and are no shortcuts", () =>
    on(run, {}, async (page) => {
        const before = await hash(page);
        await page.focus("#colour");
        for (const key of ["d", "w", "W", "f", "g", "t", "m", "0", "2", "n", "["]) {
            await page.keyboard.press(key);
        }
        const after = await hash(page);
        assert.deepEqual({ ...after, colour: "" }, { ...before, colour: "" });
        assert.equal(await page.getAttribute("html", "data-theme"), "light");
        await page.keyboard.press("Escape");
        await page.evaluate(() => document.activeElement.blur());
        await page.keyboard.press("w");
        assert.notEqual((await hash(page)).t0, before.t0, "elsewhere they are");
    }));

test("with Alt a letter is no shortcut", () =>
    on(run, {}, async (page) => {
        const before = await hash(page);
        for (const key of ["t", "d", "w", "f", "0"]) await page.keyboard.press(`Alt+${key}`);
        assert.deepEqual(await hash(page), before);
        assert.equal(await page.getAttribute("html", "data-theme"), "light");
    }));

test("arrow keys and space scroll the list that has the focus", () =>
    on(run, { height: 700 }, async (page) => {
        const scrolled = () =>
            page.$$eval("#side, #culprits-list, #whatif-list", (lists) =>
                lists.reduce((sum, { scrollTop }) => sum + scrollTop, 0),
            );
        const before = await hash(page);
        for (const key of ["ArrowDown", "Space"]) {
            await page.locator("#whatif-list").focus();
            const from = await scrolled();
            await page.keyboard.press(key);
            await eventually(async () => assert.ok((await scrolled()) > from, key));
        }
        assert.equal(await page.getAttribute("#play", "aria-pressed"), "false");
        assert.deepEqual(await hash(page), before);
        await page.keyboard.press("W");
        for (const picture of ["#chart", "#map"]) {
            const { a0 } = await hash(page);
            await page.locator(picture).focus();
            await page.keyboard.press("ArrowDown");
            assert.notEqual((await hash(page)).a0, a0, picture);
        }
    }));

test("the status is announced when the cursor rests, not in every frame", () =>
    on(run, {}, async (page) => {
        const heard = () => page.locator("#spoken").textContent();
        await eventually(async () => assert.equal(await heard(), await text(page, "#status")));
        // The test moves the clock, because the number of frames drawn while keys are pressed
        // differs between machines.
        await page.clock.install();
        await page.clock.pauseAt(Date.now() + 60_000);
        await page.evaluate(() => {
            window.spoken = [];
            window.shown = 0;
            new MutationObserver(() =>
                window.spoken.push(document.getElementById("spoken").textContent),
            ).observe(document.getElementById("spoken"), { childList: true, characterData: true });
            new MutationObserver(() => ++window.shown).observe(document.getElementById("status"), {
                childList: true,
                characterData: true,
            });
        });
        const frames = 40;
        for (let i = 0; i < frames; ++i) {
            await page.keyboard.press("ArrowLeft");
            await page.clock.runFor(20);
        }
        const { spoken, shown } = await page.evaluate(() => ({
            spoken: window.spoken.length,
            shown: window.shown,
        }));
        assert.ok(shown > frames / 2, `${shown} times shown`);
        assert.equal(spoken, 0, "spoken while it moved");
        await page.clock.runFor(1000);
        const said = await page.evaluate(() => window.spoken);
        assert.deepEqual(said, [await text(page, "#status")]);
        assert.match(said[0], /reserved/);
        // Text that changes in each frame is not announced.
        assert.equal(
            await page.evaluate(() =>
                document
                    .getElementById("status")
                    .closest("[role=status], [role=alert], [role=log], [aria-live]"),
            ),
            null,
        );
        assert.equal(await page.getAttribute("#spoken", "role"), "status");
        const box = await page.locator("#spoken").boundingBox();
        assert.ok(box.width <= 1 && box.height <= 1, "it is not seen");
    }));

test("a screen reader announces the selected row", async () => {
    for (const [path, list] of [
        [board, "#culprits-list"],
        [run, "#whatif-list"],
        [pageFile("two"), "#culprits-list"],
    ]) {
        await on(path, {}, async (page, context) => {
            if (path.endsWith("two.html")) {
                await page.selectOption("#device", "1");
                await settle(page);
            }
            const row = page.locator(`${list} tbody tr[tabindex]`).first();
            await row.click();
            await settle(page);
            const session = await context.newCDPSession(page);
            const { nodes } = await session.send("Accessibility.getFullAXTree");
            const chosen = nodes.filter(
                (node) =>
                    node.role?.value === "row" &&
                    node.properties?.some(
                        ({ name, value }) => name === "selected" && value.value === true,
                    ),
            );
            assert.equal(chosen.length, 1, `${path} ${list}`);
            const parent = nodes.find((node) => node.childIds?.includes(chosen[0].nodeId));
            const table =
                parent.role.value === "grid"
                    ? parent
                    : nodes.find((node) => node.childIds?.includes(parent.nodeId));
            assert.equal(table.role.value, "grid");
        });
    }
});
