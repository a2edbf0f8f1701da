// The page of a job: its selector, strip and table, by mouse and by keyboard. FRAGTRACE_PAGES holds
// job.html.
import assert from "node:assert/strict";
import { test } from "node:test";
import { download, hash, pageFile, print, settle, share, text, visitor } from "./look.mjs";

const job = pageFile("job");
const visit = visitor();
const on = (options, look) => visit(job, options, look);
const shows = (page, device) =>
    page.waitForFunction(
        (device) =>
            document.querySelector("#device").value === device &&
            location.hash.includes(`device=${device}`),
        String(device),
    );
const middle = async (page, row) => {
    // the middle of a row in the strip
    const box = await page.locator("#ranks-strip").boundingBox();
    return [box.x + ((row + 0.5) * box.width) / 41, box.y + box.height / 2];
};
const heatPlace = async (page, down) => {
    const box = await page.locator("#heat").boundingBox();
    return [box.x + box.width / 2, box.y + down];
};

test("the page opens with the failed process and counts the others by detail", () =>
    on({}, async (page) => {
        assert.match(await text(page, "#run"), /^fragment.py/);
        assert.match(
            await text(page, "#ranks"),
            /2 of 40 complete in this file \(underlined\), 38 as one line each; 2 ran out of memory; 1 unreadable/,
        );
        const options = await page.$$eval("#device option", (all) =>
            all.map(({ textContent, disabled, selected }) => [textContent, disabled, selected]),
        );
        assert.equal(options.length, 41);
        assert.deepEqual(
            options.filter(([, disabled]) => !disabled),
            [
                ["rank 5 · pid 4005 · GPU 0 · OOM", false, true],
                ["rank 5 · pid 4005 · GPU 1 · retries", false, false],
                ["rank 7 · pid 4007 · GPU 7", false, false],
            ],
        );
        assert.ok(
            options.some(([name]) => name === "rank 23 · pid 4023 · GPU 7 · OOM · one line only"),
        );
        assert.ok((await share(page, "#ranks-strip", [179, 0, 27])) > 0.01, "failures are marked");
        await page.click("#notes summary");
        assert.match(
            await text(page, "#notes"),
            /<s>bad<\/s>.ftrace could not be read: is not a trace/,
        );
        assert.match(await text(page, "#notes"), /has its own time axis/);
    }));

test("the selector shows another process with its title, notes, command line and totals", () =>
    on({}, async (page) => {
        const before = await print(page, "#ranks-strip");
        await page.selectOption("#device", "2");
        await shows(page, 2);
        assert.match(await text(page, "#run"), /^other.py · other \(GPU 7\)/);
        assert.equal(await page.getAttribute("#run", "title"), "python other.py </script>");
        assert.match(await text(page, "#totals"), /123,456,789 B/);
        await page.click("#notes summary");
        assert.match(await text(page, "#notes"), /<u>note<\/u> of the other/);
        assert.notEqual(await print(page, "#ranks-strip"), before, "the strip marks the one shown");
        await page.selectOption("#device", "0");
        await shows(page, 0);
        assert.match(await text(page, "#verdict"), /512 MiB/);
    }));

test("by keyboard the selector skips lines, and the strip can be used", () =>
    on({}, async (page) => {
        await page.focus("#device");
        await page.keyboard.press("ArrowDown");
        await shows(page, 1);
        await page.keyboard.press("ArrowDown");
        await shows(page, 2);
        const { cursor } = await hash(page);
        await page.focus("#ranks-strip");
        await page.keyboard.press("Home");
        assert.match(
            await text(page, "#status"),
            /^rank 0 · pid 4000 · GPU 0: peak reserved 1 GiB of 2 GiB; ended normally; <b>job<\/b>.4000.ftrace; the file has only this line/,
        );
        for (let i = 0; i < 5; ++i) await page.keyboard.press("ArrowRight");
        assert.match(await text(page, "#status"), /^rank 5 .* OOM: .*1 OOM;/);
        assert.equal((await hash(page)).cursor, cursor, "the arrows stay in the strip");
        await page.keyboard.press("Enter");
        await shows(page, 0);
        await page.focus("#ranks-strip");
        await page.keyboard.press("End");
        await page.keyboard.press(" ");
        assert.match(
            await text(page, "dialog"),
            /rank 39 .*this command writes its page:\s+fraganalyze '=cmd <\/script>\/<b>job<\/b>.4039.ftrace' --html 4039.html/s,
        );
    }));

test("by mouse a bar names its process and opens it", () =>
    on({}, async (page) => {
        await page.mouse.move(...(await middle(page, 24))); // rank 5 has two rows
        assert.match(await text(page, "#tip"), /^rank 23 · pid 4023 · GPU 7 · OOM: .*2 OOMs/);
        await page.mouse.click(...(await middle(page, 8)));
        await shows(page, 2);
        await page.mouse.click(...(await middle(page, 24)));
        assert.match(await text(page, "dialog"), /rank 23 .*This command writes its page:/s);
        assert.equal(await page.locator("dialog tbody tr").count(), 1);
        await page.click("#dialog-close");
        assert.equal(await page.locator("img, #ranks b, dialog b").count(), 0, "names are text");
    }));

test("the table has every process, can be sorted, and saves CSV without formulas", () =>
    on({}, async (page) => {
        await page.click("#ranks-table");
        assert.equal(await page.locator("dialog .datatable").count(), 2);
        assert.equal(await page.locator("dialog .datatable >> nth=0 >> tbody tr").count(), 41);
        await page.click('dialog button:text-is("peak reserved")');
        assert.match(await page.locator("dialog tbody tr").first().innerText(), /^5\s+4005\s+0\s/);
        const { text: csv } = await download(page, () =>
            page.locator('dialog button:text-is("CSV")').first().click(),
        );
        const lines = csv.trim().split("\r\n");
        assert.equal(lines.length, 42);
        assert.match(
            lines[1],
            /^5,4005,0,1078984704,2147483648,2147483648,0,1,80000000,5000000,"ended normally","complete, 188 blocks","",,"","python <img src=x onerror=alert\(1\)>.py","<b>job<\/b>.4005.ftrace",/,
        );
        assert.ok(lines.every((line) => !/(^|,)"?[=+@-]/.test(line)));
        assert.match(await text(page, "dialog"), /<s>bad<\/s>.ftrace\s+is not a trace/);
    }));

test("a link keeps the process, an unknown device shows the first one", async () => {
    await on({ hash: "#device=2" }, async (page) => {
        assert.match(await text(page, "#run"), /^other.py/);
        assert.equal(await page.inputValue("#device"), "2");
    });
    await on({ hash: "#device=41" }, async (page) =>
        assert.equal(await page.inputValue("#device"), "0"),
    );
});

test("a saved picture has the strip and names the process", () =>
    on({ hash: "#device=2" }, async (page) => {
        const { text: svg } = await download(page, () => page.click("#svg"));
        assert.match(svg, />Processes</);
        assert.match(svg, /other.py · pid 4007, rank 7 · other/);
        assert.ok(
            svg.split('fill="#b3001b"').length >= 5,
            "two failures, each with a bar and a sign",
        );
        const [png] = await Promise.all([page.waitForEvent("download"), page.click("#png")]);
        assert.equal(png.suggestedFilename(), "fragtrace.png");
    }));

test("the page of one process has no strip", () =>
    visit(pageFile("two"), {}, async (page) => {
        assert.equal(await page.locator("#ranks").isVisible(), false);
        assert.match(await text(page, "#run"), /pid 12/);
        await settle(page);
    }));

test("after two quick choices the last process is shown", () =>
    on({}, async (page) => {
        await page.evaluate(() => {
            const select = document.querySelector("#device");
            for (const value of ["1", "2", "1"]) {
                select.value = value;
                select.dispatchEvent(new Event("change"));
            }
        });
        await shows(page, 1);
        await settle(page);
        assert.match(await text(page, "#run"), /^fragment.py · second/);
    }));

test("a job fits into 1024 pixels, and the strip leaves enough room", () =>
    on({ width: 1024, height: 768 }, async (page) => {
        assert.ok(
            (await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0,
        );
        const strip = await page.locator("#ranks").boundingBox();
        assert.ok(strip.height <= 50 && strip.width <= 1024);
        assert.ok((await page.locator("#ranks-strip").boundingBox()).width > 500);
    }));

test("memory of all processes over time: the failed ones first, and a click opens a process", () =>
    on({}, async (page) => {
        const panel = await text(page, "#heat-panel");
        assert.match(panel, /Memory of all processes over time/);
        assert.match(panel, /41 rows; 128 ms, the most of each part; strongest colour: 3 GiB/);
        assert.match(panel, /grey: not running; hatched: not known; vertical line: first out-of-/);
        const reserved = await print(page, "#heat");
        assert.ok((await share(page, "#heat", [221, 225, 232])) > 0.01, "before their start");
        await page.selectOption("#heat-measure", "free on the card");
        await settle(page);
        assert.match(await text(page, "#heat-said"), /strongest colour: nothing free/);
        assert.notEqual(await print(page, "#heat"), reserved);
        await page.selectOption("#heat-measure", "reserved but not allocated");
        await settle(page);
        const unused = await print(page, "#heat");
        await page.selectOption("#heat-order", "rank");
        await settle(page);
        assert.notEqual(await print(page, "#heat"), unused);
        const unknown = await page.locator("#heat").boundingBox();
        await page.mouse.move(unknown.x + 0.98 * unknown.width, unknown.y + 14 + 5);
        assert.match(await text(page, "#tip"), /^rank 1 · pid 4001 · GPU 1: not known at /);
        await page.selectOption("#heat-order", "differs");
        await settle(page);
        const box = await page.locator("#heat").boundingBox();
        await page.mouse.move(box.x + box.width / 2, box.y + 5);
        assert.match(await text(page, "#tip"), /^rank 23 · pid 4023 · GPU 7 · OOM: .* at /);
        const second = box.y + 14 + 5; // failed later, and has a page of its own
        await page.mouse.move(box.x + box.width / 2, second);
        assert.match(await text(page, "#tip"), /^rank 5 · pid 4005 · GPU 0 · OOM: .* at /);
        await page.selectOption("#device", "2");
        await shows(page, 2);
        await page.click("#to-overview");
        await page.mouse.click(...(await heatPlace(page, 19)));
        await shows(page, 0);
    }));

test("by keyboard the heat map names its rows, and Enter opens one", () =>
    on({}, async (page) => {
        await page.selectOption("#device", "2");
        await shows(page, 2);
        const { cursor } = await hash(page);
        await page.focus("#heat");
        await page.keyboard.press("ArrowDown");
        assert.match(await text(page, "#status"), /^rank 23 .* OOM: peak reserved .*; ended/);
        const first = await print(page, "#heat");
        await page.keyboard.press("ArrowDown");
        assert.match(await text(page, "#status"), /^rank 5 /);
        assert.notEqual(await print(page, "#heat"), first, "the chosen row is marked");
        assert.equal((await hash(page)).cursor, cursor, "the arrows stay in the heat map");
        await page.keyboard.press("End");
        assert.ok(await page.$eval("#heat-box", (box) => box.scrollTop > 0), "and it is visible");
        await page.keyboard.press("Home");
        await page.keyboard.press("Enter");
        assert.match(await text(page, "dialog"), /rank 23 .*This command writes its page:/s);
        await page.keyboard.press("Escape");
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("Enter");
        await shows(page, 0);
    }));
