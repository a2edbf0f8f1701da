// The first screen follows the verdict: each situation has its question, its order of sections and
// no empty panel.
//
// FRAGTRACE_PAGES holds a page with one device for each screen.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessProblems, download, pageFile, print, settle, text, visitor } from "./look.mjs";

const screens = pageFile("screens");
const visit = visitor();
const on = (device, look, options = {}) =>
    visit(screens, { ...options, hash: `#device=${device}` }, look);

// In the order of the devices: the headings below the question. The section that answers the
// question has none.
const blocked = "Which allocations block free memory";
const holders = "Live memory by line";
const sections = {
    blocked: [holders, "Growth", "Use less memory", "Outside the pool"],
    shortage: ["Growth", "Outside the pool", blocked],
    growth: [holders, "Use less memory", "Outside the pool", blocked],
    others: [holders, "Use less memory", "Growth", blocked],
    retry: [holders, "Growth", "Use less memory", "Outside the pool"],
    near_miss: [holders, "Growth", "Use less memory", "Outside the pool", blocked],
    peak: ["Growth", "Use less memory", "Outside the pool", "Near misses", blocked],
    state: ["Holes: 10 MiB in 1 hole", "Outside the pool", blocked],
};
const firstHead = {
    blocked: "blocked",
    shortage: "live bytes",
    growth: "per step",
    others: "live bytes",
    retry: "blocked",
    near_miss: "live bytes",
    peak: "live bytes",
    state: "live bytes",
};

for (const [device, screen] of Object.keys(sections).entries()) {
    test(`screen "${screen}": the question comes first, then the sections in their order`, () =>
        on(device, async (page) => {
            assert.equal(await text(page, "#culprits-title"), `Question ${device} <b>?</b>`);
            assert.deepEqual(
                await page.locator("#culprits h3").allInnerTexts(),
                sections[screen],
                "the headings",
            );
            assert.equal(await page.locator("#culprits th").first().innerText(), firstHead[screen]);
            const shown = await text(page, "#culprits");
            assert.match(shown, /keep\.py:8 <i>keep<\/i>/);
            assert.match(shown, /other <i>kind<\/i> 7 MiB \(1 MiB older than one step\)/);
            assert.match(shown, /37 MiB in total \(estimate: made up\)/);
            assert.match(shown, /since step 4[^]*\+10 MiB[^]*unknown/);
            assert.match(shown, /at the same point of step 4: 10 MiB less allocated/);
            const side = await text(page, "#side");
            assert.match(side, /expandable_segments <i>\s+did nothing/);
            assert.match(side, new RegExp(`situation ${device} <b>[^]*pinned\\s+at most 64 MiB`));
            assert.match(side, /train <b>\s+3\s+2 s\s+30 MiB\s+80 MiB\s+-2 MiB\s+4\s+1/);
            assert.match(side, /no segments\s+1\s+5 ns\s+1 MiB\s+unknown\s+0 B\s+unknown/);
            assert.equal(await page.locator("#culprits b, #side b").count(), 0);
        }));
}

test("a shortage shows what would reduce memory in the verdict, and nowhere else", () =>
    on(1, async (page) => {
        assert.match(await text(page, "#verdict"), /activation checkpointing\s+at most the 12 MiB/);
        assert.match(
            await text(page, "#verdict"),
            /error of these figures\s+unknown: no run with such a change/,
        );
        assert.doesNotMatch(await text(page, "#culprits"), /checkpointing/);
        // What is missing may be outside the pool.
        const bar = await text(page, "#culprits .categories");
        assert.match(bar, /context 256 MiB \(outside the pool\)/);
        assert.match(bar, /37 MiB in total \(estimate: made up\); 768 MiB outside the pool/);
        assert.equal(await page.locator("#culprits .parts i").count(), 4);
    }));

test("the system's wish for more contrast reaches the pictures", () =>
    on(0, async (page) => {
        const before = await print(page, "#segments");
        await page.emulateMedia({ contrast: "more" });
        await settle(page);
        assert.notEqual(await print(page, "#segments"), before);
        await page.emulateMedia({ contrast: "no-preference" });
        await settle(page);
        assert.equal(await print(page, "#segments"), before);
    }));

test("each picture is saved alone, with its title and the verdict", () =>
    on(0, async (page) => {
        await page.click("#stacks-panel >> text=save");
        const saved = await download(page, () => page.click("#dialog >> text=SVG"));
        assert.equal(saved.name, "fragtrace-stacks.svg");
        assert.match(saved.text, />A heading · /);
        assert.match(saved.text, />A sentence\.</);
        assert.match(saved.text, />Stacks<[^]*>blocked free memory</);
        assert.doesNotMatch(saved.text, /Memory over time/);
        const png = await download(page, () => page.click("#dialog >> text=PNG"));
        assert.equal(png.name, "fragtrace-stacks.png");
        await page.click("#dialog-close");
        for (const id of ["time", "addresses", "segments-panel"]) {
            await page.click(`#${id} >> text=save`);
            const { text: file } = await download(page, () => page.click("#dialog >> text=SVG"));
            assert.match(file, />A sentence\.</, id);
            await page.click("#dialog-close");
        }
    }));

test("the sizes of the blocks are one click away", () =>
    on(0, async (page) => {
        await page.click("#segments-sizes");
        assert.match(await text(page, "#dialog"), /^close\s+Sizes of the blocks at /);
    }));

test("text in the tables beside the pictures has at least 12 pixels on a small screen", () =>
    visit(screens, { width: 390, height: 844 }, async (page) => {
        const smallest = await page.evaluate(() =>
            Math.min(
                ...[...document.querySelectorAll("#side :is(td, th, td code)")].map((cell) =>
                    parseFloat(getComputedStyle(cell).fontSize),
                ),
            ),
        );
        assert.ok(smallest >= 12, `${smallest} pixels`);
    }));

test("only questions about blocked memory mark the blocks in the way", async () => {
    for (const [device, marked] of [
        [0, true],
        [1, false],
        [4, true],
        [6, false],
    ]) {
        await on(device, async (page) => {
            const legend = await text(page, "#map-legend");
            assert.equal(/blocks free memory/.test(legend), marked, legend);
            const by = await page.inputValue("#stacks");
            assert.equal(by, marked ? "holes" : "live");
        });
    }
});

test("growth without an out-of-memory has its own badge", () =>
    on(2, async (page) => assert.equal(await text(page, "#verdict .kind"), "GROWTH")));

test("a state has no pictures over time", () =>
    on(7, async (page) => {
        for (const id of ["time", "addresses"]) {
            assert.equal(await page.locator(`#${id}`).isVisible(), false, id);
        }
        assert.equal(await page.locator("#stacks-panel").isVisible(), true);
        assert.doesNotMatch(await text(page, "#verdict"), /at \d/);
        assert.match(await text(page, "#status"), /^a state without times: 30 MiB requested/);
        assert.equal(await page.locator("#play").isVisible(), false);
        // The segments have the place of the pictures over time.
        assert.equal(await page.locator("#left #segments-panel").isVisible(), true);
        await page.keyboard.press("]");
        await settle(page);
        const details = await text(page, "#details");
        assert.match(details, /allocated\s+at an unknown time: this state has no times/);
        assert.doesNotMatch(details, /\d ns|zoom/);
        await page.click("#segments-table");
        assert.doesNotMatch(await text(page, "#dialog"), /\d ns/);
        await page.click("#dialog-close");
        await page.selectOption("#device", "6");
        await settle(page);
        assert.equal(await page.locator("#right #segments-panel").isVisible(), true);
        assert.equal(await page.locator("#play").isVisible(), true);
    }));

test("without an answer, the verdict has the whole width", () =>
    on(8, async (page) => {
        assert.equal(await page.locator("#culprits").isVisible(), false);
        const [verdict, main] = await Promise.all(
            ["#verdict", "#main"].map((id) => page.locator(id).boundingBox()),
        );
        assert.ok(verdict.width > main.width - 40, `${verdict.width} of ${main.width}`);
    }));

test("phases that share a range are said, with their number in the table", () =>
    on(8, async (page) => {
        await page.click("#notes summary");
        assert.match(await text(page, "#notes"), /12 short or deeply nested phases share a range/);
        await page.click("#chart-table");
        assert.match(await text(page, "#dialog"), /phases\s+load, step\s+12/);
    }));

test("axe finds nothing, and nothing is wider than the window, on any screen", async () => {
    for (const options of [{ scheme: "light" }, { scheme: "dark" }, { width: 390, height: 844 }]) {
        await visit(screens, options, async (page) => {
            for (let device = 0; device <= 8; ++device) {
                await page.selectOption("#device", String(device));
                await settle(page);
                const found = await accessProblems(page);
                assert.deepEqual(found, [], `device ${device} ${JSON.stringify(options)}`);
                const [scroll, room] = await page.evaluate(() => [
                    document.documentElement.scrollWidth,
                    document.documentElement.clientWidth,
                ]);
                assert.ok(scroll <= room, `${scroll} of ${room} pixels, device ${device}`);
            }
        });
    }
});
