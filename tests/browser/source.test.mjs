// Source code in the page. FRAGTRACE_PAGES holds pages of made-up data.
import assert from "node:assert/strict";
import { test } from "node:test";
import { drawnText, pageFile, settle, visitor } from "./look.mjs";

const board = pageFile("checkerboard");
const run = pageFile("run");
const visit = visitor();

const chosenRow = "#culprits-list tr[tabindex] >> nth=0";

test("the source code of the chosen line, with its own line marked", () =>
    visit(board, {}, async (page) => {
        assert.equal(await page.locator("#source").isVisible(), false);
        await page.click(chosenRow);
        await settle(page);
        const code = await drawnText(page, "#source");
        assert.match(code, /\/demo\/fragment\.py:11/);
        assert.match(code, /this file changed after the recording began/);
        assert.match(code, / 8 {2}def keep\(sample\):/);
        // Code is text, never markup.
        assert.match(code, / 9 {6}# <\/script><b>text<\/b>/);
        const marked = await page.locator("#source mark").allInnerTexts();
        assert.deepEqual(
            marked.map((text) => text.trim()),
            ["11      kept.append(sample.clone())"],
        );
        await page.click(chosenRow);
        await settle(page);
        assert.equal(await page.locator("#source").isVisible(), false);
    }));

test("frames of a block open to their source code, if the page has it", () =>
    visit(board, {}, async (page) => {
        await page.click(chosenRow);
        await page.click("#culprits-list button >> nth=0");
        await settle(page);
        // Only the line that names the stack has source code here.
        assert.equal(await page.locator("#details li").count(), 3);
        const frames = page.locator("#details li details");
        assert.deepEqual(await frames.locator("summary").allInnerTexts(), ["fragment.py:11 keep"]);
        assert.equal(await frames.locator("pre").isVisible(), true);
        await frames.locator("summary").click();
        assert.equal(await frames.locator("pre").isVisible(), false);
    }));

test("a page without source code has no place for it", () =>
    visit(run, {}, async (page) => {
        await page.click(chosenRow);
        await settle(page);
        assert.equal(await page.locator("#source").isVisible(), false);
        assert.equal(await page.locator(".source").count(), 0);
    }));
