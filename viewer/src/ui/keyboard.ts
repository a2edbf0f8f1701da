// The keys. The help lists exactly this table.
import { byId, el, showDialog } from "./dom";
import { colourings } from "../data/kinds";
import { measures } from "../data/measures";
import * as actions from "./actions";
import { writeComment } from "./comment";
import { copyStack } from "./copy";
import { savePage } from "./image";
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
        shown: "←",
        text: "move the cursor back; with Shift farther; with Alt to the previous allocation, free, reuse, cudaMalloc, cudaFree or marker",
        run: (page, event) => arrow(page, -1, event),
    },
    {
        keys: ["ArrowRight"],
        shown: "→",
        text: "move the cursor forward; with Shift farther; with Alt to the next of these events",
        run: (page, event) => arrow(page, 1, event),
    },
    {
        keys: ["ArrowUp"],
        shown: "↑",
        text: "pan to lower addresses",
        run: (page) => actions.panAddress(page, -1),
    },
    {
        keys: ["ArrowDown"],
        shown: "↓",
        text: "pan to higher addresses",
        run: (page) => actions.panAddress(page, 1),
    },
    { keys: ["a"], shown: "a", text: "pan to earlier times", run: (page) => actions.pan(page, -1) },
    { keys: ["d"], shown: "d", text: "pan to later times", run: (page) => actions.pan(page, 1) },
    {
        keys: ["w"],
        shown: "w",
        text: "zoom in on time, around the cursor",
        run: (page) => actions.zoomTime(page, page.view.cursor, 0.6),
    },
    {
        keys: ["s"],
        shown: "s",
        text: "zoom out on the time axis",
        run: (page) => actions.zoomTime(page, page.view.cursor, 1 / 0.6),
    },
    {
        keys: ["W"],
        shown: "W",
        text: "zoom in on addresses",
        run: (page) => actions.zoomAddress(page, middleAddress(page), 0.6),
    },
    {
        keys: ["S"],
        shown: "S",
        text: "zoom out on the address axis",
        run: (page) => actions.zoomAddress(page, middleAddress(page), 1 / 0.6),
    },
    { keys: ["0"], shown: "0", text: "show the whole run", run: actions.showWhole },
    {
        keys: [" "],
        shown: "space",
        text: "play: the cursor moves through the window",
        run: (_page, _event, player) => player.toggle(),
    },
    {
        keys: ["n"],
        shown: "n",
        text: "next OOM or retry (without one: the peak)",
        run: (page) => page.stepCard(1),
    },
    { keys: ["p"], shown: "p", text: "previous OOM or retry", run: (page) => page.stepCard(-1) },
    {
        keys: ["["],
        shown: "[",
        text: "select the next block below, at the cursor's time",
        run: (page) => actions.stepBlock(page, -1),
    },
    {
        keys: ["]"],
        shown: "]",
        text: "select the next block above, at the cursor's time",
        run: (page) => actions.stepBlock(page, 1),
    },
    {
        keys: ["h"],
        shown: "h",
        text: "select the largest hole at the cursor, then the next smaller one",
        run: (page) => actions.stepHole(page, 1),
    },
    {
        keys: ["H"],
        shown: "H",
        text: "select the next larger hole",
        run: (page) => actions.stepHole(page, -1),
    },
    {
        keys: ["b"],
        shown: "b",
        text: "move the cursor to the allocation of the selected block, from there to its free, and back",
        run: actions.jumpInLife,
    },
    { keys: ["z"], shown: "z", text: "zoom to the selected block's life", run: actions.zoomToLife },
    {
        keys: ["m"],
        shown: "m",
        text: "set the mark at the cursor, from which growth is measured; press again to remove it",
        run: actions.toggleMark,
    },
    {
        keys: ["r"],
        shown: "r",
        text: "select the time between the mark and the cursor, or without a mark the window; press again to remove it",
        run: actions.toggleRange,
    },
    {
        keys: ["e"],
        shown: "e",
        text: "select the time of the step or phase at the cursor; press again for the one around it",
        run: actions.rangeOfPhase,
    },
    {
        keys: ["R"],
        shown: "R",
        text: "compare the selected time with the step before it, or with the time before it; press again to stop",
        run: actions.compareRange,
    },
    { keys: ["Z"], shown: "Z", text: "zoom to the selected time", run: actions.zoomToRanges },
    {
        keys: ["x"],
        shown: "x",
        text: "let dragging select a range of time instead of panning, or pan again",
        run: actions.toggleDrag,
    },
    {
        keys: ["c"],
        shown: "c",
        text: "next colour: state, age, phase, stream, pool, category, stack",
        run: (page) => page.change({ colour: next(colourings, page.view.colour) }),
    },
    {
        keys: ["1", "2", "3", "4"],
        shown: "1 2 3 4",
        text: "stacks by blocked free memory, live bytes, allocations in the window, growth",
        run: (page, event) => page.change({ stacks: measures[Number(event.key) - 1] }),
    },
    {
        keys: ["f"],
        shown: "f",
        text: "draw the stacks as icicle, as flame, bottom-up, or as callers and callees of one frame",
        run: actions.nextShape,
    },
    {
        keys: ["g"],
        shown: "g",
        text: "join consecutive library frames, or show all",
        run: actions.toggleFold,
    },
    {
        keys: ["o"],
        shown: "o",
        text: "draw only the stacks that match the search, or all",
        run: (page) => page.change({ only: !page.view.only }),
    },
    {
        keys: ["u"],
        shown: "u",
        text: "leave the function of the marked box out of the stacks: its callees follow its callers",
        run: actions.hideFunction,
    },
    { keys: ["U"], shown: "U", text: "show the hidden functions again", run: actions.showHidden },
    {
        keys: ["y"],
        shown: "y",
        text: "copy the marked stack, or that of the selected block",
        run: (page) => void copyStack(page),
    },
    {
        keys: ["v"],
        shown: "v",
        text: "draw the next replayed curve over the chart",
        run: (page) => actions.stepCurve(page, 1),
    },
    {
        keys: ["V"],
        shown: "V",
        text: "draw the previous replayed curve",
        run: (page) => actions.stepCurve(page, -1),
    },
    {
        keys: ["q"],
        shown: "q",
        text: "switch between two compared runs, at the same place",
        run: (page) => page.switchRun(),
    },
    { keys: ["i"], shown: "i", text: "save the page as PNG", run: (page) => savePage(page, "PNG") },
    { keys: ["I"], shown: "I", text: "save the page as SVG", run: (page) => savePage(page, "SVG") },
    { keys: ["t"], shown: "t", text: "switch between light and dark", run: actions.toggleTheme },
    {
        keys: ["N"],
        shown: "N",
        text: "add a comment, which the link to this view contains",
        run: writeComment,
    },
    {
        keys: ["/"],
        shown: "/",
        text: "search frames and files, or blocks (size>1MiB)",
        run: () => byId("search").focus(),
    },
    {
        keys: ["Escape"],
        shown: "Esc",
        text: "clear selection, marks, ranges and search",
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
    page.change({
        selected: -1,
        hole: -1,
        stack: -1,
        zoom: -1,
        line: -1,
        culprit: -1,
        whatif: -1,
        query: "",
    });
    actions.clearRanges(page);
}

const glossary: [word: string, meaning: string][] = [
    [
        "hole",
        "free memory that cannot be returned to the driver, because its segment (or page of an expandable segment) also has live blocks",
    ],
    [
        "blocked memory",
        "free memory that a live block prevents from being reused: without this block the memory around it could be returned, or used as one piece",
    ],
    [
        "releasable",
        "cached memory in segments (or pages) without live blocks: it can be returned to the driver at any time",
    ],
    [
        "retry",
        "the device was full: the pool returned its cache to the driver and requested the memory again, while the program waited",
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
            "The wheel zooms in time at the pointer, with Shift in addresses. Dragging pans. " +
                "Dragging with Shift selects a range of time, and its edges can be dragged. " +
                "A click sets the cursor and selects a block. " +
                "Tab reaches every control and picture. " +
                "In the stacks the arrow keys choose a box, Enter marks its blocks, and Shift+Enter " +
                "or a double click zooms into it; Backspace zooms out. " +
                "In the strip of processes they choose a process, and Enter shows it. " +
                "Search takes text, or /a regular expression/.",
        ),
        el("h2", {}, "Reading the colours"),
        el(
            "p",
            {},
            "Orange, hatched: free memory that cannot be returned to the driver, because " +
                "a block is live in the same segment (or page of an expandable segment). " +
                "Sand: cached memory that can be returned. " +
                "If several things share a pixel, its colour is their mix by area. " +
                "Blocks that the verdict names are at least 3 pixels thick.",
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

const scrollKeys: Record<string, "across" | "down"> = {
    ArrowLeft: "across",
    ArrowRight: "across",
    ArrowUp: "down",
    ArrowDown: "down",
    " ": "down",
};

/** Whether a key scrolls a list that has the focus or contains it. Pictures have no such list. */
function scrollsList(target: HTMLElement, key: string): boolean {
    const way = scrollKeys[key];
    if (!way || target.matches("canvas")) return false;
    for (let at: HTMLElement | null = target; at && at.id !== "main"; at = at.parentElement) {
        const { overflowX, overflowY } = getComputedStyle(at);
        const [overflow, hidden] =
            way === "across"
                ? [overflowX, at.scrollWidth - at.clientWidth]
                : [overflowY, at.scrollHeight - at.clientHeight];
        if (hidden > 1 && /auto|scroll/.test(overflow)) return true;
    }
    return false;
}

export function connectKeys(page: PageView, player: Player): void {
    document.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || byId<HTMLDialogElement>("dialog").open) return;
        const target = event.target as HTMLElement;
        if (target.matches("input, textarea")) {
            if (event.key === "Escape") {
                if (target.id === "search") clear(page, player);
                target.blur();
            }
            return;
        }
        // A list needs its keys itself: a letter chooses an entry, arrows move in it.
        if (target.matches("select") && event.key !== "Escape") return;
        if (target.matches("button, summary") && event.key === " ") return;
        if (scrollsList(target, event.key)) return;
        // With Alt only these arrows have a meaning here. Letters open menus of the browser.
        if (event.altKey && !/^Arrow(Left|Right)$/.test(event.key)) return;
        const found = table.find((key) => key.keys.includes(event.key));
        if (!found) return;
        event.preventDefault();
        found.run(page, event, player);
    });
    byId("theme").addEventListener("click", () => actions.toggleTheme(page));
    byId("help").addEventListener("click", () => showHelp(page));
    byId("png").addEventListener("click", () => savePage(page, "PNG"));
    byId("svg").addEventListener("click", () => savePage(page, "SVG"));
    byId("dialog-close").addEventListener("click", () => byId<HTMLDialogElement>("dialog").close());
}
