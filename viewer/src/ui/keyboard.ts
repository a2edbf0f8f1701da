// The keys; the help lists exactly this table.
import { eventAfter } from "../data/sweep";
import { upperBound } from "../data/model";
import { byId, el, showDialog } from "./dom";
import { saveImage } from "./image";
import { zoomAddress, zoomTime } from "./input";
import type { Page } from "./page";

interface Key { keys: string[]; shown: string; text: string; run: (page: Page, event: KeyboardEvent) => void }

function moveCursor(page: Page, direction: number, event: KeyboardEvent): void {
    const { cursor, t0, t1 } = page.view;
    let to = cursor + direction * Math.max(1, ((t1 - t0) / 400) * (event.shiftKey ? 10 : 1));
    if (event.altKey) {
        const { start } = page.model.blocks;
        to = direction > 0 ? eventAfter(page.model, cursor) : start[Math.max(0, upperBound(start, cursor - 1) - 1)] ?? 0;
    }
    const shift = to < t0 ? to - t0 : to > t1 ? to - t1 : 0;
    page.change({ cursor: to, t0: t0 + shift, t1: t1 + shift });
}

function pan(page: Page, direction: number): void {
    const { t0, t1 } = page.view;
    const by = ((t1 - t0) / 10) * direction;
    page.change({ t0: t0 + by, t1: t1 + by });
}

function panAddress(page: Page, direction: number): void {
    const { a0, a1 } = page.view;
    const by = ((a1 - a0) / 10) * direction;
    page.change({ a0: a0 + by, a1: a1 + by });
}

export function toggleTheme(page: Page): void {
    page.change({ theme: document.documentElement.dataset.theme === "dark" ? "light" : "dark" });
}

function whole(page: Page): void {
    page.change({ t0: 0, t1: page.model.lastTick, a0: 0, a1: page.model.head.axis_bytes });
}

const middleAddress = (page: Page): number => (page.view.a0 + page.view.a1) / 2;

const table: Key[] = [
    { keys: ["ArrowLeft"], shown: "← (Shift: far, Alt: event)", text: "cursor back", run: (page, event) => moveCursor(page, -1, event) },
    { keys: ["ArrowRight"], shown: "→ (Shift: far, Alt: event)", text: "cursor on", run: (page, event) => moveCursor(page, 1, event) },
    { keys: ["ArrowUp"], shown: "↑", text: "lower addresses", run: (page) => panAddress(page, -1) },
    { keys: ["ArrowDown"], shown: "↓", text: "higher addresses", run: (page) => panAddress(page, 1) },
    { keys: ["a"], shown: "a", text: "earlier", run: (page) => pan(page, -1) },
    { keys: ["d"], shown: "d", text: "later", run: (page) => pan(page, 1) },
    { keys: ["w"], shown: "w", text: "closer in time, around the cursor", run: (page) => zoomTime(page, page.view.cursor, 0.6) },
    { keys: ["s"], shown: "s", text: "wider in time", run: (page) => zoomTime(page, page.view.cursor, 1 / 0.6) },
    { keys: ["W"], shown: "W", text: "closer in addresses", run: (page) => zoomAddress(page, middleAddress(page), 0.6) },
    { keys: ["S"], shown: "S", text: "wider in addresses", run: (page) => zoomAddress(page, middleAddress(page), 1 / 0.6) },
    { keys: ["0"], shown: "0", text: "everything", run: whole },
    { keys: ["n"], shown: "n", text: "next event: OOM, retry or waste", run: (page) => page.stepCard(1) },
    { keys: ["p"], shown: "p", text: "previous event", run: (page) => page.stepCard(-1) },
    { keys: ["t"], shown: "t", text: "light or dark", run: toggleTheme },
    { keys: ["/"], shown: "/", text: "search frames and files", run: () => byId("search").focus() },
    { keys: ["Escape"], shown: "Esc", text: "nothing selected, no search", run: clear },
    { keys: ["?"], shown: "?", text: "this help", run: showHelp },
];

function clear(page: Page): void {
    byId<HTMLInputElement>("search").value = "";
    page.change({ selected: -1, stack: -1, culprit: -1, query: "" });
}

function showHelp(): void {
    const rows = table.map((key) => el("tr", {}, el("td", {}, el("kbd", {}, key.shown)), el("td", {}, key.text)));
    showDialog(el("h2", {}, "Keys"), el("table", {}, ...rows),
        el("p", {}, "Wheel: time at the pointer. Shift and wheel: addresses. Drag: pan. Click: cursor and block."),
        el("h2", {}, "Reading the colours"),
        el("p", {}, "Orange and hatched is memory that is free and yet cannot be given back, because a block is live in the same segment (or page of an expandable segment). " +
            "Sand is cached memory that could be given back. Where several things share a pixel its colour is their mix by area. " +
            "Blocks that the verdict names are drawn at least 3 pixels thick."));
}

export function connectKeys(page: Page): void {
    document.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || byId<HTMLDialogElement>("dialog").open) return;
        const target = event.target as HTMLElement;
        if (target.matches("input")) {
            if (event.key === "Escape") {
                clear(page);
                target.blur();
            }
            return;
        }
        if (target.matches("select") && event.key.startsWith("Arrow")) return;
        const found = table.find((key) => key.keys.includes(event.key));
        if (!found) return;
        event.preventDefault();
        found.run(page, event);
    });
    byId("theme").addEventListener("click", () => toggleTheme(page));
    byId("help").addEventListener("click", showHelp);
    byId("png").addEventListener("click", () => saveImage(page));
    byId("dialog-close").addEventListener("click", () => byId<HTMLDialogElement>("dialog").close());
}
