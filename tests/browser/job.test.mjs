// The first screen of the page of a job: what the report says about all processes, and the way from
// a sentence to a process. FRAGTRACE_PAGES holds job.html.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
    accessProblems,
    changedPage,
    download,
    hash,
    pageFile,
    print,
    settle,
    text,
    visitor,
} from "./look.mjs";

const job = pageFile("job");
const visit = visitor();
const on = (options, look) => visit(job, options, look);

/** The data of a page, as it is in the file. */
function header(path) {
    const html = readFileSync(path, "utf8");
    return JSON.parse(/id="ft-header">(.*?)<\/script>/s.exec(html)[1]);
}

test("the first screen has every sentence of the report, under its label", () =>
    on({ width: 1024, height: 768 }, async (page) => {
        const said = (await page.$eval("#job", (panel) => panel.textContent)).replace(/\s+/g, " ");
        const { job: rows } = header(job);
        assert.ok(rows.length > 6);
        for (const { label, parts } of rows) {
            const sentence = parts.map(({ text }) => text).join("");
            const plain = sentence.replace(/\s+/g, " ").replace(/`(fraganalyze [^`]+)`/g, "$1");
            assert.ok(said.includes(plain), sentence);
            assert.ok(said.includes(label), label);
        }
        const box = await page.locator("#job").boundingBox();
        assert.ok(box.y + box.height < 768, "without scrolling");
        assert.match(
            await text(page, "#job h2"),
            /^rank 5 of 40 ran out of memory first, 80 ms after the job began$/,
        );
        assert.match(said, /exact: /, "with the meaning of its words");
        // The verdict below has the clock of its process, not that of the job.
        assert.match(await text(page, "#verdict .headline"), /\bat [\d.]+ \S+ of this process/);
    }));

/** The texts that canvases of the page draw while `act()` runs. */
const drawnTexts = async (page, act) => {
    await page.evaluate(() => {
        const prototype = CanvasRenderingContext2D.prototype;
        const draw = prototype.fillText;
        globalThis.drawnTexts = [];
        prototype.fillText = function (text, ...place) {
            globalThis.drawnTexts.push(text);
            draw.call(this, text, ...place);
        };
    });
    await act();
    await settle(page);
    return page.evaluate(() => globalThis.drawnTexts);
};

test("commands in sentences are code, without backticks; a file's name keeps its backticks", () =>
    changedPage(
        job,
        ({ job, processes }) => {
            const text = "x `odd` file: `fraganalyze whatif TRACE` scans more sizes";
            job.find(({ kind }) => kind === "row").parts = [{ text, ranks: [] }];
            processes[0].notes.push("Run `fraganalyze list --absorb` there.");
        },
        (path) =>
            visit(path, {}, async (page) => {
                assert.match(
                    await page.locator("#job").textContent(),
                    /x `odd` file: fraganalyze whatif TRACE scans more sizes/,
                );
                assert.equal(await text(page, "#job dd code"), "fraganalyze whatif TRACE");
                assert.equal(
                    await page.locator("#notes code").textContent(),
                    "fraganalyze list --absorb",
                );
            }),
    ));

test("a process without a number has its file's name, and an unknown card is not named", () =>
    changedPage(
        job,
        ({ ranks }) => {
            Object.assign(ranks[0], { rank: null, pid: 0, gpu: null, file: "a/snap.pickle" });
            Object.assign(ranks[1], { gpu: null });
        },
        (path) =>
            visit(path, {}, async (page) => {
                const texts = await drawnTexts(page, async () => {
                    await page.selectOption("#heat-order", "rank");
                    await page.focus("#ranks-strip");
                    await page.keyboard.press("ArrowRight");
                });
                const names = texts.join("\n");
                assert.doesNotMatch(names, /null|pid 0/);
                assert.ok(texts.includes("rank 1"), names);
                assert.ok(texts.includes("snap.pickle"), names);
            }),
    ));

test("a link keeps measure and order of the memory over time, and its map stays in its card", () =>
    on({ width: 1440, height: 900 }, async (page) => {
        await page.selectOption("#heat-measure", "free on the card");
        await page.selectOption("#heat-order", "rank");
        await settle(page);
        const drawn = await print(page, "#heat");
        const kept = await hash(page);
        assert.deepEqual([kept.heat, kept.rows], ["2", "rank"]);
        await page.reload();
        await page.waitForSelector("html[data-ready]");
        await settle(page);
        assert.equal(await page.inputValue("#heat-measure"), "free on the card");
        assert.equal(await page.inputValue("#heat-order"), "rank");
        assert.equal(await print(page, "#heat"), drawn);
        const [card, map] = await Promise.all(
            ["#heat-panel", "#heat-box"].map((id) => page.locator(id).boundingBox()),
        );
        assert.ok(map.y + map.height <= card.y + card.height, JSON.stringify([card, map]));
    }));

test("the saved pictures contain the heat map, with all its rows and its measure", () =>
    on({}, async (page) => {
        await page.selectOption("#heat-measure", "allocated");
        const { text } = await download(page, () => page.keyboard.press("I"));
        assert.match(text, />Memory of all processes over time<[^]*>allocated</);
        const { width, height } = await page.locator("#heat").boundingBox();
        assert.ok(text.includes(`<image width="${width}" height="${height}"`));
        assert.equal((await download(page, () => page.keyboard.press("i"))).name, "fragtrace.png");
    }));

test("punctuation after a name stays on the line of the name", () =>
    on({}, async (page) => {
        const kept = await page.$$eval("#job .together", (all) =>
            all.map((one) => one.textContent),
        );
        assert.ok(kept.includes("rank 7:"), kept.join(" "));
        assert.ok(!kept.includes("rank 39"), kept.join(" "));
    }));

test("names from traces are text, and characters that turn the text are escapes", () =>
    on({}, async (page) => {
        assert.equal(await page.locator("#job b, #job img, #job s").count(), 0);
        const said = await text(page, "#job");
        assert.match(said, /evil\\u202e\.py:3 <img src=x/);
        assert.match(said, /by the clock of node\\u202e2, rank 39 failed first/);
        const all = await page.evaluate(() => document.documentElement.textContent);
        assert.doesNotMatch(all, /[\u202a-\u202e\u2066-\u2069\u200e\u200f]/);
    }));

test("a click on a name shows that process, and the keyboard goes there", () =>
    on({ width: 1024, height: 768 }, async (page) => {
        await page.click('#job button:text-is("rank 7")');
        await page.waitForFunction(() => location.hash.includes("device=2"));
        await settle(page);
        assert.match(await text(page, "#own-title"), /^This process: rank 7 · pid 4007 · GPU 7/);
        assert.equal(await page.evaluate(() => document.activeElement.id), "own-title");
        const own = await page.locator("#own").boundingBox();
        assert.ok(own.y >= 0 && own.y < 300, `its page is on the screen: ${own.y}`);
        await page.click("#to-overview");
        const first = await page.locator("#job").boundingBox();
        assert.ok(first.y >= 0 && first.y < 300, `and back: ${first.y}`);
        await page.focus('#job button:text-is("rank 5")');
        await page.keyboard.press("Enter");
        await page.waitForFunction(() => location.hash.includes("device=0"));
    }));

test("a process of which only a summary is known says so", () =>
    on({}, async (page) => {
        await page.click('#job button:text-is("rank 39")');
        assert.match(
            await text(page, "dialog"),
            /^\s*(close)?\s*rank 39 .*the file has only this line. Only its summary was read\. Where its trace is, this command writes its page:\s+fraganalyze /s,
        );
        assert.match(await text(page, "dialog tbody"), /one line, of a summary\s+node\\u202e2/);
    }));

test("a name of several processes lists them, and those that are complete can be opened", () =>
    on({}, async (page) => {
        await page.click('#job button:text-is("ranks 6-8")');
        assert.match(await text(page, "dialog"), /1 of 3 complete in this file:/);
        assert.equal(await page.locator("dialog tbody tr").count(), 3);
        await page.click("dialog p button");
        await page.waitForFunction(() => location.hash.includes("device=2"));
        assert.equal(await page.locator("dialog").evaluate((dialog) => dialog.open), false);
        await page.click("#to-overview");
        await page.click('#job button:text-is("ranks 6, 8")');
        assert.match(await text(page, "dialog"), /only one line of each of these processes/);
    }));

test("nothing is cut off or on top of another part, from a telephone to a wide screen", async () => {
    for (const path of [job, pageFile("run")]) {
        for (const [width, height] of [
            [390, 844],
            [768, 1024],
            [1024, 768],
            [1600, 1000],
        ]) {
            await visit(path, { width, height }, async (page) => {
                const { over, cut, overlaps } = await page.evaluate(() => {
                    const places = [...document.querySelectorAll("main > *, header, #ranks")]
                        .filter((place) => place.offsetParent !== null)
                        .map((place) => [place.id || place.tagName, place.getBoundingClientRect()]);
                    return {
                        over: document.documentElement.scrollWidth - innerWidth,
                        cut: [...document.querySelectorAll("#job, #job dd, #own, #verdict")]
                            .filter((place) => place.scrollWidth > place.clientWidth + 1)
                            .map((place) => place.id || place.textContent),
                        overlaps: places.flatMap(([name, a], at) =>
                            places
                                .slice(at + 1)
                                .filter(
                                    ([other, b]) =>
                                        !["HEADER", "ranks"].includes(name) &&
                                        other !== name &&
                                        a.left < b.right - 1 &&
                                        b.left < a.right - 1 &&
                                        a.top < b.bottom - 1 &&
                                        b.top < a.bottom - 1,
                                )
                                .map(([other]) => `${name} and ${other}`),
                        ),
                    };
                });
                assert.ok(over <= 0, `${over} pixels too wide at ${width}`);
                assert.deepEqual(cut, [], `at ${width}`);
                assert.deepEqual(overlaps, [], `at ${width}`);
                for (const id of ["chart", "map", "segments", "icicle"]) {
                    const box = await page.locator("#" + id).boundingBox();
                    assert.ok(box.height > 60 && box.width > 250, `${id} at ${width}`);
                }
            });
        }
    }
});

test("axe finds nothing on the page of a job and on that of one process", async () => {
    for (const path of [job, pageFile("run")]) {
        for (const [width, scheme] of [
            [1440, "light"],
            [1440, "dark"],
            [390, "light"],
        ]) {
            await visit(path, { width, scheme }, async (page) => {
                assert.deepEqual(await accessProblems(page), []);
            });
        }
    }
});
