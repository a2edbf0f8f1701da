// The call tree of all stacks: labels, search, and sums for the icicle. A parent always has a
// smaller number than its children, so one backward pass computes sums without recursion.
import { formatCounted } from "./format";
import type { StackTables } from "./header";
import { findText } from "./search";

export interface StackBox {
    node: number; // innermost node of the box
    chain: number[]; // nodes drawn as one box, innermost first
    depth: number;
    from: number;
    to: number;
}

/**
 * Branches of the tree that are too thin for a box. Their bytes are included in their callers'
 * boxes.
 */
export interface Thin {
    branches: number;
    bytes: number;
}

export interface StackLayout {
    boxes: StackBox[];
    total: number;
    depth: number;
    thin: Thin;
}

export class Stacks {
    readonly count: number;
    /** Per frame: the program's label at the end of its name; "" = none. */
    readonly labels: string[];
    private readonly firstChild: Uint32Array;
    private readonly children: Uint32Array;

    constructor(private readonly header: StackTables) {
        const { frames, strings } = header;
        this.labels = frames.label.map((name) => / "(.*)"$/.exec(strings[name])?.[1] ?? "");
        const { parent } = header.stacks;
        this.count = Math.max(1, parent.length);
        this.firstChild = new Uint32Array(this.count + 1);
        for (let node = 1; node < this.count; ++node) ++this.firstChild[parent[node] + 1];
        for (let node = 0; node < this.count; ++node) {
            this.firstChild[node + 1] += this.firstChild[node];
        }
        this.children = new Uint32Array(Math.max(0, this.count - 1));
        const fill = this.firstChild.slice();
        for (let node = 1; node < this.count; ++node) this.children[fill[parent[node]]++] = node;
    }

    isPython(node: number): boolean {
        return node > 0 && this.header.frames.python[this.header.stacks.frame[node]] === 1;
    }

    /** "samples.py:33 SampleCache.add", as in reports. */
    label(node: number): string {
        const { frames, strings, stacks } = this.header;
        const known =
            node > 0 && node < this.count ? strings[frames.label[stacks.frame[node]]] : "";
        return known || "no stack recorded";
    }

    /** Full path and line, for the details of a block. */
    place(node: number): string {
        const { frames, strings, stacks } = this.header;
        const frame = stacks.frame[node];
        const file = strings[frames.file[frame]] || "unknown file";
        return frames.line[frame] > 0 ? `${file}:${frames.line[frame]}` : file;
    }

    /** The frame of a node, as an index into the header's frames. */
    frame(node: number): number {
        return this.header.stacks.frame[node] ?? 0;
    }

    /** Frames from the innermost outwards, without the root. */
    frames(node: number): number[] {
        const list: number[] = [];
        for (let at = node; at > 0; at = this.header.stacks.parent[at]) list.push(at);
        return list;
    }

    /** Whether the frame is Python code of the user, not of a library. */
    isOwn(node: number): boolean {
        const { frames, strings, stacks } = this.header;
        return this.isPython(node) && strings[frames.library[stacks.frame[node]]] === "";
    }

    private isLibrary(node: number): boolean {
        const { frames, strings, stacks } = this.header;
        return strings[frames.library[stacks.frame[node]]] !== "";
    }

    /**
     * The frames in parts, from begin to end: single frames, and `least` or more frames of
     * libraries in a row. A stack of libraries only has single frames.
     */
    parts(frames: number[], least: number): [begin: number, end: number][] {
        const isLibrary = frames.map((node) => this.isLibrary(node));
        const folds = isLibrary.includes(false);
        const parts: [number, number][] = [];
        for (let begin = 0; begin < frames.length;) {
            let end = begin;
            while (end < frames.length && isLibrary[end]) ++end;
            if (!folds || end - begin < least) end = begin + 1;
            parts.push([begin, end]);
            begin = end;
        }
        return parts;
    }

    /** The callers of a node's frame, innermost first, at most `most` by name. */
    callers(node: number, most: number): string {
        const frames = this.frames(node).slice(1);
        const named = frames.slice(0, most).map((at) => this.label(at));
        const more = frames.length - named.length;
        if (more > 0) named.push(formatCounted(more, "more frame", "more frames"));
        return named.join(" ‹ ");
    }

    /** The frame that names the stack in reports. */
    telling(node: number): number {
        const { parent, telling } = this.header.stacks;
        let at = node;
        for (let up = telling[node] ?? 0; up > 0 && at > 0; --up) at = parent[at];
        return at;
    }

    /** The child of a node with a frame; 0 = none. */
    childOf(node: number, frame: number): number {
        for (let i = this.firstChild[node]; i < this.firstChild[node + 1]; ++i) {
            if (this.header.stacks.frame[this.children[i]] === frame) return this.children[i];
        }
        return 0;
    }

    /** The name of a node's frame, as a number that equal names share. */
    name(node: number): number {
        const { frames, stacks } = this.header;
        return frames.label[stacks.frame[node] ?? 0] ?? 0;
    }

    /** The line that names the stack in reports, as a number that equal lines share. */
    line(node: number): number {
        return this.name(this.telling(node));
    }

    /** The text of name() and line(). */
    lineName(line: number): string {
        return this.header.strings[line] || "no stack recorded";
    }

    /** Per node: whether its stack is named by the line. */
    ofLine(line: number): Uint8Array {
        const found = new Uint8Array(this.count);
        for (let node = 0; node < this.count; ++node) {
            found[node] = Number(this.line(node) === line);
        }
        return found;
    }

    /**
     * Per node: whether it or one of its callers matches. `hits` has a 1 for each matching string.
     */
    search(hits: Uint8Array): Uint8Array {
        const { frames } = this.header;
        return this.withFrames(
            Uint8Array.from(
                frames.label,
                (label, frame) =>
                    hits[label] | hits[frames.function[frame]] | hits[frames.file[frame]],
            ),
        );
    }

    /** Per node: whether it or one of its callers has one of the frames. */
    withFrames(frameHits: Uint8Array): Uint8Array {
        const { stacks } = this.header;
        const matches = new Uint8Array(this.count);
        for (let node = 1; node < this.count; ++node) {
            matches[node] = frameHits[stacks.frame[node]] | matches[stacks.parent[node]];
        }
        return matches;
    }

    /** Per node: whether it or one of its callers has this text. */
    withText(text: string): Uint8Array {
        return this.search(findText(this.header.strings, text));
    }

    /** Whether the frame of a node matches. */
    isHit(node: number, hits: Uint8Array): boolean {
        const { frames, stacks } = this.header;
        const frame = stacks.frame[node];
        return [frames.label, frames.function, frames.file].some((of) => hits[of[frame]] === 1);
    }

    /** Per node: whether it is `top` or called by it. */
    andBelow(top: number): Uint8Array {
        const below = new Uint8Array(this.count);
        below[top] = 1;
        for (let node = top + 1; node < this.count; ++node) {
            below[node] = below[this.header.stacks.parent[node]];
        }
        return below;
    }

    /**
     * Boxes of the icicle below `top`, outermost first. Chains without branches become one box.
     */
    layout(sums: Map<number, number>, smallestShare: number, top = 0): StackLayout {
        const { parent } = this.header.stacks;
        const values = new Float64Array(this.count);
        const own = new Float64Array(this.count);
        for (const [stack, bytes] of sums) {
            values[stack] += bytes;
            own[stack] += bytes;
        }
        for (let node = this.count - 1; node > 0; --node) values[parent[node]] += values[node];
        const total = values[top];
        const boxes: StackBox[] = [];
        const thin: Thin = { branches: 0, bytes: 0 };
        const work: { node: number; depth: number; from: number }[] = [
            { node: top, depth: 0, from: 0 },
        ];
        let depth = 0;
        while (total > 0 && work.length > 0) {
            const item = work.pop()!;
            const value = values[item.node];
            const chain = [item.node];
            let kids = this.heavyChildren(item.node, values, total * smallestShare, thin);
            while (
                item.node !== top &&
                kids.length === 1 &&
                own[chain[0]] === 0 &&
                values[kids[0]] >= value * 0.9999
            ) {
                chain.unshift(kids[0]);
                kids = this.heavyChildren(kids[0], values, total * smallestShare, thin);
            }
            boxes.push({
                node: chain[0],
                chain,
                depth: item.depth,
                from: item.from,
                to: item.from + value,
            });
            depth = Math.max(depth, item.depth + 1);
            let at = item.from;
            for (const kid of kids) {
                work.push({ node: kid, depth: item.depth + 1, from: at });
                at += values[kid];
            }
        }
        return { boxes, total, depth, thin };
    }

    private heavyChildren(node: number, values: Float64Array, least: number, thin: Thin): number[] {
        const kids: number[] = [];
        for (let i = this.firstChild[node]; i < this.firstChild[node + 1]; ++i) {
            const value = values[this.children[i]];
            if (value > least) {
                kids.push(this.children[i]);
            } else if (value > 0) {
                ++thin.branches;
                thin.bytes += value;
            }
        }
        return kids.sort((a, b) => values[b] - values[a]);
    }
}
