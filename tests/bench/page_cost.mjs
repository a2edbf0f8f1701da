// node page_cost.mjs page PAGE.html | viz VIEWER.html FOLDER: the time in which a page, or the
// snapshot viewer of PyTorch, opens in headless Chromium and reacts. Prints one JSON object.
//
// Opening: medians of several loads, each in a new context, counted from the navigation. A frame is
// the time from one animation frame to the next while something moves in each of them.
import { existsSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { launch, missing } from "../browser/browser.mjs";

const [kind, input, folder, loads = "5"] = process.argv.slice(2);
const problem = await missing();
if (problem || !input) {
    console.error(
        problem ?? "usage: page_cost.mjs page PAGE.html - [LOADS] | viz VIEWER.html FOLDER [LOADS]",
    );
    process.exit(2);
}
const path = resolve(input);
const at = (values, share) => [...values].sort((a, b) => a - b)[Math.floor(values.length * share)];
const patience = 120_000;
const browser = await launch();

async function opened() {
    const context = await browser.newContext({ viewport: { width: 1440, height: 960 } });
    const page = await context.newPage();
    if (kind === "viz") await serve(page);
    await page.goto(`file://${path}`, { waitUntil: "commit", timeout: patience });
    return { context, page };
}

// PyTorch's page loads its script from a CDN, and that script loads d3. Both come from `folder`.
async function serve(page) {
    await page.route(/^https:/, (route) => {
        const name = new URL(route.request().url()).pathname;
        const wanted =
            ["process_alloc_data.js", "MemoryViz.js"].find((file) => name.endsWith(file)) ??
            "d3.js";
        const file = join(folder, wanted);
        if (!existsSync(file)) return route.abort();
        return route.fulfill({
            body: readFileSync(file),
            contentType: "text/javascript",
            headers: { "access-control-allow-origin": "*" },
        });
    });
}

// The time after the frame that shows the element `shown`.
const painted = () =>
    new Promise((done) =>
        requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0)),
    );

async function heap(page) {
    const session = await page.context().newCDPSession(page);
    await session.send("HeapProfiler.enable");
    await session.send("HeapProfiler.collectGarbage");
    const usage = await session.send("Runtime.getHeapUsage");
    return (usage.usedSize + (usage.backingStorageSize ?? 0)) / 1e6;
}

// Calls `move` with the frame's number in each frame. The first frames are left out.
const frames = (page, move, argument, count = 60) =>
    page.evaluate(
        ([text, argument, count]) =>
            new Promise((done) => {
                const move = (0, eval)(`(${text})`);
                const times = [];
                let last = performance.now();
                const began = last;
                const next = () => {
                    const now = performance.now();
                    times.push(now - last);
                    last = now;
                    if (times.length > count || now - began > 60_000) {
                        return done(times.slice(Math.min(3, times.length - 1)));
                    }
                    move(times.length, argument);
                    requestAnimationFrame(next);
                };
                requestAnimationFrame(next);
            }),
        [move.toString(), argument, count],
    );

// The longest frame within two seconds of a change. Work may begin late: when the window rests.
const longest = (page, act) =>
    page.evaluate(
        (text) =>
            new Promise((done) => {
                let last = performance.now();
                const began = last;
                let most = 0;
                const next = () => {
                    const now = performance.now();
                    most = Math.max(most, now - last);
                    last = now;
                    if (now - began > 2000) done(most);
                    else requestAnimationFrame(next);
                };
                requestAnimationFrame(next);
                (0, eval)(text);
            }),
        act,
    );

async function measureChanges(page) {
    const key = (name) =>
        `document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "${name}", bubbles: true }))`;
    const changes = {};
    for (const colour of ["age", "phase", "stream", "pool", "category", "stack", "state"]) {
        changes[`colours by ${colour}`] = await longest(
            page,
            `{
                const select = document.getElementById("colour");
                select.value = "${colour}";
                select.dispatchEvent(new Event("change", { bubbles: true }));
            }`,
        );
    }
    changes["zoom, then rest"] = await longest(page, key("w"));
    changes["back, then rest"] = await longest(page, key("0"));
    changes["the other theme"] = await longest(page, key("t"));
    changes["the first theme"] = await longest(page, key("t"));
    return changes;
}

// Median and 95th percentile of the frames, and processor time of the page's main thread per frame.
// Processor time says more than the clock if other programs run, too.
const shares = (measured) =>
    Object.fromEntries(
        Object.entries(measured).map(([name, { times, processor }]) => [
            name,
            [at(times, 0.5), at(times, 0.95), processor],
        ]),
    );

async function measurePage() {
    const opening = { paint: [], interactive: [] };
    for (let i = 0; i < Number(loads); ++i) {
        const { context, page } = await opened();
        await page.waitForSelector("html[data-ready], html[data-failed]", { timeout: patience });
        const times = await page.evaluate(() => ({ ...document.documentElement.dataset }));
        if (times.failed) throw new Error("the page says that it cannot be shown");
        opening.paint.push(Number(times.paintMs));
        opening.interactive.push(Number(times.interactiveMs));
        await context.close();
    }
    const { page, context } = await opened();
    await page.waitForSelector("html[data-ready]", { timeout: patience });
    const blocks = await page.evaluate(() => Number(document.documentElement.dataset.blocks));
    await page.waitForTimeout(1500);
    const heapMb = await heap(page);
    const changes = await measureChanges(page);
    const press = (number, [there, back]) =>
        document.body.dispatchEvent(
            new KeyboardEvent("keydown", { key: number % 20 < 10 ? there : back, bubbles: true }),
        );
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const spent = async () =>
        (await session.send("Performance.getMetrics")).metrics.find(
            ({ name }) => name === "TaskDuration",
        ).value * 1000;
    const moved = async (keys) => {
        const before = await spent();
        const times = await frames(page, press, keys);
        return { times, processor: ((await spent()) - before) / (times.length + 3) };
    };
    const scrubbing = () => moved(["ArrowLeft", "ArrowRight"]);
    const scrub = await scrubbing();
    // The same with options that cost more: each is switched on and off again in turn.
    const cursor = { plain: scrub };
    const type = async (text) => {
        await page.fill("#search", text);
        await page.evaluate(() => document.activeElement.blur());
        await page.waitForTimeout(1500);
    };
    for (const colour of ["stack", "phase"]) {
        await page.selectOption("#colour", colour);
        await page.waitForTimeout(1500);
        cursor[`coloured by ${colour}`] = await scrubbing();
    }
    await page.selectOption("#colour", "state");
    await type("a");
    cursor["with a search"] = await scrubbing();
    await type("");
    for (const measure of ["live", "churn", "growth"]) {
        await page.selectOption("#stacks", measure);
        await page.waitForTimeout(500);
        if (measure === "growth") await page.keyboard.press("m");
        cursor[`stacks by ${measure}`] = await scrubbing();
    }
    await page.click("#fold");
    await page.waitForTimeout(500);
    cursor["stacks by growth, all frames"] = await scrubbing();
    await page.click("#fold");
    await page.keyboard.press("m");
    await page.selectOption("#stacks", "holes");
    await page.waitForTimeout(500);
    const moving = {};
    const closer = async (times) => {
        for (let i = 0; i < times; ++i) await page.keyboard.press("w");
        await page.waitForTimeout(1200);
    };
    await page.keyboard.press("0");
    moving["zoom from the whole"] = await moved(["w", "s"]);
    await closer(1);
    moving["pan over 3/5"] = await moved(["a", "d"]);
    await closer(4);
    moving["pan over 1/13"] = await moved(["a", "d"]);
    await closer(4);
    moving["pan over 1/100"] = await moved(["a", "d"]);
    cursor["in 1/100 of the time"] = await scrubbing();
    await closer(4);
    moving["pan over 1/800"] = await moved(["a", "d"]);
    // Kept separate from the others, whose limits are older than these.
    const more = {};
    await page.keyboard.press("0");
    for (let i = 0; i < 5; ++i) await page.keyboard.press("w");
    await page.selectOption("#colour", "stack");
    await page.waitForTimeout(2500);
    more["pan over 1/13, coloured by stack"] = await moved(["a", "d"]);
    await page.selectOption("#colour", "state");
    await type("a");
    more["pan over 1/13 with a search"] = await moved(["a", "d"]);
    await context.close();
    const all = Object.values(moving).flatMap(({ times }) => times);
    return {
        blocks,
        mb: statSync(path).size / 1e6,
        paint_ms: at(opening.paint, 0.5),
        interactive_ms: at(opening.interactive, 0.5),
        interactive_range: [Math.min(...opening.interactive), Math.max(...opening.interactive)],
        scrub_median_ms: at(scrub.times, 0.5),
        scrub_95th_ms: at(scrub.times, 0.95),
        move_median_ms: at(all, 0.5),
        move_95th_ms: at(all, 0.95),
        moving: shares({ ...moving, ...more }),
        cursor: shares(cursor),
        changes,
        heap_mb: heapMb,
    };
}

// The first picture consists of the blocks' polygons. It moves by d3's zoom, which listens to wheel
// events.
async function measureViz() {
    const paint = [];
    let last;
    for (let i = 0; i < Number(loads); ++i) {
        await last?.context.close();
        last = await opened();
        await last.page.waitForFunction(
            () => document.querySelectorAll("svg polygon, svg path.area, svg rect").length > 10,
            null,
            { timeout: patience, polling: 20 },
        );
        paint.push(await last.page.evaluate(painted));
    }
    const { page } = last;
    await page.waitForTimeout(1000);
    const heapMb = await heap(page);
    const wheel = (number) => {
        const svgs = [...document.querySelectorAll("svg")];
        const largest = svgs.sort(
            (a, b) => b.clientWidth * b.clientHeight - a.clientWidth * a.clientHeight,
        )[0];
        const target = largest.querySelector("polygon") ?? largest;
        const box = largest.getBoundingClientRect();
        target.dispatchEvent(
            new WheelEvent("wheel", {
                deltaY: number % 20 < 10 ? -120 : 120,
                clientX: box.left + box.width / 2,
                clientY: box.top + box.height / 2,
                bubbles: true,
                cancelable: true,
                view: window,
            }),
        );
    };
    const transform = () =>
        page.evaluate(() =>
            [...document.querySelectorAll("svg g[transform]")]
                .map((g) => g.getAttribute("transform"))
                .join(),
        );
    const before = await transform();
    const moved = await frames(page, wheel, null, 5);
    const really = before !== (await transform());
    const zoom = moved.concat(await frames(page, wheel, null, 40));
    const polygons = await page.evaluate(() => document.querySelectorAll("svg polygon").length);
    return {
        mb: statSync(path).size / 1e6,
        paint_ms: at(paint, 0.5),
        polygons,
        heap_mb: heapMb,
        ...(really ? { move_median_ms: at(zoom, 0.5), move_95th_ms: at(zoom, 0.95) } : {}),
    };
}

try {
    console.log(JSON.stringify(kind === "viz" ? await measureViz() : await measurePage()));
} catch (error) {
    console.error(String(error.message ?? error).split("\n")[0]);
    process.exitCode = 1;
} finally {
    await browser.close();
}
