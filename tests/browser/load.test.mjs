// How the page opens: the overview comes before the blocks, blocks are read with or without
// workers, and the file's text is not kept.
//
// FRAGTRACE_PAGES holds many.html, which has several packs of blocks.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";
import { eventually, pageFile, settle, sharedBrowser } from "./look.mjs";

const path = pageFile("many");
const shared = sharedBrowser();

async function opened({ init = "" } = {}) {
    const context = await shared.browser.newContext({ viewport: { width: 1440, height: 960 } });
    const page = await context.newPage();
    let workers = 0;
    page.on("worker", () => ++workers);
    const problems = [];
    page.on("pageerror", (error) => problems.push(String(error)));
    if (init) await page.addInitScript(init);
    await page.goto(`file://${path}`);
    await page.waitForSelector("html[data-ready], html[data-failed]", { timeout: 60000 });
    assert.deepEqual(problems, []);
    const shown = await page.evaluate(() => ({
        status: document.getElementById("status").textContent,
        blocks: document.documentElement.dataset.blocks,
        left: document.querySelectorAll(
            'template, script[type="text/plain"], script[type="application/json"]',
        ).length,
        overview: Number(document.documentElement.dataset.overviewMs),
        ready: Number(document.documentElement.dataset.interactiveMs),
    }));
    await context.close();
    return { ...shown, workers };
}

test("blocks read by workers equal blocks read without workers", async () => {
    const beside = await opened();
    assert.ok(beside.workers > 0, "no worker was started");
    assert.ok(beside.overview < beside.ready, "the overview waited for the blocks");
    assert.ok(Number(beside.blocks) > 256 * 1024);
    assert.match(beside.status, /[1-9][0-9,]* blocks in [1-9][0-9,]* segments/);
    for (const init of [
        "delete window.Worker",
        "window.Worker = class { constructor() { throw new Error('refused'); } }",
        `window.Worker = class {
            constructor() {
                setTimeout(() => this.onerror(new Event("error", { cancelable: true })), 5);
            }
            postMessage() {}
            terminate() {}
        }`,
    ]) {
        const alone = await opened({ init });
        assert.equal(alone.workers, 0);
        assert.deepEqual([alone.status, alone.blocks], [beside.status, beside.blocks], init);
    }
});

test("the file's text is not kept in the document", async () =>
    assert.equal((await opened()).left, 0));

test("while blocks load, verdict, chart and map can already be used", async () => {
    const whole = readFileSync(path);
    const cut = whole.indexOf('id="ft-0-blocks-1"');
    let finish;
    const server = createServer((_, response) => {
        response.setHeader("content-type", "text/html");
        response.write(whole.subarray(0, cut));
        finish = () => response.end(whole.subarray(cut));
    });
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
    const page = await shared.browser.newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}/`, { waitUntil: "commit" });
    await page.waitForSelector("html[data-overview-ms]");
    assert.match(await page.locator("#verdict").innerText(), /OOM/);
    assert.equal(await page.locator("#map-mode").innerText(), "shares of area (overview)");
    assert.match(await page.locator("#status").innerText(), /[Rr]eading the blocks/);
    const drawn = () =>
        page.evaluate(() => {
            const canvas = document.getElementById("map");
            const { data } = canvas
                .getContext("2d")
                .getImageData(0, 0, canvas.width, canvas.height);
            let sum = 0;
            for (let i = 0; i < data.length; ++i) sum = (sum * 31 + data[i]) >>> 0;
            return sum;
        });
    const first = await drawn();
    await page.keyboard.press("w");
    await eventually(async () => assert.notEqual(await drawn(), first));
    await page.click("#segments-table");
    assert.match(await page.locator("dialog").innerText(), /[Rr]eading the blocks/);
    await page.click("#dialog-close");
    assert.equal(await page.getAttribute("html", "data-ready"), null);
    finish();
    await page.waitForSelector("html[data-ready]");
    assert.match(await page.locator("#status").innerText(), /[1-9][0-9,]* blocks in/);
    await page.close();
    server.close();
});

test("300,000 live blocks are drawn as shares and all are counted", async () => {
    const context = await shared.browser.newContext({ viewport: { width: 1440, height: 960 } });
    const page = await context.newPage();
    await page.goto(`file://${pageFile("crowd")}#cursor=300500000`);
    await page.waitForSelector("html[data-ready]", { timeout: 60000 });
    assert.match(await page.locator("#status").innerText(), /300,000 blocks in \d+ segments/);
    const orange = () =>
        page.evaluate(() => {
            const canvas = document.getElementById("segments");
            const { data } = canvas
                .getContext("2d")
                .getImageData(0, 0, canvas.width, canvas.height);
            let near = 0;
            for (let i = 0; i < data.length; i += 4) if (data[i] - data[i + 2] > 15) ++near;
            return near / (data.length / 4);
        });
    assert.ok((await orange()) < 0.1, "full segments show no holes");
    // At the end a third of each segment is free.
    for (let i = 0; i < 60; ++i) await page.keyboard.press("Shift+ArrowRight");
    await eventually(async () =>
        assert.match(await page.locator("#status").innerText(), /200,000 blocks in/),
    );
    await settle(page);
    assert.ok((await orange()) > 0.2, "holes are mixed in");
    await context.close();
});
