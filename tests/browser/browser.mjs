// Chromium for the tests of the page: finds it and its driver, or says how to get them.
import { existsSync } from "node:fs";

const places = [
    process.env.FRAGTRACE_CHROMIUM,
    "/usr/bin/chromium-headless-shell", // needs a fifth less processor time than the next
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
];

/** Why the tests cannot run here, as a line that says what to install. null if they can. */
export async function missing() {
    if (!places.some((path) => path && existsSync(path))) {
        return "Chromium is missing: apt-get install chromium-headless-shell (or set FRAGTRACE_CHROMIUM)";
    }
    for (const name of ["playwright-core", "axe-core"]) {
        try {
            await import(name);
        } catch {
            return `${name} is missing: run npm ci in tests/browser`;
        }
    }
    return null;
}

export async function launch() {
    const { chromium } = await import("playwright-core");
    return chromium.launch({
        executablePath: places.find((path) => path && existsSync(path)),
        args: ["--no-sandbox", "--disable-gpu"],
    });
}

/** Opens one of our pages, waits until it is usable, and collects errors. */
export async function open(
    browser,
    path,
    { width = 1440, height = 960, scheme = "light", hash = "" } = {},
) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
    const page = await context.newPage();
    const problems = [];
    const requests = [];
    page.on("console", (message) => {
        // The tests read pixels, which the page itself never does.
        if (message.text().includes("willReadFrequently")) return;
        if (["error", "warning"].includes(message.type())) problems.push(message.text());
    });
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("request", (request) => requests.push(request.url()));
    await page.goto(`file://${path}${hash}`);
    await page.waitForSelector("html[data-ready], html[data-failed]", { timeout: 60000 });
    return { page, context, problems, requests };
}
