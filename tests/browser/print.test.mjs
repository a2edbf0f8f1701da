// The page on paper. FRAGTRACE_PAGES holds pages of made-up data.
import assert from "node:assert/strict";
import { test } from "node:test";
import { hash, pageFile, settle, share, visitor } from "./look.mjs";

const run = pageFile("run");
const visit = visitor();

test("no box on paper is smaller than its content, at the widths of A4 and A3", async () => {
    for (const name of ["run", "screens", "runs", "job"]) {
        await visit(pageFile(name), {}, async (page) => {
            await page.emulateMedia({ media: "print" });
            // A table of a real trace has more rows.
            await page.$eval("#culprits-list tbody", (rows) => {
                const [row] = rows.rows;
                for (let i = 0; i < 30; ++i) rows.append(row.cloneNode(true));
            });
            for (const width of [794, 1047, 1123, 1587]) {
                await page.setViewportSize({ width, height: 760 });
                await settle(page);
                const small = await page.$$eval(
                    "main, main section, #left, #right, #culprits-list, #whatif-list, #heat-box",
                    (boxes) =>
                        boxes
                            .filter(
                                ({ scrollHeight, clientHeight }) => scrollHeight > clientHeight + 3,
                            )
                            .map(({ id }) => id),
                );
                assert.deepEqual(small, [], `${name} at ${width}`);
            }
        });
    }
});

test("paper is light, has no controls, and cuts nothing off", () =>
    visit(
        run,
        { scheme: "dark", hash: "#r0=20000000&r1=40000000&selected=200&whatif=1" },
        async (page) => {
            const white = () => share(page, "#chart", [255, 255, 255]);
            assert.equal(await white(), 0);
            const before = await hash(page);
            await page.emulateMedia({ media: "print" });
            await page.setViewportSize({ width: 760, height: 1000 });
            await settle(page);
            assert.ok((await white()) > 0.1, "the pictures are light, too");
            const { cut, controls, over } = await page.evaluate(() => {
                const shown = (element) => element.getClientRects().length > 0;
                return {
                    cut: [...document.querySelectorAll("#culprits-list, #range, #side, #details")]
                        .filter((place) => place.scrollHeight > place.clientHeight + 3)
                        .map((place) => place.id),
                    controls: [
                        ...document.querySelectorAll("header button, .bar button, .save, #status"),
                    ]
                        .filter(shown)
                        .map((element) => element.outerHTML),
                    over: document.documentElement.scrollWidth - innerWidth,
                };
            });
            assert.deepEqual(cut, []);
            assert.deepEqual(controls, []);
            assert.ok(over <= 0, `${over} pixels too wide`);
            for (const id of ["verdict", "time", "range", "addresses", "whatif", "details"]) {
                assert.ok(await page.locator(`#${id}`).isVisible(), id);
            }
            // Times in a card are buttons on the screen and text on paper.
            assert.ok(await page.locator("#range .figures button").isVisible());
            assert.ok((await page.pdf({ format: "A4" })).length > 10_000);
            await page.emulateMedia({ media: "screen", colorScheme: "dark" });
            await settle(page);
            assert.equal(await page.getAttribute("html", "data-theme"), "dark");
            assert.equal(await white(), 0);
            assert.deepEqual(await hash(page), before);
        },
    ));
