// The keys; the help lists exactly this table.
import { byId, el, showDialog } from "./dom";
import { colourings } from "../data/kinds";
import { measures } from "../data/measures";
import * as actions from "./actions";
import { savePng, saveSvg } from "./image";
import type { Player } from "./play";
import type { PageView } from "./view";

interface Key {
    keys: string[];
    shown: string;
    text: string;
    run: (page: PageView, event: KeyboardEvent, player: Player) => void;
}

function arrow(page: PageView, direction: number, event: KeyboardEvent): void {
    if (event.altKey) actions.stepEvent(page, direction);
    else actions.moveCursor(page, direction, event.shiftKey);
}

const middleAddress = (page: PageView): number => (page.view.a0 + page.view.a1) / 2;

const table: Key[] = [
    {
        keys: ["ArrowLeft"],
        shown: "← (Shift: far, Alt: event)",
        text: "cursor back; with Alt to the last allocation, free, reuse, cudaMalloc, cudaFree or marker before it",
        run: (page, event) => arrow(page, -1, event),
    },
    {
        keys: ["ArrowRight"],
        shown: "→ (Shift: far, Alt: event)",
        text: "cursor on; with Alt to the next of these",
        run: (page, event) => arrow(page, 1, event),
    },
    {
        keys: ["ArrowUp"],
        shown: "↑",
        text: "lower addresses",
        run: (page) => actions.panAddress(page, -1),
    },
    {
        keys: ["ArrowDown"],
        shown: "↓",
        text: "higher addresses",
        run: (page) => actions.panAddress(page, 1),
    },
    { keys: ["a"], shown: "a", text: "earlier", run: (page) => actions.pan(page, -1) },
    { keys: ["d"], shown: "d", text: "later", run: (page) => actions.pan(page, 1) },
    {
        keys: ["w"],
        shown: "w",
        text: "closer in time, around the cursor",
        run: (page) => actions.zoomTime(page, page.view.cursor, 0.6),
    },
    {
        keys: ["s"],
        shown: "s",
        text: "wider in time",
        run: (page) => actions.zoomTime(page, page.view.cursor, 1 / 0.6),
    },
    {
        keys: ["W"],
        shown: "W",
        text: "closer in addresses",
        run: (page) => actions.zoomAddress(page, middleAddress(page), 0.6),
    },
    {
        keys: ["S"],
        shown: "S",
        text: "wider in addresses",
        run: (page) => actions.zoomAddress(page, middleAddress(page), 1 / 0.6),
    },
    { keys: ["0"], shown: "0", text: "everything", run: actions.showWhole },
    {
        keys: [" "],
        shown: "space",
        text: "play: the cursor runs through the window",
        run: (_page, _event, player) => player.toggle(),
    },
    {
        keys: ["n"],
        shown: "n",
        text: "next event: OOM, retry, or the peak of a run without OOM",
        run: (page) => page.stepCard(1),
    },
    { keys: ["p"], shown: "p", text: "previous event", run: (page) => page.stepCard(-1) },
    {
        keys: ["["],
        shown: "[",
        text: "select the block before, in order of address at the cursor",
        run: (page) => actions.stepBlock(page, -1),
    },
    {
        keys: ["]"],
        shown: "]",
        text: "select the block after",
        run: (page) => actions.stepBlock(page, 1),
    },
    { keys: ["z"], shown: "z", text: "zoom to the selected block's life", run: actions.zoomToLife },
    {
        keys: ["m"],
        shown: "m",
        text: "set the mark at the cursor (growth is measured from it); again: remove it",
        run: actions.toggleMark,
    },
    {
        keys: ["c"],
        shown: "c",
        text: "colour by the next: state, age, phase, stream, pool, stack",
        run: (page) => page.change({ colour: next(colourings, page.view.colour) }),
    },
    {
        keys: ["1", "2", "3", "4"],
        shown: "1 2 3 4",
        text: "stacks by holes held open, live bytes, allocations in the window, growth",
        run: (page, event) => page.change({ stacks: measures[Number(event.key) - 1] }),
    },
    { keys: ["f"], shown: "f", text: "stacks as icicle or flame", run: actions.toggleShape },
    {
        keys: ["g"],
        shown: "g",
        text: "frames of libraries folded or in full",
        run: actions.toggleFold,
    },
    {
        keys: ["v"],
        shown: "v",
        text: "lay the next replayed curve over the chart",
        run: (page) => actions.stepCurve(page, 1),
    },
    { keys: ["V"], shown: "V", text: "the one before", run: (page) => actions.stepCurve(page, -1) },
    { keys: ["i"], shown: "i", text: "the pictures as a PNG", run: savePng },
    { keys: ["I"], shown: "I", text: "as an SVG", run: saveSvg },
    { keys: ["t"], shown: "t", text: "light or dark", run: actions.toggleTheme },
    { keys: ["/"], shown: "/", text: "search frames and files", run: () => byId("search").focus() },
    {
        keys: ["Escape"],
        shown: "Esc",
        text: "nothing selected, marked or searched",
        run: (page, _event, player) => clear(page, player),
    },
    { keys: ["?"], shown: "?", text: "this help", run: (page) => showHelp(page) },
];

function next<T>(all: readonly T[], current: T): T {
    return all[(all.indexOf(current) + 1) % all.length];
}

function clear(page: PageView, player: Player): void {
    byId<HTMLInputElement>("search").value = "";
    player.stop();
    page.change({ selected: -1, stack: -1, culprit: -1, whatif: -1, query: "" });
}

const glossary: [word: string, meaning: string][] = [
    [
        "hole held open",
        "free memory inside a segment (or a page of an expandable one) that cannot go back to the driver, because a block is live in it",
    ],
    [
        "pins",
        "a live block pins a hole: were it not there, the memory around it could be given back or used as one piece",
    ],
    [
        "releasable",
        "cached memory with no live block in its segment or page: it can go back to the driver at any time",
    ],
    [
        "retry",
        "the device was full: the pool gave its cache back to the driver and asked again; the program waits meanwhile",
    ],
];

function showHelp(page: PageView): void {
    const rows = table.map((key) =>
        el("tr", {}, el("td", {}, el("kbd", {}, key.shown)), el("td", {}, key.text)),
    );
    showDialog(
        el("h2", {}, "Keys"),
        el("table", {}, ...rows),
        el(
            "p",
            {},
            "Wheel: time at the pointer. Shift and wheel: addresses. Drag: pan. " +
                "Click: cursor and block. Tab reaches every control and picture; " +
                "in the stacks arrows walk the boxes and Enter marks one; " +
                "in the strip of processes, of a job, they walk the bars and Enter shows one. " +
                "Search takes text, or /a regular expression/.",
        ),
        el("h2", {}, "Reading the colours"),
        el(
            "p",
            {},
            "Orange and hatched is memory that is free and yet cannot be given back, because " +
                "a block is live in the same segment (or page of an expandable segment). " +
                "Sand is cached memory that could be given back. " +
                "Where several things share a pixel its colour is their mix by area. " +
                "Blocks that the verdict names are drawn at least 3 pixels thick.",
        ),
        el("h2", {}, "Words"),
        el(
            "dl",
            { class: "life" },
            ...[
                ...glossary,
                ...page.header.class_words.map(({ word, meaning }) => [word, meaning]),
            ].flatMap(([word, meaning]) => [el("dt", {}, word), el("dd", {}, meaning)]),
        ),
    );
}

export function connectKeys(page: PageView, player: Player): void {
    document.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || byId<HTMLDialogElement>("dialog").open) return;
        const target = event.target as HTMLElement;
        if (target.matches("input")) {
            if (event.key === "Escape") {
                clear(page, player);
                target.blur();
            }
            return;
        }
        // A letter chooses the entry that begins with it; arrows and the like move in the list.
        if (target.matches("select") && event.key !== "Escape") return;
        if (target.matches("button, summary") && event.key === " ") return;
        const found = table.find((key) => key.keys.includes(event.key));
        if (!found) return;
        event.preventDefault();
        found.run(page, event, player);
    });
    byId("theme").addEventListener("click", () => actions.toggleTheme(page));
    byId("help").addEventListener("click", () => showHelp(page));
    byId("png").addEventListener("click", () => savePng(page));
    byId("svg").addEventListener("click", () => saveSvg(page));
    byId("dialog-close").addEventListener("click", () => byId<HTMLDialogElement>("dialog").close());
}
