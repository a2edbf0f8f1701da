// The verdict, with the texts of the analysis.
import { formatBytes, formatCount, formatCounted, momentsApart } from "../data/format";
import {
    type Bar,
    type Card,
    type DeviceHeader,
    failedRequests,
    type Header,
    openingCard,
    type ReportLine,
    savings,
    segmentsKnown,
} from "../data/header";
import { copyButton } from "./copy";
import { button, byId, el } from "./dom";
import { saveButton } from "./image";
import type { PageView } from "./view";

const kinds = {
    oom: "OOM",
    retry: "RETRY",
    near_miss: "NEAR MISS",
    no_oom: "NO OOM",
    state: "STATE",
} as const;

function badge({ kind, screen }: Card): string {
    return screen === "growth" && kind !== "oom" ? "GROWTH" : kinds[kind];
}

/** The verdict of a device without cards. */
function verdictWithoutCards(head: DeviceHeader): [heading: string, sentence: string] {
    const known = segmentsKnown(head);
    const failed = failedRequests(head);
    const rest = known ? "" : " Reserved memory is unknown, and with it waste and retries.";
    if (failed === null) {
        return ["Failed requests are unknown", `The file does not show all of them.${rest}`];
    }
    if (failed === 0) {
        return [
            "No failed request",
            `The file shows no out-of-memory${known ? " and no retry" : ""}.${rest}`,
        ];
    }
    return [
        formatCounted(failed, "failed request", "failed requests"),
        `The file does not show why.${rest}`,
    ];
}

/** The verdict with which a device opens, in a few words. */
export function verdictOf(head: DeviceHeader): { kind: string; badge: string; heading: string } {
    const card = head.cards[openingCard(head)];
    return card
        ? { kind: card.kind, badge: badge(card), heading: card.heading }
        : { kind: "none", badge: "", heading: verdictWithoutCards(head)[0] };
}

export function showCard(page: PageView): void {
    const panel = byId("verdict");
    const { head } = page.model;
    const index = page.view.card;
    const { cards } = head;
    const card = cards[index];
    if (!card) {
        const [heading, sentence] = verdictWithoutCards(head);
        panel.dataset.kind = "none";
        delete panel.dataset.screen;
        panel.replaceChildren(
            el(
                "div",
                { class: "headline" },
                el("h2", {}, heading),
                el("span", { class: "grow" }),
                saveButton(page, panel, "the verdict"),
            ),
            el("p", { class: "sentence" }, sentence),
        );
        return;
    }
    panel.dataset.kind = card.kind;
    panel.dataset.screen = card.screen;
    const stepping =
        cards.length > 1 &&
        el(
            "span",
            { class: "step" },
            button("‹", "previous event (p)", () => page.stepCard(-1)),
            ` ${card.kind === "oom" || card.kind === "retry" ? "event" : "peak,"} ${index + 1} of ${cards.length} `,
            button("›", "next event (n)", () => page.stepCard(1)),
        );
    panel.replaceChildren(
        el(
            "div",
            { class: "headline" },
            el("span", { class: "kind" }, badge(card)),
            el("h2", {}, card.heading),
            el("span", { class: "grow" }),
            card.kind !== "state" &&
                el(
                    "span",
                    { class: "faint" },
                    `at ${momentsApart(cards.map(({ time_ns }) => time_ns))(card.time_ns)}` +
                        (page.header.job.length > 0 ? " of this process" : ""),
                ),
            stepping,
            saveButton(page, panel, "the verdict"),
        ),
        el(
            "p",
            { class: "sentence" },
            card.sentence,
            card.asked_by
                ? el("span", { class: "faint" }, ` Requested by ${card.asked_by}.`)
                : null,
        ),
        ...answers(page, card),
        barGrid(card.bars, card.requested),
        more(card, page.header.class_words),
    );
}

// The first clause stands out. What follows a semicolon qualifies it.
function clauses(text: string): (HTMLElement | string)[] {
    const end = text.indexOf("; ") + 1;
    return end === 0
        ? [text]
        : [text.slice(0, end), el("span", { class: "qualifies" }, text.slice(end))];
}

// The cause, the responsible line and the remedy, as far as the analysis knows them. If memory is
// short, also what would reduce it, as a list of its own.
function answers(page: PageView, card: Card): HTMLElement[] {
    const { head } = page.model;
    const helps = card.kind === "no_oom" ? "to reduce memory" : "what helps";
    const quiet = card.kind === "no_oom" || card.kind === "state";
    const wentWell = quiet && card.screen !== "growth";
    const setting = head.whatif.find(({ name }) => name === card.change_row)?.set;
    const rows: [string, string][] = [
        ["why", card.details[0] ?? ""],
        [wentWell ? "main line" : "culprit", card.who],
        [helps, card.change],
        ...card.tried.map(({ label, text }): [string, string] => [label, text]),
    ];
    const known = rows.filter(([, text]) => text !== "");
    const less = [
        ...(card.forecast_error
            ? [{ label: "error of the forecast", text: card.forecast_error }]
            : []),
        ...(card.screen === "shortage" ? savings(head) : []),
    ];
    return [
        el(
            "dl",
            { class: "answers" },
            ...known.flatMap(([name, text]) => [
                el("dt", {}, name),
                el(
                    "dd",
                    {},
                    ...clauses(text),
                    ...(name === helps && setting
                        ? [" ", copyButton(page, "setting", setting)]
                        : []),
                ),
            ]),
        ),
        el(
            "dl",
            { class: "answers less" },
            ...less.flatMap(({ label, text }) => [el("dt", {}, label), el("dd", {}, text)]),
        ),
    ].filter((list) => list.childElementCount > 0);
}

/** Bars on one scale. `requested` is a line across all bars; null = none. */
export function barGrid(bars: Bar[], requested: number | null): HTMLElement {
    const most = Math.max(1, ...bars.map((bar) => bar.from + bar.bytes));
    const grid = el("div", { class: "bars" });
    for (const bar of bars) {
        const fill = el("div", { class: `fill ${bar.kind}` });
        fill.style.left = `${(bar.from / most) * 100}%`;
        fill.style.width = `${(bar.bytes / most) * 100}%`;
        const line = el("div", { class: "asked-line" });
        line.style.left = `${((requested ?? 0) / most) * 100}%`;
        grid.append(
            el("span", {}, bar.label),
            el("div", { class: "track" }, bar.bytes > 0 && fill, requested !== null && line),
            el(
                "span",
                { class: "number", title: `${formatCount(bar.bytes)} B` },
                formatBytes(bar.bytes),
            ),
        );
    }
    return grid;
}

/** Lines of the report, as one list; nothing without lines. */
export function lineList(lines: ReportLine[], look = "lines"): HTMLElement[] {
    if (lines.length === 0) return [];
    const parts = lines.flatMap(({ label, text }) => [el("dt", {}, label), el("dd", {}, text)]);
    return [el("dl", { class: look }, ...parts)];
}

/** The meanings of the words in brackets that qualify figures of this text ("exact", ...). */
export function saidWords(words: Header["class_words"], text: string): string {
    return words
        .filter(({ word }) => new RegExp(`[(;] ?${word}[ ),;]`).test(text))
        .map(({ word, meaning }) => `${word}: ${meaning}`)
        .join(" · ");
}

function more(card: Card, words: Header["class_words"]): HTMLElement {
    const rest = card.details.slice(1);
    const box = el("div", { class: "more" });
    const said = saidWords(words, `${card.sentence} ${card.change}`);
    if (rest.length + card.assumptions.length > 0) {
        box.append(
            el(
                "details",
                {},
                el(
                    "summary",
                    {},
                    card.kind === "oom" || card.kind === "retry"
                        ? `verdict "${card.verdict}": details and assumptions`
                        : "details and assumptions",
                ),
                ...rest.map((line) => el("p", {}, line)),
                ...card.assumptions.map((line) => el("p", {}, "assumed: " + line)),
            ),
        );
    }
    if (said) box.append(el("p", { class: "classes" }, said));
    return box;
}

/**
 * A row that is chosen by a click, Enter or space. The table needs the role "grid", so that screen
 * readers say whether a row is chosen.
 */
export function choosable(row: HTMLElement, choose: () => void): HTMLElement {
    row.addEventListener("click", choose);
    row.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        choose();
    });
    return row;
}

/** Finds the rows that can be chosen. A row of these classes belongs to the one above it. */
export const choosableRows = "tbody tr:not(.below, .said)";

/** A row of headers, each with an explanation. */
export function heads(columns: [name: string, title: string][]): HTMLElement {
    return el(
        "thead",
        {},
        el("tr", {}, ...columns.map(([name, title]) => el("th", { scope: "col", title }, name))),
    );
}
