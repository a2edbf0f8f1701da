// Panels, the page and tables as PNG and SVG.
//
// FRAGTRACE_PAGES holds pages of made-up data, FRAGTRACE_REPORTS those of golden traces.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
    changedPage,
    download,
    eventually,
    pageFile,
    print,
    settle,
    text,
    visitor,
} from "./look.mjs";

const run = pageFile("run");
const report = (name) => join(process.env.FRAGTRACE_REPORTS, `${name}.html`);
const on = visitor();

const panels =
    "#verdict, #culprits, #notes, #job, #heat-panel, #runs-box, #comparison, #ranks, #time, " +
    "#addresses, #stacks-panel, #segments-panel, #range, #source, #hole, #details, #whatif, .corner";

/** The size and the texts of a saved SVG, and what a browser finds wrong with it. */
const readSvg = (page, svg) =>
    page.evaluate((svg) => {
        const parsed = new DOMParser().parseFromString(svg, "image/svg+xml");
        const root = parsed.documentElement;
        return {
            problem: parsed.querySelector("parsererror, script, foreignObject, i, b")?.outerHTML,
            size: [root.getAttribute("width"), root.getAttribute("height")].map(Number),
            texts: [...parsed.querySelectorAll("text")].map((text) => text.textContent),
        };
    }, svg);

/** The size of a saved PNG, and which shares of it have a colour, and are not background. */
async function readPng(page, act, colour = [0, 0, 0]) {
    const [saved] = await Promise.all([page.waitForEvent("download"), act()]);
    const data = readFileSync(await saved.path()).toString("base64");
    return page.evaluate(
        async ([data, colour]) => {
            // The page's policy allows no image from an address.
            const bytes = Uint8Array.from(atob(data), (byte) => byte.charCodeAt(0));
            const image = await createImageBitmap(new Blob([bytes]));
            const canvas = new OffscreenCanvas(image.width, image.height);
            const context = canvas.getContext("2d");
            context.drawImage(image, 0, 0);
            const pixels = context.getImageData(0, 0, image.width, image.height).data;
            const counts = new Map();
            for (const pixel of new Uint32Array(pixels.buffer)) {
                counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
            }
            const all = image.width * image.height;
            const [red, green, blue] = colour;
            const key = ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
            return {
                size: [image.width, image.height],
                share: (counts.get(key) ?? 0) / all,
                drawn: 1 - Math.max(...counts.values()) / all,
            };
        },
        [data, colour],
    );
}

/** The visible words of an element without its controls, in the order of the document. */
const wordsOf = (page, selector, at = 0) =>
    page.evaluate(
        ([selector, at]) => {
            const root = document.querySelectorAll(selector)[at];
            const said =
                "button:is(.name, .sort, .figures *, .life *, .below *, .together *):not(.copy)";
            const words = [];
            const look = (node) => {
                if (node instanceof Text) {
                    words.push(...node.data.split(/\s+/));
                } else if (node instanceof HTMLSelectElement) {
                    if (node.getClientRects().length > 0) {
                        words.push(...node.selectedOptions[0].text.split(/\s+/));
                    }
                } else if (
                    node instanceof Element &&
                    node.getClientRects().length + node.childElementCount > 0 &&
                    getComputedStyle(node).display !== "none" &&
                    !node.matches(`button:not(${said}), header, #status, #comment, .unseen`)
                ) {
                    const closed = node.matches("details:not([open])");
                    for (const child of closed ? [node.firstElementChild] : node.childNodes) {
                        look(child);
                    }
                }
            };
            look(root);
            return words.filter((word) => word);
        },
        [selector, at],
    );

/** Checks that an SVG has words in this order. Lines may break within a word. */
function hasWords({ texts }, words, what) {
    const all = texts.join("").replace(/\s+/g, "");
    let from = 0;
    for (const word of words) {
        const found = all.indexOf(word, from);
        assert.ok(found >= 0, `${what}: no "${word}" in "${all.slice(from, from + 300)}"`);
        from = found + word.length;
    }
}

async function checkSaved(page, words, act, what) {
    const saved = await download(page, () => act("SVG"));
    const svg = await readSvg(page, saved.text);
    assert.equal(svg.problem, undefined, what);
    hasWords(svg, words, what);
    const { size, drawn } = await readPng(page, () => act("PNG"));
    assert.deepEqual(size, svg.size, what);
    assert.ok(drawn > 0.01, `${what}: the picture is empty: ${drawn}`);
}

const places = [
    [run, "#r0=20000000&r1=40000000&s0=50000000&s1=70000000&selected=200&whatif=1&stacks=live"],
    [pageFile("checkerboard"), "#culprit=0&stack=3"], // with source code
    [pageFile("job"), ""],
    [pageFile("runs"), ""],
    [pageFile("screens"), "#device=1"],
    ...["genuine", "leak", "state"].map((name) => [report(name), ""]),
];

for (const [path, hash] of places) {
    const name = path.match(/\w+(?=\.html)/)[0];
    test(`every panel of the page "${name}" is saved as PNG and SVG with all its words`, () =>
        on(path, { hash }, async (page) => {
            if (path === run) await page.keyboard.press("h"); // selects a hole
            await settle(page);
            const outside = await page.evaluate(
                (panels) =>
                    [...document.querySelectorAll("main *")]
                        .filter(
                            (element) =>
                                element.getClientRects().length > 0 &&
                                element.textContent.trim() &&
                                element.childElementCount === 0 &&
                                !element.closest(`${panels}, #own`),
                        )
                        .map(({ outerHTML }) => outerHTML),
                panels,
            );
            assert.deepEqual(outside, [], "not in a panel");
            if (name === "run") assert.ok(await page.isVisible("#hole"));
            if (name === "checkerboard") assert.ok(await page.isVisible("#source"));
            const all = await page.locator(panels).all();
            let count = 0;
            for (const [at, panel] of all.entries()) {
                if (!(await panel.isVisible())) continue;
                const id = `${name} ${(await panel.getAttribute("id")) ?? at}`;
                const words = await wordsOf(page, panels, at);
                const saves = panel.locator("button.save");
                assert.ok((await saves.count()) > 0, `${id} has no button to save it`);
                assert.match(await saves.first().getAttribute("aria-label"), /^save \S/, id);
                await saves.first().click();
                await checkSaved(
                    page,
                    words,
                    (format) => page.click(`#dialog >> text=${format}`),
                    id,
                );
                await page.keyboard.press("Escape");
                ++count;
            }
            assert.ok(count >= 6, `${name}: ${count} panels`);
        }));

    test(`the page "${name}" is saved with all its panels`, () =>
        on(path, { hash }, async (page) => {
            const words = await wordsOf(page, "#app");
            assert.ok(words.length > 60);
            await checkSaved(page, words, (format) => page.click(`#${format.toLowerCase()}`), name);
        }));
}

test("a panel of any size is saved in at most 64 million pixels, no side above 32,000", () =>
    on(run, {}, async (page) => {
        // No memory for such pictures is needed: the browser is asked for the file, and refuses.
        await page.evaluate(() => {
            window.asked = [];
            HTMLCanvasElement.prototype.toBlob = function (done) {
                window.asked.push([this.width, this.height]);
                done(null);
            };
        });
        for (const [width, height, most] of [
            [500, 400, [524, 600]],
            [9000, 9000, [8100, 8100]],
            [500, 50_000, [400, 32_001]],
        ]) {
            await page.evaluate(
                ([width, height]) => {
                    const notes = document.getElementById("notes");
                    const large = document.createElement("p");
                    large.style.height = `${height}px`;
                    large.textContent = "large";
                    notes.style.width = `${width}px`;
                    notes.style.minWidth = `${width}px`;
                    notes.querySelector("p.large")?.remove();
                    large.className = "large";
                    notes.append(large);
                },
                [width, height],
            );
            await page.locator("#notes .save").click();
            await page.click("#dialog >> text=PNG");
            await eventually(async () =>
                assert.match(await text(page, "#status"), /cannot draw a picture of this size/),
            );
            await page.keyboard.press("Escape");
            const [asked] = await page.evaluate(() => window.asked.splice(0));
            assert.ok(asked[0] * asked[1] <= 64.1e6, `${asked}`);
            assert.ok(asked[0] <= most[0] && asked[1] <= most[1], `${asked}`);
            assert.ok(asked[1] >= most[1] * 0.8, `${asked}: smaller than necessary`);
        }
    }));

test("saving changes nothing on the page", () =>
    on(run, { hash: "#selected=200", height: 700 }, async (page) => {
        const state = () =>
            page.evaluate(() =>
                [...document.querySelectorAll("#app *")].map((element) => {
                    const { x, y, width, height } = element.getBoundingClientRect();
                    const { scrollTop, className } = element;
                    const style = element.getAttribute("style") ?? "";
                    return `${element.id} ${className} ${style} ${scrollTop} ${x} ${y} ${width} ${height}`;
                }),
            );
        await page.evaluate(() => {
            document.getElementById("side").scrollTop = 40;
            document.getElementById("main").scrollTop = 60;
        });
        await settle(page);
        const before = await state();
        for (const id of ["side", "main"]) {
            assert.ok((await page.$eval(`#${id}`, (place) => place.scrollTop)) > 20, id);
        }
        const drawn = await Promise.all(["#chart", "#map"].map((id) => print(page, id)));
        for (const format of ["png", "svg"]) {
            await download(page, () => page.click(`#${format}`));
            await settle(page);
            assert.deepEqual(await state(), before);
        }
        // At its end, a place that becomes shorter would scroll.
        await page.evaluate(() => {
            document.getElementById("side").scrollTop = 10_000;
            document.getElementById("main").scrollTop = 10_000;
            document.querySelector("#details .save").click();
        });
        await settle(page);
        const end = await state();
        await download(page, () => page.click("#dialog >> text=PNG"));
        await settle(page);
        assert.deepEqual(await state(), end);
        assert.deepEqual(await Promise.all(["#chart", "#map"].map((id) => print(page, id))), drawn);
    }));

test("the SVG holds vectors and escaped text, and is well formed", () =>
    on(run, { hash: "#stacks=live" }, async (page) => {
        const saved = await download(page, () => page.click("#svg"));
        assert.equal(saved.name, "fragtrace.svg");
        assert.equal((await readSvg(page, saved.text)).problem, undefined);
        assert.match(saved.text, /Linear\.__init__/);
        assert.match(
            saved.text,
            /NVIDIA H100 &lt;b&gt;80GB&lt;\/b&gt;/,
            "a name from the trace is text",
        );
        assert.doesNotMatch(saved.text, /<b>/);
        assert.ok((saved.text.match(/<path /g) ?? []).length >= 6);
        assert.equal((saved.text.match(/<image /g) ?? []).length, 1);
        const image = await download(page, () => page.keyboard.press("i"));
        assert.equal(image.name, "fragtrace.png");
    }));

test("a saved name cannot be markup or turn the text after it around", async () => {
    const rename = ({ devices: [device] }) => {
        device.cards[0].categories[0].name = "R&amp;D & <i>\u202ekind";
        device.categories[0] = device.cards[0].categories[0].name;
    };
    await changedPage(pageFile("screens"), rename, (path) =>
        on(path, {}, async (page) => {
            const saved = await readSvg(
                page,
                (await download(page, () => page.click("#svg"))).text,
            );
            assert.equal(saved.problem, undefined);
            assert.ok(
                saved.texts.some((one) => one.startsWith("R&amp;D & <i>\\u202ekind ")),
                saved.texts.join("\n"),
            );
            assert.ok(!saved.texts.some((one) => one.includes("\u202e")));
            const act = () => page.click("#png");
            const { size, share } = await readPng(page, act, [0x33, 0x22, 0x88]);
            assert.deepEqual(size, saved.size);
            assert.ok(share > 0.001, "the bar of the categories");
        }),
    );
});

test("a table of a dialog is saved with all cells that it shows", async () => {
    for (const width of [1440, 390]) {
        await on(run, { width }, async (page) => {
            for (const id of ["segments-table", "whatif-table"]) {
                await page.evaluate((name) => document.getElementById(name).click(), id);
                const words = await wordsOf(page, ".datatable tbody");
                const act = (format) => page.click(`.datatable:first-child >> text=${format}`);
                await checkSaved(page, words, act, `${id} at ${width}`);
                await page.keyboard.press("Escape");
            }
        });
    }
});

test("no table of a dialog is wider than a window of 390 pixels, and each can be sorted", async () => {
    const ids =
        "help, chart-table, map-table, segments-sizes, segments-table, stacks-table, " +
        "culprits-table, whatif-table, ranks-table";
    const tables = `${ids.replace(/([\w-]+)/g, "#$1")}, #runs-lines button, #range button`;
    for (const [path, hash] of places) {
        await on(path, { width: 390, hash }, async (page) => {
            const count = await page.locator(tables).count();
            for (let at = 0; at < count; ++at) {
                const name = await page.evaluate(
                    ([tables, at]) => {
                        const button = document.querySelectorAll(tables)[at];
                        if (button.id === "help" || /table|sizes/.test(button.textContent)) {
                            button.click();
                        }
                        return `${button.id} ${button.textContent}`;
                    },
                    [tables, at],
                );
                if (!(await page.locator("#dialog").isVisible())) continue;
                const over = await page.evaluate(() => {
                    const body = document.getElementById("dialog-body");
                    const { right } = body.getBoundingClientRect();
                    return [...body.querySelectorAll("*"), body]
                        .filter(
                            (element) =>
                                element.getBoundingClientRect().right > right + 1 ||
                                element.scrollWidth > body.clientWidth,
                        )
                        .map(({ outerHTML }) => outerHTML.slice(0, 200));
                });
                assert.deepEqual(over, [], `${path} ${name}`);
                for (const button of await page.locator("#dialog .sort").all()) {
                    assert.ok(await button.isVisible(), name);
                }
                await page.keyboard.press("Escape");
            }
        });
    }
});

test("in a narrow window a row of many columns begins with its name, and the heads sort", () =>
    on(run, { width: 390 }, async (page) => {
        await page.evaluate(() => document.getElementById("map-table").click());
        const first = "#dialog .datatable:first-child tbody tr:first-child td";
        const tops = await page.$$eval(first, (cells) =>
            cells
                .filter((cell) => cell.offsetParent)
                .map((cell) => [
                    cell.className.includes("names"),
                    cell.getBoundingClientRect().top,
                ]),
        );
        const [[, top]] = tops.filter(([names]) => names);
        assert.ok(tops.every(([names, other]) => names || other > top));
        const labels = await page.$$eval(first, (cells) =>
            cells.map((cell) => getComputedStyle(cell, "::before").content),
        );
        assert.match(labels[0], /size/);
        const size = () => page.getAttribute(`${first}:first-child`, "title");
        const before = Number(await size());
        await page.click("#dialog .datatable:first-child .sort >> nth=0");
        assert.ok(Number(await size()) > before, "the largest is first");
        assert.match(await text(page, "#dialog .datatable:first-child h2"), /^Blocks at/);
    }));
