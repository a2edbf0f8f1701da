// The verdict and the table of who pins the holes: what the analysis says, word by word.
import { formatBytes, formatCount, formatTime } from "../data/format";
import type { Card } from "../data/header";
import type { Stacks } from "../data/stacks";
import type { Store } from "../state/store";
import { byId, el } from "./dom";

const kinds = { oom: "OOM", retry: "RETRY", waste: "WASTE" } as const;

export function showCard(cards: Card[], index: number, step: (by: number) => void): void {
    const panel = byId("verdict");
    const card = cards[index];
    if (!card) {
        panel.dataset.kind = "none";
        panel.replaceChildren(el("h2", {}, "No failed request"), el("p", { class: "sentence" }, "The trace holds no out-of-memory error and no retry."));
        return;
    }
    panel.dataset.kind = card.kind;
    const stepping = cards.length > 1 && el("span", {}, button("previous event (p)", "‹", () => step(-1)),
        ` ${index + 1} of ${cards.length} `, button("next event (n)", "›", () => step(1)));
    panel.replaceChildren(
        el("div", { class: "headline" }, el("span", { class: "kind" }, kinds[card.kind]), el("h2", {}, card.heading),
            el("span", { class: "grow" }), el("span", { class: "faint" }, `at ${formatTime(card.time_ns)}`), stepping),
        el("p", { class: "sentence" }, card.sentence),
        bars(card),
        more(card),
    );
}

function button(name: string, text: string, click: () => void): HTMLElement {
    const element = el("button", { type: "button", "aria-label": name, title: name }, text);
    element.addEventListener("click", click);
    return element;
}

// Four sizes on one scale: whether the request fits somewhere is seen, not computed.
function bars(card: Card): HTMLElement {
    const rows: [string, string, number | null][] = [
        ["asked for", "asked", card.requested], ["free, in holes", "free", card.free],
        ["largest hole", "largest", card.largest], ["free on the device", "device", card.device_free],
    ];
    const most = Math.max(1, ...rows.map(([, , bytes]) => bytes ?? 0));
    const grid = el("div", { class: "bars" });
    for (const [name, kind, bytes] of rows) {
        if (bytes === null) continue;
        const fill = el("div", { class: `fill ${kind}` });
        fill.style.width = `${(bytes / most) * 100}%`;
        const line = el("div", { class: "asked-line" });
        line.style.left = `${((card.requested ?? 0) / most) * 100}%`;
        grid.append(el("span", {}, name), el("div", { class: "track" }, fill, card.requested !== null && line),
            el("span", { class: "number", title: `${formatCount(bytes)} B` }, formatBytes(bytes)));
    }
    return grid;
}

function more(card: Card): HTMLElement {
    const [first, ...rest] = card.details;
    const box = el("div", { class: "more" }, first ? el("p", {}, first) : null);
    if (rest.length + card.assumptions.length > 0) {
        box.append(el("details", {}, el("summary", {}, `verdict "${card.verdict}": details and assumptions`),
            ...rest.map((line) => el("p", {}, line)), ...card.assumptions.map((line) => el("p", {}, "assumed: " + line))));
    }
    return box;
}

export function showCulprits(card: Card | undefined, stacks: Stacks, store: Store, select: (row: number) => void): void {
    const panel = byId("culprits");
    const rows = card?.culprits ?? [];
    const head = el("h2", {}, "Who pins the holes");
    if (rows.length === 0) {
        panel.replaceChildren(head, el("p", { class: "faint" }, "No block stands in the way here. The stacks below show who holds what at the cursor."));
        return;
    }
    const body = el("tbody");
    rows.forEach((culprit, row) => {
        const line = el("tr", { tabindex: "0", "aria-selected": String(store.view.culprit === row) },
            el("td", { class: "size" }, formatBytes(culprit.held_open)), el("td", {}, formatBytes(culprit.live)),
            el("td", {}, formatCount(culprit.count)),
            el("td", { class: "wrap" }, el("span", { class: "swatch" }), el("code", {}, culprit.label || stacks.label(stacks.telling(culprit.stack)))),
            el("td", {}, culprit.age));
        line.addEventListener("click", () => select(row));
        line.addEventListener("keydown", (event) => {
            if (event.key !== "Enter") return;
            event.stopPropagation();
            select(row);
        });
        body.append(line);
    });
    panel.replaceChildren(head, " ", el("span", { class: "faint" }, "a row marks its blocks everywhere"),
        el("div", { class: "list" }, el("table", {},
            el("thead", {}, el("tr", {}, ...["holds open", "with only", "blocks", "allocated at", "age"].map((name) => el("th", { scope: "col" }, name)))), body)));
}
