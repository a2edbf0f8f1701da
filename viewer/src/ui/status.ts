// Texts about the state at the cursor, the window and the run, and the notes on the run.
import { withEscapes } from "../data/escapes";
import {
    formatBlocks,
    formatBytes,
    formatCount,
    formatCounted,
    formatTime,
    shortened,
} from "../data/format";
import { isState, leftOutText, requestedKnown, segmentsKnown } from "../data/header";
import { type BlockCount, countAll, countLive } from "../data/hits";
import { othersAt } from "../data/model";
import { bytesAt, mostWords } from "../data/overtime";
import { longestPhase, phaseAt } from "../data/phases";
import { runNames, sideOf } from "../data/tworuns";
import { rangeNames } from "../draw/ranges";
import { byId, el, onResize, withCode } from "./dom";
import { saveButton } from "./image";
import { rangeText } from "./rangepanel";
import { type PageView, windowMoments } from "./view";

export function statusText(page: PageView): string {
    const { header, heap, view, model, found } = page;
    if (!model.complete) return "Reading the blocks.";
    const { tick_ns, phase_names } = model.head;
    const phase = phaseAt(model.phases, view.cursor);
    const others = othersAt(model, view.cursor);
    const text =
        rangesText(page) +
        (isState(model.head)
            ? "a state without times"
            : `cursor ${windowMoments(page)(view.cursor * tick_ns)}`) +
        (phase >= 0
            ? ` in ${shortened(phase_names[model.phases.name[phase]].replace(/:$/, ""), longestPhase)}`
            : "") +
        (requestedKnown(model.head) ? `: ${formatBytes(heap.requested)} requested, ` : ": ") +
        `${formatBytes(heap.allocated)} allocated, ` +
        (heap.pending > 0 ? `${formatBytes(heap.pending)} pending, ` : "") +
        (segmentsKnown(model.head)
            ? `${formatBytes(heap.reserved)} reserved; ${formatBytes(heap.held)} in holes, ${formatBytes(heap.releasable)} releasable; `
            : "reserved unknown; ") +
        (others > 0
            ? `${mostWords(model.others)}${formatBytes(others)} outside the pool (other processes as last reported); `
            : "") +
        model.tracks
            .map(
                (track) =>
                    `${mostWords(track)}${formatBytes(bytesAt(track, view.cursor))} ${track.what}; `,
            )
            .join("") +
        formatBlocks(heap.live.length) +
        (segmentsKnown(model.head)
            ? ` in ${formatCounted(heap.units.length, "segment", "segments")}`
            : "") +
        leftOutText(model.head);
    if (!found) return text;
    if (found.problem) return `search "${view.query}": ${found.problem}. ${text}`;
    const wanted = { stacks: found.matches, blocks: found.blocks, also: null };
    const all = countAll(model, wanted);
    const live = countLive(model, heap, wanted);
    const where = header.devices.length > 1 ? "on this device" : "in the trace";
    return (
        `search "${view.query}": ${countText(all)} ${where}; ${countText(live)} at the cursor` +
        (model.head.blocks_left_out > 0
            ? "; blocks that the file leaves out are not searched"
            : "") +
        `. ${text}`
    );
}

function rangesText({ ranges }: PageView): string {
    return ranges
        .map(({ figures }, at) =>
            figures ? `range ${rangeNames[at]}: ${rangeText(figures)}. ` : "",
        )
        .join("");
}

function countText({ blocks, bytes }: BlockCount): string {
    return `${formatBlocks(blocks)}, ${formatBytes(bytes)} (${formatCount(bytes)} B)`;
}

export function windowText(page: PageView): string {
    const { view, model } = page;
    const { tick_ns, end_ns, axis_bytes } = model.head;
    const { t0, t1, a0, a1 } = view;
    const moment = windowMoments(page);
    const parts = [
        ...(t0 > 0 || t1 < model.lastTick
            ? [`${moment(t0 * tick_ns)} to ${moment(t1 * tick_ns)} of ${formatTime(end_ns)}`]
            : []),
        ...(a0 > 0 || a1 < axis_bytes
            ? [`${formatBytes(a1 - a0)} of ${formatBytes(axis_bytes)} of addresses`]
            : []),
    ];
    return parts.length > 0 ? `${parts.join(", ")}; press 0 to see all` : "";
}

const mostUnreadable = 8;

/** Shows the run in the header, the number of blocks, and the notes. */
export function describe(page: PageView): void {
    const { header } = page;
    const { head } = page.model;
    const process = header.processes[head.process];
    const run = byId("run");
    const side = sideOf(header, page.view.device);
    run.replaceChildren(
        side === null ? "" : `${runNames[side]}: `,
        process.title,
        // in a job the selector says it
        process.process && header.ranks.length === 0 ? ` · ${process.process}` : "",
        ` · ${head.name || "device"} (GPU ${head.index})`,
        ...(head.virtual ? [" ", el("span", { class: "badge" }, "virtual GPU")] : []),
    );
    run.title = process.command;
    const left = head.blocks_left_out;
    byId("count").textContent =
        formatBlocks(head.blocks) +
        (left > 0
            ? ` (${formatCount(left)} more, ${formatBytes(head.bytes_left_out)}, left out)`
            : "");
    const notes = [...head.notes, ...process.notes];
    if (head.phases_merged > 0) {
        notes.unshift(
            `${formatCount(head.phases_merged)} short or deeply nested phases share a range with their neighbours. ` +
                "Such a range has their number, and at most three of their names.",
        );
    }
    if (header.ranks.length > 0) {
        notes.push(
            "Each process has its own time axis, which begins with its trace. The table of processes gives the start of each trace.",
        );
    }
    const unread = header.unreadable;
    notes.push(
        ...unread
            .slice(0, mostUnreadable)
            .map(({ file, reason }) => `${file} could not be read: ${reason}`),
    );
    if (unread.length > mostUnreadable) {
        notes.push(
            `${formatCount(unread.length - mostUnreadable)} more traces could not be read. The table of processes names them.`,
        );
    }
    const panel = byId("notes");
    panel.hidden = notes.length === 0;
    panel.replaceChildren(
        el(
            "details",
            left > 0 ? { open: "" } : {},
            el("summary", {}, `${formatCounted(notes.length, "note", "notes")} on this trace`),
            el("ul", {}, ...notes.map((note) => el("li", {}, ...withCode(note)))),
        ),
        saveButton(page, panel, "the notes"),
    );
}

const mostKept = 60; // pixels: three lines

/**
 * Keeps the height that the status line has needed, because otherwise the panels would move when a
 * shorter text follows. A long message, such as one about a search, leaves again.
 */
export function keepStatusHeight(): void {
    const line = byId("status");
    let kept = 0;
    const keep = (): void => {
        const { height } = line.getBoundingClientRect();
        if (height <= kept || height > mostKept) return;
        kept = height;
        line.style.minHeight = `${height}px`;
    };
    onResize(keep).observe(line);
    addEventListener("resize", () => {
        kept = 0;
        line.style.minHeight = "";
    });
}

const speakAfterMs = 600;
let speech: ReturnType<typeof setTimeout> | undefined;

/**
 * Shows a text at once. A screen reader gets it only after it has not changed for a while.
 * Otherwise it would start again in every frame while the cursor moves.
 */
export function say(raw: string): void {
    const text = withEscapes(raw); // a search can have any character
    byId("status").textContent = text;
    clearTimeout(speech);
    speech = setTimeout(() => {
        if (byId("spoken").textContent !== text) byId("spoken").textContent = text;
    }, speakAfterMs);
}
