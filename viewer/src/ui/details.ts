// The selected block: its life, the blocks that used its bytes before and after, and its stack.
import { formatBytes, formatCount, formatCounted, formatTime, momentsApart } from "../data/format";
import { type Life, lifeOf } from "../data/life";
import { isState } from "../data/header";
import { never } from "../data/model";
import { phaseAt } from "../data/phases";
import { sourceOf } from "../data/sources";
import { addressText } from "../draw/map";
import { jumpTo, zoomToLife } from "./actions";
import { copyAndSay, stackText } from "./copy";
import { button, byId, el } from "./dom";
import { saveButton } from "./image";
import { sourceCode } from "./source";
import type { PageView } from "./view";

const leastFolded = 3; // frames

function lifeList(page: PageView, life: Life): HTMLElement {
    const { head, phases } = page.model;
    const { start } = page.model.blocks;
    const moment = momentsApart(
        [
            life.born,
            life.freed,
            life.reusable,
            ...[...life.before, ...life.after].map((row) => start[row]),
        ]
            .filter((tick) => tick !== never)
            .map((tick) => tick * head.tick_ns),
    );
    const time = (tick: number): string => moment(tick * head.tick_ns);
    const duration = (ticks: number): string => formatTime(ticks * head.tick_ns);
    const list = el("dl", { class: "life" });
    const add = (name: string, ...text: (string | Node)[]): void =>
        void list.append(el("dt", {}, name), el("dd", {}, ...text));
    if (isState(head)) {
        add("allocated", "at an unknown time: this state has no times");
        return list;
    }
    const phase = phaseAt(phases, life.born);
    const jump = (tick: number, to: string): HTMLElement =>
        button(time(tick), `move the cursor to ${to} of this block (b)`, () => jumpTo(page, tick));
    add(
        "allocated",
        jump(life.born, "the allocation"),
        phase >= 0 ? ` in ${head.phase_names[phases.name[phase]]}` : "",
    );
    if (life.freed === never) {
        add("freed", "not before the end of the trace");
    } else {
        add("freed", jump(life.freed, "the free"), ` after ${duration(life.freed - life.born)}`);
        if (life.reusable > life.freed) {
            add(
                "pending",
                life.reusable === never
                    ? "until the end of the trace: another stream may still use it"
                    : `until ${time(life.reusable)}, for ${duration(life.reusable - life.freed)}: another stream could still use it`,
            );
        }
    }
    const links = (rows: number[]): Node[] =>
        rows.map((row) => {
            const { blocks } = page.model;
            return button(
                `${formatBytes(blocks.size[row])} at ${time(blocks.start[row])}`,
                `select block ${formatCount(row)}`,
                () => page.change({ selected: row, cursor: blocks.start[row] }),
            );
        });
    const more = (are: boolean, text: string): string[] => (are ? [text] : []);
    if (life.before.length > 0) {
        add("before it", ...links(life.before), ...more(life.moreBefore, "and earlier blocks"));
    }
    add(
        "reused by",
        ...(life.after.length > 0
            ? [...links(life.after), ...more(life.moreAfter, "and later blocks")]
            : [
                  life.reusable === never
                      ? "no block: its bytes did not become free"
                      : life.searched && page.model.head.blocks_left_out === 0
                        ? "no block before the end of the trace"
                        : "no block was found; not all blocks were searched",
              ]),
    );
    return list;
}

// A frame of the stack. If the page has its source code, it can be opened.
function frameItem(page: PageView, node: number, number: number, open: boolean): HTMLElement {
    const { header, stacks } = page;
    const label = el("code", {}, stacks.label(node));
    const source = sourceOf(header, stacks.frame(node));
    return el(
        "li",
        {
            value: String(number),
            title: stacks.place(node),
            class: stacks.isOwn(node) ? "own" : "",
        },
        source
            ? el("details", open ? { open: "" } : {}, el("summary", {}, label), sourceCode(source))
            : label,
    );
}

// The user's own frames, and the libraries between them folded.
function frameItems(page: PageView, frames: number[], telling: number): HTMLElement[] {
    const items = frames.map((node, at) => frameItem(page, node, at + 1, node === telling));
    return page.stacks
        .parts(frames, leastFolded)
        .map(([begin, end]) =>
            end - begin === 1 ? items[begin] : foldedItem(begin + 1, items.slice(begin, end)),
        );
}

function foldedItem(number: number, items: HTMLElement[]): HTMLElement {
    const words = formatCounted(items.length, "frame of a library", "frames of libraries");
    return el(
        "li",
        { value: String(number) },
        el("details", {}, el("summary", {}, words), el("ol", {}, ...items)),
    );
}

export function showDetails(page: PageView): void {
    const { model, stacks, view } = page;
    const block = view.selected;
    const panel = byId("details");
    panel.hidden = block < 0 || block >= model.blocks.count;
    if (panel.hidden) return;
    const { blocks, head } = model;
    const size = blocks.size[block];
    const excess = blocks.excess[block];
    const asked =
        excess < 0
            ? "requested size unknown"
            : `requested ${formatCount(size - excess)} B (${formatBytes(excess)} more allocated)`;
    const frames = stacks.frames(blocks.stack[block]);
    const telling = stacks.telling(blocks.stack[block]);
    panel.replaceChildren(
        el(
            "div",
            { class: "headline" },
            el("h2", {}, `Block ${formatCount(block)} · ${formatBytes(size)}`),
            el("span", { class: "grow" }),
            frames.length > 0 &&
                button("copy stack", "copy the stack of this block", () => {
                    void copyAndSay(page, "stack of the block", stackText(stacks, frames));
                }),
            !isState(head) &&
                button("zoom (z)", "zoom to this block's life", () => zoomToLife(page)),
            saveButton(page, panel, "the block"),
            button("×", "close block details", () => page.change({ selected: -1 })),
        ),
        lifeList(page, lifeOf(model, block)),
        el(
            "div",
            {},
            `${formatCount(size)} B at ${addressText(model, blocks.offset[block])}, ${asked}, ` +
                `stream ${head.streams[blocks.stream[block]] ?? blocks.stream[block]}`,
        ),
        frames.length === 0
            ? el("div", { class: "faint" }, "no stack recorded")
            : el(
                  "ol",
                  { tabindex: "0", "aria-label": "stack" }, // it scrolls
                  ...frameItems(page, frames, telling),
              ),
    );
}
