// The verdict and the table of the lines that block free memory, with the texts of the analysis.
import { formatBytes, formatCount, formatTime } from "../data/format";
import {
    type Card,
    type Culprit,
    type DeviceHeader,
    failedRequests,
    type Header,
    type Holder,
    segmentsKnown,
} from "../data/header";
import { byId, el } from "./dom";
import type { PageView } from "./view";

const kinds = {
    oom: "OOM",
    retry: "RETRY",
    near_miss: "NEAR MISS",
    no_oom: "NO OOM",
    state: "STATE",
} as const;

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
        failed === 1 ? "1 failed request" : `${formatCount(failed)} failed requests`,
        `The file does not show why.${rest}`,
    ];
}

export function showCard(
    head: DeviceHeader,
    words: Header["class_words"],
    index: number,
    step: (by: number) => void,
): void {
    const panel = byId("verdict");
    const { cards } = head;
    const card = cards[index];
    if (!card) {
        const [heading, sentence] = verdictWithoutCards(head);
        panel.dataset.kind = "none";
        panel.replaceChildren(el("h2", {}, heading), el("p", { class: "sentence" }, sentence));
        return;
    }
    panel.dataset.kind = card.kind;
    const stepping =
        cards.length > 1 &&
        el(
            "span",
            { class: "step" },
            button("previous event (p)", "‹", () => step(-1)),
            ` ${card.kind === "oom" || card.kind === "retry" ? "event" : "peak,"} ${index + 1} of ${cards.length} `,
            button("next event (n)", "›", () => step(1)),
        );
    panel.replaceChildren(
        el(
            "div",
            { class: "headline" },
            el("span", { class: "kind" }, kinds[card.kind]),
            el("h2", {}, card.heading),
            el("span", { class: "grow" }),
            el("span", { class: "faint" }, `at ${formatTime(card.time_ns)}`),
            stepping,
        ),
        el(
            "p",
            { class: "sentence" },
            card.sentence,
            card.asked_by
                ? el("span", { class: "faint" }, ` Requested by ${card.asked_by}.`)
                : null,
        ),
        ...answers(card),
        bars(card),
        more(card, words),
    );
}

// The cause, the responsible line and the remedy, as far as the analysis knows them.
function answers(card: Card): HTMLElement[] {
    const rows: [string, string][] = [
        ["why", card.details[0] ?? ""],
        ["culprit", card.who],
        [card.kind === "no_oom" ? "to reduce memory" : "what helps", card.change],
    ];
    const known = rows.filter(([, text]) => text !== "");
    if (known.length === 0) return [];
    return [
        el(
            "dl",
            { class: "answers" },
            ...known.flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]),
        ),
    ];
}

function button(name: string, text: string, click: () => void): HTMLElement {
    const element = el("button", { type: "button", "aria-label": name, title: name }, text);
    element.addEventListener("click", click);
    return element;
}

// Bars on one scale. They show whether the request fits and what adds up to the capacity.
function bars(card: Card): HTMLElement {
    const most = Math.max(1, ...card.bars.map((bar) => bar.from + bar.bytes));
    const grid = el("div", { class: "bars" });
    for (const bar of card.bars) {
        const fill = el("div", { class: `fill ${bar.kind}` });
        fill.style.left = `${(bar.from / most) * 100}%`;
        fill.style.width = `${(bar.bytes / most) * 100}%`;
        const line = el("div", { class: "asked-line" });
        line.style.left = `${((card.requested ?? 0) / most) * 100}%`;
        grid.append(
            el("span", {}, bar.label),
            el("div", { class: "track" }, bar.bytes > 0 && fill, card.requested !== null && line),
            el(
                "span",
                { class: "number", title: `${formatCount(bar.bytes)} B` },
                formatBytes(bar.bytes),
            ),
        );
    }
    return grid;
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
    if (said) box.append(el("p", { class: "classes" }, said));
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

/** A row of headers, each with an explanation. */
export function heads(columns: [name: string, title: string][]): HTMLElement {
    return el(
        "thead",
        {},
        el("tr", {}, ...columns.map(([name, title]) => el("th", { scope: "col", title }, name))),
    );
}

// Redraws the panel. The row with the keyboard focus keeps it.
function fill(title: string, hint: string, ...content: HTMLElement[]): void {
    const panel = byId("culprits-list");
    const focused = [...panel.querySelectorAll("tbody tr")].indexOf(
        document.activeElement as HTMLTableRowElement,
    );
    byId("culprits-title").textContent = title;
    byId("culprits-hint").textContent = hint;
    panel.replaceChildren(...content);
    if (focused >= 0) {
        (panel.querySelectorAll("tbody tr")[focused] as HTMLElement | undefined)?.focus();
    }
}

function culpritTable(page: PageView, culprits: Culprit[]): HTMLElement {
    const { view, stacks } = page;
    const rows = culprits.map((culprit, row) =>
        choosable(
            el(
                "tr",
                { tabindex: "0", "aria-selected": String(view.culprit === row) },
                el("td", { class: "size" }, formatBytes(culprit.held_open)),
                el("td", {}, formatBytes(culprit.live)),
                el("td", {}, formatCount(culprit.count)),
                el(
                    "td",
                    { class: "wrap pins" },
                    el("span", { class: "swatch" }),
                    el("code", {}, culprit.label || stacks.label(stacks.telling(culprit.stack))),
                    culprit.phase ? el("span", { class: "faint" }, ` in ${culprit.phase}`) : null,
                ),
                el("td", {}, culprit.age.replace(/^oldest /, "")),
            ),
            () =>
                page.change({
                    culprit: page.view.culprit === row ? -1 : row,
                    stack:
                        page.view.culprit === row
                            ? -1
                            : page.shownStacks.node(culprit.stack, page.view.fold),
                }),
        ),
    );
    return el(
        "table",
        { role: "grid" },
        heads([
            [
                "blocked",
                "free memory that these live blocks prevent from being reused: " +
                    "their share of the free bytes of their segments (or pages)",
            ],
            ["live bytes", "the size of these live blocks"],
            ["blocks", "the number of live blocks"],
            ["allocated at", "the line that allocated them"],
            ["age of oldest", "the age of the oldest of these blocks at this moment"],
        ]),
        el("tbody", {}, ...rows),
    );
}

function holderTable(page: PageView, holders: Holder[]): HTMLElement {
    const kinds = holders.some((holder) => holder.category !== "");
    const rows = holders.map((holder) => {
        const stack = page.shownStacks.node(holder.stack, page.view.fold);
        const chosen = (): boolean =>
            page.view.culprit < 0 && stack > 0 && page.view.stack === stack;
        return choosable(
            el(
                "tr",
                { tabindex: "0", "aria-selected": String(chosen()) },
                el("td", { class: "size" }, formatBytes(holder.live)),
                el("td", {}, formatCount(holder.count)),
                el("td", { class: "wrap" }, el("code", {}, holder.label)),
                kinds && el("td", {}, holder.category || "unknown kind"),
            ),
            () => page.change({ culprit: -1, stack: chosen() ? -1 : stack, stacks: "live" }),
        );
    });
    return el(
        "table",
        { role: "grid" },
        heads([
            ["live bytes", "the size of the live blocks"],
            ["blocks", "the number of live blocks"],
            ["allocated at", "the line that allocated them"],
            ...(kinds
                ? [["kind (estimate)", "estimated from stack and lifetime"] as [string, string]]
                : []),
        ]),
        el("tbody", {}, ...rows),
    );
}

/** The lines that block free memory, and the lines with the most live memory. */
export function showCulprits(page: PageView, card: Card | undefined): void {
    const culprits = card?.culprits ?? [];
    const holders = card?.holders ?? [];
    const others = card?.holders_more ? [el("p", { class: "faint" }, card.holders_more)] : [];
    const holding = ["Live memory by line", card?.holders_when].filter(Boolean).join(" ");
    byId("culprits-table").hidden = culprits.length + holders.length === 0;
    if (culprits.length > 0) {
        const more =
            holders.length > 0
                ? [el("h2", { class: "second" }, holding), holderTable(page, holders), ...others]
                : [];
        fill(
            "Which allocations block free memory",
            "click a row to mark its blocks",
            culpritTable(page, culprits),
            ...more,
        );
    } else if (holders.length > 0) {
        fill(
            holding,
            "no block prevents reuse of free memory here; click a row to mark its stack",
            holderTable(page, holders),
            ...others,
        );
    } else {
        fill(
            "Which allocations block free memory",
            "",
            el(
                "p",
                { class: "faint" },
                (segmentsKnown(page.model.head)
                    ? "No live block prevents free memory from being reused here."
                    : "Unknown: the file does not show free memory.") +
                    " The stacks below show the live memory at the cursor.",
            ),
        );
    }
}
