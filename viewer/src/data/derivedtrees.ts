// Trees of frames that are made from the call tree: "bottom-up" begins with the line that names a
// stack and continues with its callers. "Around a frame" has the stacks that contain this frame:
// its callers in one tree, what it calls in another.
import type { StackTables } from "./header";
import { Stacks } from "./stacks";

export interface DerivedTree {
    stacks: Stacks;
    to: Int32Array; // per node of the call tree: the node of its stack's end; -1 = not in the tree
}

/** Adds paths of frames to a tree. Paths that begin alike share their nodes. */
class TreeMaker {
    private readonly stacks: StackTables["stacks"] = { parent: [0], frame: [0], telling: [0] };
    private readonly known = new Map<number, number>();

    constructor(private readonly tables: StackTables) {}

    /** The node at the end of a path that continues `from`. */
    add(from: number, frame: number): number {
        const key = from * this.tables.frames.label.length + frame;
        let node = this.known.get(key);
        if (node === undefined) {
            this.stacks.parent.push(from);
            this.stacks.telling.push(0);
            node = this.stacks.frame.push(frame) - 1;
            this.known.set(key, node);
        }
        return node;
    }

    made(to: Int32Array): DerivedTree {
        return { stacks: new Stacks({ ...this.tables, stacks: this.stacks }), to };
    }
}

/** `used` has a 1 for each stack that may have bytes. */
export function bottomUp(tables: StackTables, whole: Stacks, used: Uint8Array): DerivedTree {
    const maker = new TreeMaker(tables);
    const to = new Int32Array(whole.count).fill(-1);
    for (let node = 0; node < whole.count; ++node) {
        if (used[node] !== 1) continue;
        let at = 0;
        for (const caller of whole.frames(whole.telling(node))) {
            at = maker.add(at, tables.stacks.frame[caller]);
        }
        to[node] = at;
    }
    return maker.made(to);
}

export interface AroundFrame {
    callers: DerivedTree;
    callees: DerivedTree;
}

/**
 * The stacks with a frame of the given name. If a stack has it several times, the innermost one
 * counts. Both trees begin with the frame.
 */
export function aroundFrame(
    tables: StackTables,
    whole: Stacks,
    used: Uint8Array,
    label: number,
): AroundFrame {
    const { frame } = tables.stacks;
    const [callers, callees] = [new TreeMaker(tables), new TreeMaker(tables)];
    const to = [0, 0].map(() => new Int32Array(whole.count).fill(-1));
    // Frames of the same name become one box.
    const middle = tables.frames.label.indexOf(label);
    for (let node = 1; node < whole.count; ++node) {
        if (used[node] !== 1) continue;
        const path = whole.frames(node);
        const at = path.findIndex((one) => tables.frames.label[frame[one]] === label);
        if (at < 0) continue;
        let up = callers.add(0, middle);
        let down = callees.add(0, middle);
        for (const one of path.slice(at + 1)) up = callers.add(up, frame[one]);
        for (const one of path.slice(0, at).reverse()) down = callees.add(down, frame[one]);
        to[0][node] = up;
        to[1][node] = down;
    }
    return { callers: callers.made(to[0]), callees: callees.made(to[1]) };
}
