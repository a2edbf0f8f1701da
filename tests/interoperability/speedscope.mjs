// node speedscope.mjs FILE [PICTURE.png]: opens a file in speedscope, as its command does. Prints
// what speedscope itself writes when the user saves the profiles that it has read.
//
// Exit status 77, with the reason, if Chromium or speedscope is missing.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { launch, missing } from "../browser/browser.mjs";

const [file, picture] = process.argv.slice(2);
const tools = createRequire(new URL("../browser/browser.mjs", import.meta.url));
let problem = await missing();
let release;
try {
    release = join(dirname(tools.resolve("speedscope/package.json")), "dist", "release");
} catch {
    problem ??= "speedscope is missing: run npm ci in tests/browser";
}
if (problem) {
    console.log(problem);
    process.exit(77);
}

const folder = mkdtempSync(join(tmpdir(), "speedscope-"));
const browser = await launch();
try {
    const data = readFileSync(file).toString("base64");
    const script = join(folder, "profile.js");
    writeFileSync(
        script,
        `speedscope.loadFileFromBase64(${JSON.stringify(basename(file))}, ${JSON.stringify(data)})`,
    );
    const page = await (await browser.newContext()).newPage();
    const alerts = [];
    page.on("dialog", async (dialog) => {
        alerts.push(dialog.message());
        await dialog.dismiss();
    });
    page.on("pageerror", (error) => alerts.push(String(error)));
    await page.goto(`file://${join(release, "index.html")}#localProfilePath=${script}`);
    // The title has the name of the profiles as soon as they are read.
    await page.waitForFunction(() => document.title.endsWith(" - speedscope"), null, {
        timeout: 60000,
    });
    await page.waitForTimeout(500);
    if (picture) await page.screenshot({ path: picture });
    const download = page.waitForEvent("download", { timeout: 30000 });
    await page.keyboard.press("Control+s");
    const saved = readFileSync(await (await download).path(), "utf8");
    if (alerts.length) throw new Error(alerts.join("; "));
    process.stdout.write(saved);
} finally {
    await browser.close();
    rmSync(folder, { recursive: true });
}
