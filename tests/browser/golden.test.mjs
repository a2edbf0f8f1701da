// Compares whole pages with stored pictures, light and dark, at a fifth of their size.
//
// Fonts differ between machines and browser versions, so parts of the page are compared by their
// mean colours. `run.sh golden BUILD` writes new stored pictures: look at them before you keep
// them.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { open } from "./browser.mjs";
import { pageFile, sharedBrowser } from "./look.mjs";

const folder = join(dirname(fileURLToPath(import.meta.url)), "golden");
const names = ["checkerboard", "run"];
const schemes = ["light", "dark"];
const fileOf = (name, scheme) => join(folder, `${name}-${scheme}.png`);
const [width, height] = [288, 192];

const tile = 12; // pixels; 24 x 16 tiles
const mostMean = 5; // largest allowed mean difference of a tile, per channel
const mostTiles = 8; // this many tiles may differ by more: letters, and the edge of a panel

const shared = sharedBrowser();

/** A PNG of the page, reduced by averaging. `hidden` names a panel that is left out. */
async function picture(name, scheme, hidden = "") {
    const { page, context, problems } = await open(shared.browser, pageFile(name), {
        scheme,
    });
    await page.waitForTimeout(1200);
    if (hidden) {
        await page.evaluate(
            (hidden) => (document.getElementById(hidden).style.visibility = "hidden"),
            hidden,
        );
    }
    const full = await page.screenshot({ animations: "disabled", caret: "hide" });
    assert.deepEqual(problems, []);
    await context.close();
    const drawing = await shared.browser.newPage();
    const small = await drawing.evaluate(
        async ([data, width, height]) => {
            const image = await createImageBitmap(
                await (await fetch(`data:image/png;base64,${data}`)).blob(),
            );
            const large = new OffscreenCanvas(image.width, image.height);
            large.getContext("2d").drawImage(image, 0, 0);
            const from = large.getContext("2d").getImageData(0, 0, image.width, image.height).data;
            const canvas = new OffscreenCanvas(width, height);
            const to = canvas.getContext("2d").createImageData(width, height);
            const step = image.width / width;
            for (let y = 0; y < height; ++y) {
                for (let x = 0; x < width; ++x) {
                    for (let channel = 0; channel < 4; ++channel) {
                        let sum = 0;
                        for (let v = 0; v < step; ++v) {
                            for (let h = 0; h < step; ++h) {
                                sum +=
                                    from[
                                        ((y * step + v) * image.width + x * step + h) * 4 + channel
                                    ];
                            }
                        }
                        to.data[(y * width + x) * 4 + channel] = sum / (step * step);
                    }
                }
            }
            canvas.getContext("2d").putImageData(to, 0, 0);
            const bytes = new Uint8Array(
                await (await canvas.convertToBlob({ type: "image/png" })).arrayBuffer(),
            );
            return btoa(String.fromCharCode(...bytes));
        },
        [full.toString("base64"), width, height],
    );
    await drawing.close();
    return Buffer.from(small, "base64");
}

/** The number of tiles that differ. */
async function difference(one, other) {
    const page = await shared.browser.newPage();
    const result = await page.evaluate(
        async ([files, tile, mostMean]) => {
            const [a, b] = await Promise.all(
                files.map(async (file) => {
                    const image = await createImageBitmap(
                        await (await fetch(`data:image/png;base64,${file}`)).blob(),
                    );
                    const canvas = new OffscreenCanvas(image.width, image.height);
                    canvas.getContext("2d").drawImage(image, 0, 0);
                    return canvas.getContext("2d").getImageData(0, 0, image.width, image.height);
                }),
            );
            let differing = 0;
            for (let top = 0; top < a.height; top += tile) {
                for (let left = 0; left < a.width; left += tile) {
                    let sum = 0;
                    for (let y = top; y < top + tile; ++y) {
                        for (
                            let at = (y * a.width + left) * 4;
                            at < (y * a.width + left + tile) * 4;
                            ++at
                        ) {
                            sum += Math.abs(a.data[at] - b.data[at]);
                        }
                    }
                    if (sum / (tile * tile * 3) > mostMean) ++differing;
                }
            }
            return differing;
        },
        [[one, other].map((file) => file.toString("base64")), tile, mostMean],
    );
    await page.close();
    return result;
}

if (process.argv.includes("--write")) {
    test("new stored pictures are written", async () => {
        mkdirSync(folder, { recursive: true });
        for (const name of names) {
            for (const scheme of schemes) {
                writeFileSync(fileOf(name, scheme), await picture(name, scheme));
            }
        }
    });
} else {
    for (const name of names) {
        for (const scheme of schemes) {
            test(`the page of the ${name} equals its stored picture, ${scheme}`, async () => {
                const now = await picture(name, scheme);
                const tiles = await difference(now, readFileSync(fileOf(name, scheme)));
                if (tiles > mostTiles) {
                    const seen = join(process.env.FRAGTRACE_PAGES, `${name}-${scheme}.png`);
                    writeFileSync(seen, now);
                    assert.fail(
                        `${tiles} of ${(width / tile) * (height / tile)} tiles differ; the picture now: ${seen}`,
                    );
                }
            });
        }
    }

    test("the comparison distinguishes pages, themes and a missing panel", async () => {
        const kept = readFileSync(fileOf("run", "light"));
        const others = {
            dark: readFileSync(fileOf("run", "dark")),
            checkerboard: readFileSync(fileOf("checkerboard", "light")),
        };
        for (const panel of ["time", "addresses", "segments-panel", "culprits"]) {
            others[panel] = await picture("run", "light", panel);
        }
        for (const [name, other] of Object.entries(others)) {
            const tiles = await difference(kept, other);
            assert.ok(tiles > mostTiles, `${name}: ${tiles}`);
        }
    });
}
