// The selected hole: its size and age, the blocks beside it, what would have to be freed, and the
// requests that failed while it was free.
import { formatBlocks, formatBytes, formatCount, formatTime } from "../data/format";
import type { FailedRequest, Hole } from "../data/hole";
import { cardTick } from "../data/model";
import { addressText } from "../draw/map";
import { jumpTo } from "./actions";
import { button, byId, el } from "./dom";
import type { PageView } from "./view";

/** A block beside the hole, and what the hole would become without it. */
function neighbour(page: PageView, hole: Hole, block: number, beyond: number): Node[] {
    if (block < 0) return [document.createTextNode("the end of the segment")];
    const { blocks } = page.model;
    const size = blocks.size[block];
    const line = page.stacks.label(page.stacks.telling(blocks.stack[block]));
    return [
        button(formatBytes(size), "select this block", () =>
            page.change({ selected: block, hole: -1 }),
        ),
        document.createTextNode(" "),
        el("code", {}, line),
        document.createTextNode(`; without it ${formatBytes(hole.size + size + beyond)} are free`),
    ];
}

function ageText(page: PageView, hole: Hole): (string | Node)[] {
    const { head } = page.model;
    // A block that the file leaves out may have had these bytes since.
    const most = head.blocks_left_out > 0 ? "at most " : "";
    const age = most + formatTime((page.heap.tick - hole.since) * head.tick_ns);
    const time = formatTime(hole.since * head.tick_ns);
    const since = button(time, "move the cursor to this time", () => jumpTo(page, hole.since));
    if (hole.last < 0) return [`${age}, as long as its segment exists, since `, since];
    const { blocks } = page.model;
    const freed = button(formatBytes(blocks.size[hole.last]), "select this block", () =>
        page.change({ selected: hole.last, hole: -1 }),
    );
    return [`${age}, since `, since, " The last block on its bytes: ", freed];
}

function failedText(page: PageView, { card, requested, size }: FailedRequest): HTMLElement {
    const { head } = page.model;
    const tick = cardTick(head, head.cards[card]);
    const time = formatTime(tick * head.tick_ns);
    const kind = head.cards[card].kind === "oom" ? "out of memory" : "retry";
    const verdict =
        size < requested
            ? `the hole had ${formatBytes(size)} then, too small`
            : `the hole had ${formatBytes(size)} then; the verdict says why it did not serve it`;
    const go = button(`${formatBytes(requested)} at ${time}`, "go to this request", () => {
        page.change({ card });
        jumpTo(page, tick);
    });
    return el("div", {}, go, ` ${kind}: ${verdict}`);
}

function segmentText(page: PageView, hole: Hole): string {
    const { units } = page.model;
    const segment = `segment of ${formatBytes(units.size[hole.unit])}`;
    if (!hole.kept) return `none: its ${segment} can be returned to the driver`;
    if (hole.blocks.length === 0) return `none: its private pool keeps the empty ${segment}`;
    return `${formatBlocks(hole.blocks.length)}, ${formatBytes(hole.bytes)}: then the ${segment} can be returned to the driver`;
}

export function showHole(page: PageView): void {
    const { model, hole } = page;
    const panel = byId("hole");
    panel.hidden = hole === null;
    if (!hole) return;
    const list = el("dl", { class: "life" });
    const add = (name: string, ...content: (string | Node)[]): void =>
        void list.append(el("dt", {}, name), el("dd", {}, ...content));
    add("free for", ...ageText(page, hole));
    add("before it", ...neighbour(page, hole, hole.before, hole.beyondBefore));
    add("after it", ...neighbour(page, hole, hole.after, hole.beyondAfter));
    add("to be freed", segmentText(page, hole));
    add(
        "failed",
        ...(hole.failed.length > 0
            ? hole.failed.map((request) => failedText(page, request))
            : ["no diagnosed request failed while it was free"]),
    );
    panel.replaceChildren(
        el(
            "div",
            { class: "headline" },
            el("h2", {}, `Hole · ${formatBytes(hole.size)}`),
            el(
                "span",
                { class: "faint" },
                `${formatCount(hole.size)} B at ${addressText(model, hole.offset)}`,
            ),
            el("span", { class: "grow" }),
            button("×", "close this card", () => page.change({ hole: -1 })),
        ),
        list,
    );
}
