// node screenshot.mjs PAGE.html OUTPUT.png [WIDTH HEIGHT light|dark #hash]: a picture of a page.
import { resolve } from "node:path";
import { launch, missing, open } from "./browser.mjs";

const [input, output, width = "1440", height = "960", scheme = "light", hash = ""] =
    process.argv.slice(2);
const problem = await missing();
if (problem || !output) {
    console.error(
        problem ?? "usage: screenshot.mjs PAGE.html OUTPUT.png [WIDTH HEIGHT light|dark #hash]",
    );
    process.exit(2);
}
const browser = await launch();
const { page, problems } = await open(browser, resolve(input), {
    width: Number(width),
    height: Number(height),
    scheme,
    hash,
});
await page.waitForTimeout(900);
await page.screenshot({ path: output });
for (const line of problems) console.log(line);
console.log(await page.evaluate(() => JSON.stringify(document.documentElement.dataset)));
await browser.close();
