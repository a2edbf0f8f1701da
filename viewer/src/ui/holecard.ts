// The selected hole: its size and age, the blocks beside it, what would have to be freed, and the
// requests that failed while it was free.
import { formatBlocks, formatBytes, formatCount, formatTime } from "../data/format";
import { isState } from "../data/header";
import type { FailedRequest, Hole } from "../data/hole";
import { cardTick } from "../data/model";
import { addressText } from "../draw/map";
import { jumpTo } from "./actions";
import { button, byId, el } from "./dom";
import type { PageView, TextPanel } from "./view";

/** A piece of a text: plain, code, or a button. */
type Piece = string | { code: string } | { text: string; title: string; click: () => void };

/** A row of the card: its name, and its lines. */
type Row = [name: string, ...lines: Piece[][]];

function nodeOf(piece: Piece): Node {
    if (typeof piece === "string") return document.createTextNode(piece);
    if ("code" in piece) return el("code", {}, piece.code);
    return button(piece.text, piece.title, piece.click);
}

function textOf(line: Piece[]): string {
    return line
        .map((piece) =>
            typeof piece === "string" ? piece : "code" in piece ? piece.code : piece.text,
        )
        .join("");
}

/** A block beside the hole, and what the hole would become without it. */
function neighbour(page: PageView, hole: Hole, block: number, beyond: number): Piece[] {
    if (block < 0) return ["the end of the segment"];
    const { blocks } = page.model;
    const size = blocks.size[block];
    return [
        {
            text: formatBytes(size),
            title: "select this block",
            click: () => page.change({ selected: block, hole: -1 }),
        },
        " ",
        { code: page.stacks.label(page.stacks.telling(blocks.stack[block])) },
        `; without it ${formatBytes(hole.size + size + beyond)} are free`,
    ];
}

function ageLines(page: PageView, hole: Hole): Piece[][] {
    const { head } = page.model;
    // A block that the file leaves out may have had these bytes since.
    const most = head.blocks_left_out > 0 ? "at most " : "";
    const age = most + formatTime((page.heap.tick - hole.since) * head.tick_ns);
    const since = {
        text: formatTime(hole.since * head.tick_ns),
        title: "move the cursor to this time",
        click: () => jumpTo(page, hole.since),
    };
    if (hole.last < 0) return [[`${age}, as long as its segment exists, since `, since]];
    const freed = {
        text: formatBytes(page.model.blocks.size[hole.last]),
        title: "select this block",
        click: () => page.change({ selected: hole.last, hole: -1 }),
    };
    return [
        [`${age}, since `, since],
        ["last block on its bytes: ", freed],
    ];
}

function failedLine(page: PageView, { card, requested, size }: FailedRequest): Piece[] {
    const { head } = page.model;
    const tick = cardTick(head, head.cards[card]);
    const kind = head.cards[card].kind === "oom" ? "out of memory" : "retry";
    const verdict =
        size < requested
            ? `the hole had ${formatBytes(size)} then, too small`
            : `the hole had ${formatBytes(size)} then; the verdict says why it did not serve it`;
    const go = {
        text: `${formatBytes(requested)} at ${formatTime(tick * head.tick_ns)}`,
        title: "go to this request",
        click: () => {
            page.change({ card });
            jumpTo(page, tick);
        },
    };
    return [go, ` ${kind}: ${verdict}`];
}

function segmentText(page: PageView, hole: Hole): string {
    const { units } = page.model;
    const segment = `segment of ${formatBytes(units.size[hole.unit])}`;
    if (!hole.kept) return `none: its ${segment} can be returned to the driver`;
    if (hole.blocks.length === 0) return `none: its private pool keeps the empty ${segment}`;
    return `${formatBlocks(hole.blocks.length)}, ${formatBytes(hole.bytes)}: then the ${segment} can be returned to the driver`;
}

function rowsOf(page: PageView, hole: Hole): Row[] {
    const failed = hole.failed.map((request) => failedLine(page, request));
    const state = isState(page.model.head);
    return [
        [
            "free for",
            ...(state ? [["an unknown time: this state has no times"]] : ageLines(page, hole)),
        ],
        ["before it", neighbour(page, hole, hole.before, hole.beyondBefore)],
        ["after it", neighbour(page, hole, hole.after, hole.beyondAfter)],
        ["to be freed", [segmentText(page, hole)]],
        state
            ? ["failed", ["not known"]]
            : [
                  "failed",
                  ...(failed.length > 0
                      ? failed
                      : [["no diagnosed request failed while it was free"]]),
              ],
    ];
}

const titleOf = (hole: Hole): string => `Hole · ${formatBytes(hole.size)}`;

const addressOf = ({ model }: PageView, hole: Hole): string =>
    `${formatCount(hole.size)} B at ${addressText(model, hole.offset)}`;

export function showHole(page: PageView): void {
    const { hole } = page;
    const panel = byId("hole");
    panel.hidden = hole === null;
    if (!hole) return;
    panel.replaceChildren(
        el(
            "div",
            { class: "headline" },
            el("h2", {}, titleOf(hole)),
            el("span", { class: "faint" }, addressOf(page, hole)),
            el("span", { class: "grow" }),
            button("×", "close this card", () => page.change({ hole: -1 })),
        ),
        el(
            "dl",
            { class: "life" },
            ...rowsOf(page, hole).flatMap(([name, ...lines]) => [
                el("dt", {}, name),
                el("dd", {}, ...lines.map((line) => el("div", {}, ...line.map(nodeOf)))),
            ]),
        ),
    );
}

/** The card, to save. */
export function savedHole(page: PageView): TextPanel | null {
    const { hole } = page;
    if (!hole) return null;
    const rows = rowsOf(page, hole).flatMap(([name, ...lines]) =>
        lines.map((line, at) => ({
            cells: [{ text: at === 0 ? name : "", look: "faint" as const }, { text: textOf(line) }],
        })),
    );
    return {
        title: titleOf(hole),
        place: "right",
        blocks: [
            { kind: "text", cell: { text: addressOf(page, hole), look: "faint" } },
            { kind: "table", rows, lines: false },
        ],
    };
}
