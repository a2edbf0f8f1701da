// Links: the page shows the state in the URL fragment, also if it is already open. And quick
// changes of the device.
//
// FRAGTRACE_PAGES holds pages of made-up data.
import assert from "node:assert/strict";
import { test } from "node:test";
import { hash, pageFile, settle, text, visitor } from "./look.mjs";

const board = pageFile("checkerboard");
const run = pageFile("run");
const two = pageFile("two");
const on = visitor();

test("an invalid number in a link is ignored", async () => {
    let verdict;
    await on(board, {}, async (page) => (verdict = await text(page, "#verdict")));
    for (const part of [
        "device=0.5",
        "device=-1&card=-1",
        "card=0.5&device=7",
        "culprit=0.5&card=99",
        "selected=1.5&culprit=99&whatif=0.5",
        "selected=99999999&stack=0.5",
        "stack=99999999&whatif=99",
        "cursor=0.5&t0=0.25&t1=1.5&mark=1.5",
    ]) {
        await on(board, { hash: "#" + part }, async (page) => {
            assert.equal(await page.getAttribute("html", "data-failed"), null, part);
            assert.equal(await text(page, "#verdict"), verdict, part);
            assert.match(await text(page, "#status"), /reserved/, part);
            assert.equal(await page.locator("#details").isVisible(), false, part);
            const shown = await hash(page);
            for (const key of ["culprit", "selected", "stack", "whatif", "mark"]) {
                assert.equal(shown[key], undefined, `${part}: ${key}`);
            }
            for (const key of ["device", "card", "cursor", "t0", "t1"]) {
                assert.match(shown[key], /^\d+$/, `${part}: ${key}`);
            }
        });
    }
});

// Like a person who pastes a link into the tab: the URL changes, the page is not loaded again.
async function paste(page, link) {
    await page.evaluate((link) => {
        window.stayed = true;
        location.hash = link;
    }, link);
    await settle(page);
    assert.equal(await page.evaluate(() => window.stayed), true, "the page was not loaded again");
}

test("a link pasted into an open page sets the view and resets the rest", () =>
    on(
        run,
        { hash: "#colour=age&theme=dark&fold=0&q=model&selected=3&mark=5000000" },
        async (page) => {
            const link =
                "#device=0&t0=1000000&t1=9000000&a0=0&a1=104857600&cursor=2000000&card=0&selected=7&q=metrics&stacks=live";
            await paste(page, link);
            const now = await hash(page);
            assert.deepEqual(now, Object.fromEntries(new URLSearchParams(link.slice(1))));
            assert.equal(await page.inputValue("#search"), "metrics");
            assert.equal(await page.inputValue("#colour"), "state");
            assert.equal(await page.getAttribute("#fold", "aria-pressed"), "true");
            assert.equal(await page.getAttribute("html", "data-theme"), "light");
            assert.match(await text(page, "#details"), /Block 7 /);
            assert.match(await text(page, "#status"), /search "metrics"/);
            await paste(page, "#card=0.5&selected=1.5&cursor=-1");
            assert.match(await text(page, "#status"), /reserved/);
            assert.equal(await page.locator("#details").isVisible(), false);
        },
    ));

test("a pasted link shows another device", () =>
    on(two, {}, async (page) => {
        await paste(page, "#device=1");
        assert.match(await text(page, "#run"), /GPU 1/);
        assert.equal(await page.inputValue("#device"), "1");
        assert.match(await text(page, "#status"), /in 5 segments/);
    }));

test("if two devices are chosen quickly the last one is shown", () =>
    on(two, {}, async (page) => {
        const choose = (...devices) =>
            page.evaluate((devices) => {
                const select = document.getElementById("device");
                for (const device of devices) {
                    select.value = device;
                    select.dispatchEvent(new Event("change"));
                }
            }, devices);
        // The overview of the second device must be unpacked first, that of the first device is
        // ready.
        await choose("1", "0");
        await settle(page);
        assert.match(await text(page, "#run"), /GPU 0/);
        assert.equal((await hash(page)).device, "0");
        assert.match(await text(page, "#status"), /94 blocks in 94 segments/);
        await choose("0", "1", "0", "1");
        await settle(page);
        assert.match(await text(page, "#run"), /GPU 1/);
        assert.match(await text(page, "#status"), /in 5 segments/);
    }));

test("characters that turn the text are escapes in a printed comment and in the status line", () =>
    on(run, { hash: "#comment=a%E2%80%AEb%0Ac&q=x%E2%80%AEy" }, async (page) => {
        await page.fill("#search", "x\u202ey\u0007");
        await settle(page);
        assert.match(await page.textContent("#status"), /^search "x\\u202ey\\u0007": /);
        assert.equal(await page.textContent("#comment-print"), "a\\u202eb\nc");
        assert.equal(await page.inputValue("#comment-text"), "a\u202eb\nc");
    }));

test("a comment is kept in the link and printed, and is text", () =>
    on(run, {}, async (page) => {
        assert.equal(await page.locator("#comment").isVisible(), false);
        await page.keyboard.press("N");
        assert.equal(await page.evaluate(() => document.activeElement.id), "comment-text");
        await page.keyboard.type("see <b>line 33</b>: 50 % & more");
        await page.keyboard.press("Enter");
        await page.keyboard.type("t0=5"); // no shortcut, and no part of the link's view
        await page.keyboard.press("Escape");
        const written = "see <b>line 33</b>: 50 % & more\nt0=5";
        await settle(page);
        assert.equal((await hash(page)).comment, written);
        assert.equal(await page.getAttribute("html", "data-theme"), "light", "t was a letter");
        await page.reload();
        await page.waitForSelector("html[data-ready]");
        await settle(page);
        assert.equal(await page.inputValue("#comment-text"), written);
        assert.equal(await page.locator("#comment b").count(), 0);
        await page.emulateMedia({ media: "print" });
        assert.equal(await page.locator("#comment-print").isVisible(), true);
        assert.equal(await page.locator("#comment-print").textContent(), written);
        await page.emulateMedia({ media: "screen" });
        await page.fill("#comment-text", "");
        await page.keyboard.press("Escape");
        await settle(page);
        assert.equal(await page.locator("#comment").isVisible(), false);
        assert.equal((await hash(page)).comment, undefined);
    }));
