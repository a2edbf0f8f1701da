// node measure.mjs PAGE.html: the time in which a page opens and reacts.
//
// Medians of 5 loads. A frame is the time from one animation frame to the next while the window
// moves.
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { launch, open } from "./browser.mjs";

const path = resolve(process.argv[2]);
const middle = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const most = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length * 0.95)];

const browser = await launch();
const interactive = [];
for (let i = 0; i < 5; ++i) {
    const { page, context } = await open(browser, path);
    const times = await page.evaluate(() => ({
        interactive: Number(document.documentElement.dataset.interactiveMs),
        load: Number(document.documentElement.dataset.loadMs),
    }));
    interactive.push(times.interactive);
    await context.close();
}
const { page } = await open(browser, path);
await page.waitForTimeout(1000);
// Presses `key` once per frame and collects the frame times.
const frames = (key, count) =>
    page.evaluate(
        ([key, count]) =>
            new Promise((done) => {
                const times = [];
                let last = performance.now();
                const next = () => {
                    const now = performance.now();
                    times.push(now - last);
                    last = now;
                    if (times.length > count) return done(times.slice(1));
                    const back = { a: "d", ArrowLeft: "ArrowRight" }[key];
                    document.body.dispatchEvent(
                        new KeyboardEvent("keydown", {
                            key: times.length % 20 < 10 ? key : back,
                            bubbles: true,
                        }),
                    );
                    requestAnimationFrame(next);
                };
                requestAnimationFrame(next);
            }),
        [key, count],
    );
const print = (name, times) =>
    console.log(
        `  ${name}: frame median ${middle(times).toFixed(1)} ms, 95th ${most(times).toFixed(1)} ms`,
    );
const report = async (name, key) => print(name, await frames(key, 60));
// Drags the end of a range over the chart, once per frame, and collects the frame times.
const dragFrames = (count) =>
    page.evaluate(
        (count) =>
            new Promise((done) => {
                const chart = document.getElementById("chart");
                const box = chart.getBoundingClientRect();
                // A synthetic pointer cannot be captured.
                chart.setPointerCapture = () => undefined;
                const send = (type, share) =>
                    chart.dispatchEvent(
                        new PointerEvent(type, {
                            clientX: box.left + share * box.width,
                            clientY: box.top + box.height / 2,
                            shiftKey: true,
                            pointerId: 1,
                            buttons: 1,
                        }),
                    );
                send("pointerdown", 0.15);
                const times = [];
                let last = performance.now();
                const next = () => {
                    const now = performance.now();
                    times.push(now - last);
                    last = now;
                    if (times.length > count) {
                        send("pointerup", 0.9);
                        return done(times.slice(1));
                    }
                    send("pointermove", 0.2 + (0.7 * times.length) / count);
                    requestAnimationFrame(next);
                };
                requestAnimationFrame(next);
            }),
        count,
    );
const blocks = await page.evaluate(() => document.documentElement.dataset.blocks);
console.log(`${blocks} blocks, ${(statSync(path).size / 1e6).toFixed(2)} MB`);
console.log(
    `  navigation to interactive: median ${middle(interactive).toFixed(0)} ms ` +
        `(${Math.min(...interactive).toFixed(0)}-${Math.max(...interactive).toFixed(0)})`,
);
await report("scrubbing the cursor", "ArrowLeft");
await page.keyboard.press("0");
await page.keyboard.press("r");
await page.waitForSelector("#range .figures", { timeout: 60000 });
await page.waitForTimeout(1000);
print("dragging a range, up to 3/4 of the time", await dragFrames(60));
await page.waitForSelector("#range table[role=grid]", { timeout: 60000 });
await page.keyboard.press("Escape");
await page.keyboard.press("w");
await page.waitForTimeout(600);
await report("panning, 3/5 of the time", "a");
for (let i = 0; i < 4; ++i) await page.keyboard.press("w");
await page.waitForTimeout(600);
await report("panning, 1/13 of the time", "a");
for (let i = 0; i < 8; ++i) await page.keyboard.press("w");
await page.waitForTimeout(600);
await report("panning, 1/800 of the time", "a");
await browser.close();
