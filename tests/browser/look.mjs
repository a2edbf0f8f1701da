// Shared by the tests of the page: opening it, things it must never do, and reading its pictures.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { launch, open } from "./browser.mjs";

/** A page of made-up data (make_page.cpp). */
export const pageFile = (name) => join(process.env.FRAGTRACE_PAGES, `${name}.html`);

/** Makes a copy of a page with a changed header, and removes it after `look(path)`. */
export async function changedPage(path, change, look) {
    const folder = mkdtempSync(join(tmpdir(), "fragtrace-page-"));
    const copy = join(folder, "changed.html");
    const [before, header, after] = readFileSync(path, "utf8").split(
        /(?<=id="ft-header">)(.*?)(?=<\/script>)/s,
    );
    const data = JSON.parse(header);
    change(data);
    writeFileSync(copy, before + JSON.stringify(data).replaceAll("<", "\\u003c") + after);
    try {
        await look(copy);
    } finally {
        rmSync(folder, { recursive: true });
    }
}

/** An object that has a browser while the tests of a file run. */
export function sharedBrowser() {
    const shared = {};
    before(async () => (shared.browser = await launch()));
    after(async () => shared.browser?.close());
    return shared;
}

/** `visit` in a browser that the tests of a file share. */
export function visitor() {
    const shared = sharedBrowser();
    return (path, options, look) => visit(shared.browser, path, options, look);
}

/**
 * Opens a page, checks that nothing went wrong and nothing was fetched, and closes it in any case.
 */
export async function visit(browser, path, options, look) {
    const { page, context, problems, requests } = await open(browser, path, options);
    try {
        await page.waitForTimeout(400);
        await look(page, context);
        assert.deepEqual(problems, []);
        assert.deepEqual(
            requests.filter((url) => !/^(file|blob|data):/.test(url)),
            [],
        );
    } finally {
        await context.close();
    }
}

export const text = (page, selector) => page.locator(selector).innerText();

/** The text of an element after the next two frames, in which changes are drawn. */
export async function drawnText(page, selector) {
    await page.evaluate(
        () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
    );
    return text(page, selector);
}

/**
 * Waits for the next frames, in which changes are drawn, and the quarter of a second until the URL
 * is written.
 */
export const settle = (page) =>
    page.evaluate(
        () =>
            new Promise((done) =>
                requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 320))),
            ),
    );

/**
 * Repeats a check until it passes, because the time that a page needs differs between machines.
 * After 20 s it throws the last failure.
 */
export async function eventually(check) {
    for (const end = Date.now() + 20_000; ;) {
        try {
            return await check();
        } catch (error) {
            if (Date.now() > end) throw error;
            await new Promise((done) => setTimeout(done, 50));
        }
    }
}

/** The view as stored in the URL. */
export async function hash(page) {
    await settle(page);
    return Object.fromEntries(
        new URLSearchParams((await page.evaluate(() => location.hash)).slice(1)),
    );
}

/** A number that changes when a canvas changes. */
export const print = (page, selector) =>
    page.evaluate((selector) => {
        const canvas = document.querySelector(selector);
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        let sum = 0;
        for (let i = 0; i < data.length; i += 4) {
            sum = (sum * 31 + data[i] * 65536 + data[i + 1] * 256 + data[i + 2]) % 4294967291;
        }
        return sum;
    }, selector);

/** The share of a canvas's pixels that are near a colour. */
export const share = (page, selector, [red, green, blue], reach = 24) =>
    page.evaluate(
        ([selector, red, green, blue, reach]) => {
            const canvas = document.querySelector(selector);
            const { data } = canvas
                .getContext("2d")
                .getImageData(0, 0, canvas.width, canvas.height);
            let near = 0;
            for (let i = 0; i < data.length; i += 4) {
                if (
                    data[i + 3] > 100 &&
                    Math.abs(data[i] - red) +
                        Math.abs(data[i + 1] - green) +
                        Math.abs(data[i + 2] - blue) <
                        reach
                ) {
                    ++near;
                }
            }
            return near / (canvas.width * canvas.height);
        },
        [selector, red, green, blue, reach],
    );

export async function download(page, act) {
    const [saved] = await Promise.all([page.waitForEvent("download"), act()]);
    return { name: saved.suggestedFilename(), text: readFileSync(await saved.path(), "utf8") };
}

/** What axe, the checker of accessibility, finds on the page. */
export async function accessProblems(page) {
    await page.evaluate(
        readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8"),
    );
    return page.evaluate(async () =>
        (await globalThis.axe.run(document)).violations.map(
            ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`,
        ),
    );
}
