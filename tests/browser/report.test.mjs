// Whatever the text report states is on the page, in words that can be read without a pointer.
//
// FRAGTRACE_REPORTS holds reports with their pages (golden_verdicts).
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { settle, visitor } from "./look.mjs";

const folder = process.env.FRAGTRACE_REPORTS;
const visit = visitor();
const names = readdirSync(folder)
    .filter((file) => file.endsWith(".html"))
    .map((file) => file.slice(0, -".html".length));

const plain = (text) => text.replace(/\s+/g, " ").trim().toLowerCase();

/** The words of the page with all details opened and every verdict shown, and its table rows. */
async function shownOn(page) {
    const rows = [];
    let words = "";
    for (let left = Infinity; left > 0; --left) {
        const shown = await page.evaluate(() => {
            for (const details of document.querySelectorAll("details")) details.open = true;
            return {
                text: document.getElementById("main").innerText,
                // With the rows that belong to them.
                rows: [...document.querySelectorAll("tr")].map((row) =>
                    row.nextElementSibling?.matches(".said")
                        ? `${row.innerText} ${row.nextElementSibling.innerText}`
                        : row.innerText,
                ),
                // A bar and its label, an entry of a list and its name.
                pairs: [
                    ...document.querySelectorAll(
                        ".bars > span:first-child, .bars > .number + span, dt",
                    ),
                ].map(
                    (name) =>
                        `${name.innerText} ${name.nextElementSibling?.innerText} ${name.nextElementSibling?.nextElementSibling?.innerText}`,
                ),
                cards:
                    document
                        .querySelector("#verdict .step")
                        ?.innerText.match(/\d+ of (\d+)/)?.[1] ?? "1",
            };
        });
        words += ` ${shown.text}`;
        rows.push(...shown.rows, ...shown.pairs);
        left = Math.min(left, Number(shown.cards));
        await page.keyboard.press("n");
        await settle(page);
    }
    return { words: plain(words), rows: rows.map(plain) };
}

/**
 * What a line of the report states: sentences, or the cells of a row. Not stated: headings, the
 * command of the program, what the report leaves out (the page has all rows), and what to do next.
 */
function statementsOf(report) {
    const lines = report.slice(0, report.indexOf("\nNext")).split("\n").slice(1);
    return lines.flatMap((line, at) => {
        if (
            /^ {2}(setting {2}.*class|phase {2}.*retries)$|settings? (are|is) not shown|more \((fraganalyze|--json)|change.? nothing here/.test(
                line,
            )
        ) {
            return [];
        }
        // Headings: the page has its own.
        if (
            /^(What if|Limits of|Process|Phases|Assumptions|Warnings|Which allocations|Not in this|Holes)|^ {2}remedies in/.test(
                line,
            )
        ) {
            return [];
        }
        const [, label, text] = /^ {2}(.{9}) {2}(\S.*)$/.exec(line) ?? [];
        if (label && !/ {2}/.test(text)) return labelled(label.trim(), text);
        // The main sentences. The remedy is on a line of its own.
        if (at === 0 || /^\S/.test(line)) {
            return line
                .split(/(?<=\D)\. |\.$/)
                .filter(
                    (sentence) =>
                        sentence &&
                        !/ would have |no remedy is known|is forecast to need/.test(sentence),
                )
                .map((sentence) => ({ sentence }));
        }
        const [, word, meaning] =
            /^ {2}(exact|exact until|at least|at most|estimate): (.*)/.exec(line) ?? [];
        if (word) return [{ cells: [word, meaning] }];
        const cells = line
            .replace(/^ {2}- /, "")
            .trim()
            .split(/ {2,}|; (?=cost|not usable|differs)/);
        return cells.length === 1 ? [{ sentence: cells[0] }] : [{ cells }];
    });
}

function labelled(label, text) {
    const parts = text.split(", ");
    switch (label) {
        case "holders":
            return text
                .split(/; | at the peak of allocated memory | \((?=estimate)|, /)
                .map((sentence) => ({ sentence: sentence.replace(/\)$/, "") }));
        case "most":
        case "increase":
        case "decrease":
            return parts.map((part) => {
                const [, size, line, , kind = ""] =
                    /^(?:since then: )?([-+]?[\d.]+ \w+) (.*?)( \((.*)\))?$/.exec(part);
                return { cells: [size, line, kind] };
            });
        case "peaks":
        case "holds":
            return parts.flatMap((part) => {
                const [, name, size, capacity] = /^(\w+) ([\d.]+ \w+)(?: of ([\d.]+ \w+))?/.exec(
                    part,
                );
                return [
                    { cells: [label === "peaks" ? `peak ${name}` : name, size] },
                    ...(capacity ? [{ cells: ["capacity", capacity] }] : []),
                ];
            });
        case "waste":
            return parts.map((part) => {
                const [, name, size] = /^(?:at peak reserved: )?(.*) ([\d.]+ \w+)$/.exec(part);
                return { cells: [name, size] };
            });
        case "outside":
        case "memory":
            return parts.map((part) => {
                const [, name, size] = /^(?:the pool: )?(\D*) ([\d.]+ \w+)/.exec(part);
                return { cells: [name, size] };
            });
        case "verdict":
        case "retry":
            return [
                { sentence: `verdict "${text.slice(0, text.indexOf(":"))}"` },
                ...text
                    .slice(text.indexOf(":") + 1)
                    .split(/;(?= \d)|requested;/)
                    .map((sentence) => ({ sentence })),
            ];
        default:
            return [{ sentence: text }];
    }
}

// The same in other words. The page has a column or a mark for it.
const otherWords = [
    [/ ?as recorded$/, ""],
    [/ blocked by| in$/, ""],
    [/^not usable here: /, ""],
    [/^(\d+) (blocks?|holes?)$/, "$1"],
    [/^(exact until) its out-of-memory at event \d+$/, "$1"],
    [/ for such an allocator on this card$/, ""],
    [/(no allocator .*|a plan .*); (\d+ )?ooms?$/, "$1"],
    [/^(estimate|exact|exact until|at least|at most); .*/, "$1"],
    [/^oom$/, "1 oom"],
];
const asOnPage = (cell) =>
    otherWords.reduce(
        (text, [from, to]) => text.replace(from, to),
        plain(cell).replace(/^(.*): cost: /, "cost: "),
    );

const has = (row, cell) =>
    row.includes(asOnPage(cell)) || (plain(cell) === "0 b" && row.includes("same"));

test("there are pages of reports", () => assert.ok(names.length > 20, names.join(" ")));

for (const name of names) {
    test(`the page of the report "${name}" has every statement of the report`, () =>
        visit(join(folder, `${name}.html`), {}, async (page) => {
            const { words, rows } = await shownOn(page);
            const report = readFileSync(join(folder, `${name}.txt`), "utf8");
            const statements = statementsOf(report);
            assert.ok(statements.length > 10, report);
            const missing = statements.filter(({ sentence, cells }) =>
                sentence
                    ? !words.includes(plain(sentence))
                    : !rows.some((row) => cells.every((cell) => has(row, cell))),
            );
            assert.deepEqual(missing, []);
        }));
}
