// The selected hole: its size and age, the blocks beside it, what would have to be freed, and the
// requests that failed while it was free.
import { formatBlocks, formatBytes, formatCount, formatTime, momentsApart } from "../data/format";
import { isState } from "../data/header";
import type { FailedRequest, Hole } from "../data/hole";
import { cardTick } from "../data/model";
import { addressText } from "../draw/map";
import { jumpTo } from "./actions";
import { button, byId, el } from "./dom";
import { saveButton } from "./image";
import type { PageView } from "./view";

type Line = (Node | string)[];

/** A row of the card: its name, and its lines. */
type Row = [name: string, ...lines: Line[]];

/** A block beside the hole, and what the hole would become without it. */
function neighbour(page: PageView, hole: Hole, block: number, beyond: number): Line {
    if (block < 0) return ["the end of the segment"];
    const { blocks } = page.model;
    const size = blocks.size[block];
    return [
        button(formatBytes(size), "select this block", () =>
            page.change({ selected: block, hole: -1 }),
        ),
        " ",
        el("code", {}, page.stacks.label(page.stacks.telling(blocks.stack[block]))),
        `; without it ${formatBytes(hole.size + size + beyond)} are free`,
    ];
}

// Moments of the card, told apart.
function momentsIn({ model: { head } }: PageView, { since, failed }: Hole): (ns: number) => string {
    const ticks = [since, ...failed.map(({ card }) => cardTick(head, head.cards[card]))];
    return momentsApart(ticks.map((tick) => tick * head.tick_ns));
}

function ageLines(page: PageView, hole: Hole): Line[] {
    const { head } = page.model;
    // A block that the file leaves out may have had these bytes since.
    const most = head.blocks_left_out > 0 ? "at most " : "";
    const age = most + formatTime((page.heap.tick - hole.since) * head.tick_ns);
    const since = button(
        momentsIn(page, hole)(hole.since * head.tick_ns),
        "move the cursor to this time",
        () => jumpTo(page, hole.since),
    );
    if (hole.last < 0) return [[`${age}, as long as its segment exists, since `, since]];
    const freed = button(formatBytes(page.model.blocks.size[hole.last]), "select this block", () =>
        page.change({ selected: hole.last, hole: -1 }),
    );
    return [
        [`${age}, since `, since],
        ["last block on its bytes: ", freed],
    ];
}

function failedLine(
    page: PageView,
    { card, requested, size }: FailedRequest,
    moment: (ns: number) => string,
): Line {
    const { head } = page.model;
    const tick = cardTick(head, head.cards[card]);
    const kind = head.cards[card].kind === "oom" ? "out of memory" : "retry";
    const verdict =
        size < requested
            ? `the hole had ${formatBytes(size)} then, too small`
            : `the hole had ${formatBytes(size)} then; the verdict says why it did not serve it`;
    const go = button(
        `${formatBytes(requested)} at ${moment(tick * head.tick_ns)}`,
        "go to this request",
        () => {
            page.change({ card });
            jumpTo(page, tick);
        },
    );
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
    const failed = hole.failed.map((request) => failedLine(page, request, momentsIn(page, hole)));
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

export function showHole(page: PageView): void {
    const { hole } = page;
    const panel = byId("hole");
    panel.hidden = hole === null;
    if (!hole) return;
    panel.replaceChildren(
        el(
            "div",
            { class: "headline" },
            el("h2", {}, `Hole · ${formatBytes(hole.size)}`),
            el(
                "span",
                { class: "faint" },
                `${formatCount(hole.size)} B at ${addressText(page.model, hole.offset)}`,
            ),
            el("span", { class: "grow" }),
            saveButton(page, panel, "the hole"),
            button("×", "close this card", () => page.change({ hole: -1 })),
        ),
        el(
            "dl",
            { class: "life" },
            ...rowsOf(page, hole).flatMap(([name, ...lines]) => [
                el("dt", {}, name),
                el("dd", {}, ...lines.map((line) => el("div", {}, ...line))),
            ]),
        ),
    );
}
