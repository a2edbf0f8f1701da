// The same page in Firefox: its content, its use, and that it fetches nothing and reports no error.
// Details are tested in Chromium.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, open } from "./firefox.mjs";

const pages = process.env.FRAGTRACE_PAGES;
let firefox;
before(async () => (firefox = await launch()));
after(async () => firefox?.close());

async function on(name, options, look) {
    const page = await open(firefox, join(pages, name), options);
    await page.rest();
    await look(page);
    assert.deepEqual(page.problems(), []);
    assert.deepEqual(
        page
            .requests()
            .filter((url) => !/^(file|blob|data|about|moz-extension|resource):/.test(url)),
        [],
    );
    await page.close();
}

const text = (page, selector) =>
    page.evaluate(`document.querySelector(${JSON.stringify(selector)}).innerText`);
const share = (page, selector, colour, reach = 40) =>
    page.evaluate(`(() => {
    const canvas = document.querySelector(${JSON.stringify(selector)});
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const [red, green, blue] = ${JSON.stringify(colour)};
    let near = 0;
    for (let i = 0; i < data.length; i += 4) {
        const [r, g, b] = [data[i] - red, data[i + 1] - green, data[i + 2] - blue];
        if (Math.abs(r) + Math.abs(g) + Math.abs(b) < ${reach}) ++near;
    }
    return near / (canvas.width * canvas.height);
})()`);

test("Firefox shows the verdict, totals to the byte, and pictures", () =>
    on("checkerboard.html", {}, async (page) => {
        const verdict = await text(page, "#verdict");
        for (const part of ["OOM", "requested", "512 MiB", "940 MiB", "fragment.py:11 keep"]) {
            assert.ok(verdict.includes(part), part);
        }
        assert.match(await text(page, "#totals"), /985,613,312 B/);
        assert.match(await text(page, "#status"), /94 blocks in 94 segments/);
        assert.ok((await share(page, "#segments", [242, 140, 28])) > 0.1);
        assert.ok((await share(page, "#segments", [74, 6, 51])) > 0.1);
        assert.ok(
            (await share(page, "#map", [74, 6, 51])) +
                (await share(page, "#map + canvas", [74, 6, 51])) >
                0.01,
        );
    }));

test("Firefox handles keys, links, colours, curves and tables", () =>
    on("run.html", { hash: "#stacks=live&colour=stack&whatif=1" }, async (page) => {
        assert.ok((await share(page, "#chart", [26, 127, 55], 24)) > 0.002, "the replayed curve");
        assert.match(await text(page, "#map-mode"), /coloured by stack/);
        await page.press("f", "g", "c");
        await page.rest();
        const hash = await page.evaluate("location.hash");
        for (const part of ["shape=flame", "fold=0", "stacks=live", "whatif=1"]) {
            assert.ok(hash.includes(part), hash);
        }
        assert.ok(!hash.includes("colour="));
        await page.evaluate(`document.querySelector("#map-table").click(), true`);
        assert.match(await text(page, "dialog"), /Blocks at .*[\d,]+ rows/s);
        assert.equal(
            await page.evaluate(`document.querySelectorAll("dialog img, dialog b").length`),
            0,
        );
    }));

test("Firefox saves the page as PNG and SVG with its words, and scrolls to where it was", () =>
    on("run.html", { hash: "#selected=200" }, async (page) => {
        await page.evaluate(`(document.querySelector("#side").scrollTop = 30, true)`);
        const [svg, size, scroll] = JSON.parse(
            await page.evaluate(`(async () => {
                const saved = [];
                HTMLAnchorElement.prototype.click = () => undefined;
                URL.createObjectURL = (blob) => (saved.push(blob), "#");
                for (const id of ["svg", "png"]) {
                    document.getElementById(id).click();
                    while (saved.length < (id === "svg" ? 1 : 2)) {
                        await new Promise((done) => setTimeout(done, 20));
                    }
                }
                const image = await createImageBitmap(saved[1]);
                return JSON.stringify([
                    await saved[0].text(),
                    [image.width, image.height],
                    document.querySelector("#side").scrollTop,
                ]);
            })()`),
        );
        const [, ...wanted] = /width="(\d+)" height="(\d+)"/.exec(svg);
        assert.deepEqual(size, wanted.map(Number));
        assert.equal(scroll, 30);
        const all = svg.replace(/<[^>]*>|\s/g, "");
        for (const part of [
            "OOM",
            "samples.py:33SampleCache.add",
            "Totalsofthereport",
            "Block200",
        ]) {
            assert.ok(all.includes(part), part);
        }
    }));

test("Firefox finds an expression and stops one that would never end", () =>
    on("run.html", { hash: "#q=%2F%5Esamples%2F" }, async (page) => {
        const status = async (expected) => {
            for (const end = Date.now() + 20_000; ;) {
                const is = await text(page, "#status");
                if (expected.test(is)) return;
                assert.ok(Date.now() < end, is);
                await new Promise((done) => setTimeout(done, 100));
            }
        };
        await status(/search "\/\^samples\/": [1-9][0-9,]* blocks/);
        await page.evaluate(`(location.hash = "#q=%2F%5E(.%2B)%2B~%24%2F", true)`);
        await status(/": stopped after 2 s, the expression is too slow/);
        await page.evaluate(`(location.hash = "#q=%2Fsamples%2F", true)`);
        await status(/search "\/samples\/": [1-9][0-9,]* blocks/);
    }));

test("Firefox reports a file that was cut off", async () => {
    const folder = mkdtempSync(join(tmpdir(), "fragtrace-page-"));
    const whole = readFileSync(join(pages, "checkerboard.html"), "utf8");
    writeFileSync(
        join(folder, "cut.html"),
        whole.slice(0, whole.indexOf('id="ft-0-blocks-0"') + 300),
    );
    const page = await open(firefox, join(folder, "cut.html"));
    await page.rest();
    assert.match(await text(page, "#plain"), /cut off/);
    await page.close();
    rmSync(folder, { recursive: true });
});
