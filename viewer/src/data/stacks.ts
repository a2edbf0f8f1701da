// The call tree of all stacks: labels, search, and sums for the icicle. A parent always has a
// smaller number than its children, so one backward pass sums up and nothing recurses.
import type { Header } from "./header";

export interface StackBox {
    node: number;   // innermost node of the box
    chain: number[];  // nodes drawn as one box, innermost first
    depth: number;
    from: number;
    to: number;
}

export class Stacks {
    readonly count: number;
    private readonly firstChild: Uint32Array;
    private readonly children: Uint32Array;

    constructor(private readonly header: Header) {
        const { parent } = header.stacks;
        this.count = Math.max(1, parent.length);
        this.firstChild = new Uint32Array(this.count + 1);
        for (let node = 1; node < this.count; ++node) ++this.firstChild[parent[node] + 1];
        for (let node = 0; node < this.count; ++node) this.firstChild[node + 1] += this.firstChild[node];
        this.children = new Uint32Array(Math.max(0, this.count - 1));
        const fill = this.firstChild.slice();
        for (let node = 1; node < this.count; ++node) this.children[fill[parent[node]]++] = node;
    }

    isPython(node: number): boolean {
        return node > 0 && this.header.frames.python[this.header.stacks.frame[node]] === 1;
    }

    /** "samples.py:33 SampleCache.add"; the file without its folders. */
    label(node: number): string {
        if (node <= 0 || node >= this.count) return "no stack recorded";
        const { frames, strings, stacks } = this.header;
        const frame = stacks.frame[node];
        const full = strings[frames.function[frame]];
        // Of native functions the parameters say little and take much room.
        const open = frames.python[frame] === 1 ? -1 : full.indexOf("(", 1);
        const name = open > 0 ? full.slice(0, open) : full;
        const file = strings[frames.file[frame]];
        if (!file) return name;
        const base = file.slice(file.lastIndexOf("/") + 1);
        return frames.line[frame] > 0 ? `${base}:${frames.line[frame]} ${name}` : `${name} (${base})`;
    }

    /** Path and line in full, for the details of a block. */
    place(node: number): string {
        const { frames, strings, stacks } = this.header;
        const frame = stacks.frame[node];
        const file = strings[frames.file[frame]] || "unknown file";
        return frames.line[frame] > 0 ? `${file}:${frames.line[frame]}` : file;
    }

    name(node: number): string {
        const { frames, strings, stacks } = this.header;
        return strings[frames.function[stacks.frame[node]]];
    }

    /** Innermost first, without the root. */
    frames(node: number): number[] {
        const list: number[] = [];
        for (let at = node; at > 0; at = this.header.stacks.parent[at]) list.push(at);
        return list;
    }

    /** The frame a person looks for: the innermost Python one, else a step of autograd, else the innermost. */
    telling(node: number): number {
        const { parent, frame } = this.header.stacks;
        const { strings, frames } = this.header;
        let step = 0;
        for (let at = node; at > 0; at = parent[at]) {
            if (this.isPython(at)) return at;
            if (step === 0 && /\w+Backward\d+::apply/.test(strings[frames.function[frame[at]]])) step = at;
        }
        return step || node;
    }

    /** Per node whether it or a caller matches; empty queries match nothing. */
    search(query: string): Uint8Array | null {
        const wanted = query.trim().toLowerCase();
        if (!wanted) return null;
        const { frames, strings, stacks } = this.header;
        const hit = strings.map((text) => text.toLowerCase().includes(wanted));
        const matches = new Uint8Array(this.count);
        for (let node = 1; node < this.count; ++node) {
            const frame = stacks.frame[node];
            const self = hit[frames.function[frame]] || hit[frames.file[frame]] || this.label(node).toLowerCase().includes(wanted);
            matches[node] = self || matches[stacks.parent[node]] ? 1 : 0;
        }
        return matches;
    }

    /** Boxes of the icicle, outermost on top; chains without branches become one box. */
    layout(sums: Map<number, number>, smallestShare: number): { boxes: StackBox[]; total: number; depth: number } {
        const { parent } = this.header.stacks;
        const values = new Float64Array(this.count);
        const own = new Float64Array(this.count);
        for (const [stack, bytes] of sums) {
            values[stack] += bytes;
            own[stack] += bytes;
        }
        for (let node = this.count - 1; node > 0; --node) values[parent[node]] += values[node];
        const total = values[0];
        const boxes: StackBox[] = [];
        const work: { node: number; depth: number; from: number }[] = [{ node: 0, depth: 0, from: 0 }];
        let depth = 0;
        while (total > 0 && work.length > 0) {
            const item = work.pop()!;
            const value = values[item.node];
            const chain = [item.node];
            let kids = this.heavyChildren(item.node, values, total * smallestShare);
            while (item.node !== 0 && kids.length === 1 && own[chain[0]] === 0 && values[kids[0]] >= value * 0.9999) {
                chain.unshift(kids[0]);
                kids = this.heavyChildren(kids[0], values, total * smallestShare);
            }
            boxes.push({ node: chain[0], chain, depth: item.depth, from: item.from, to: item.from + value });
            depth = Math.max(depth, item.depth + 1);
            let at = item.from;
            for (const kid of kids) {
                work.push({ node: kid, depth: item.depth + 1, from: at });
                at += values[kid];
            }
        }
        return { boxes, total, depth };
    }

    private heavyChildren(node: number, values: Float64Array, least: number): number[] {
        const kids: number[] = [];
        for (let i = this.firstChild[node]; i < this.firstChild[node + 1]; ++i) {
            if (values[this.children[i]] > least) kids.push(this.children[i]);
        }
        return kids.sort((a, b) => values[b] - values[a]);
    }
}
