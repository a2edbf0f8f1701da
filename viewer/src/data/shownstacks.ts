// The call tree as it is drawn: in full, or with folded library frames and without hidden
// functions; from the program's entry to the allocation or bottom-up.
import { type AroundFrame, aroundFrame, bottomUp } from "./derivedtrees";
import { foldStacks, type Folding } from "./fold";
import type { StackTables } from "./header";
import { Stacks } from "./stacks";

export const shapes = ["icicle", "flame", "bottom-up", "callers"] as const;
export type Shape = (typeof shapes)[number];

/** Which tree is drawn. "callers" marks stacks of the same tree as icicle and flame. */
export interface TreeChoice extends Folding {
    shape: Shape;
}

/** A tree, its tables, and the node of each stack of the full tree; -1 = not in it. */
interface ShownTree {
    tables: StackTables;
    stacks: Stacks;
    to: ArrayLike<number> | null; // null: the same nodes
}

export class ShownStacks {
    private folded = new Map<string, ShownTree>(); // by keyOf()
    private used: Uint8Array = new Uint8Array(0);
    private inverted = new Map<string, ShownTree>(); // by keyOf()
    private lastAround: { key: string; trees: AroundFrame } | null = null;

    constructor(
        private readonly tables: StackTables,
        private readonly whole: Stacks,
    ) {}

    /** The bottom-up trees have only the stacks of the device's blocks: 1 in `used`. */
    use(used: Uint8Array): void {
        this.used = used;
        this.inverted.clear();
        this.lastAround = null;
    }

    tree(choice: TreeChoice): Stacks {
        return this.shown(choice).stacks;
    }

    /** The names of a tree. A folded tree's names begin with all names of the full tree. */
    names(choice: Folding): readonly string[] {
        return this.base(choice).tables.strings;
    }

    /** The drawn tree's node that stands for a line or a stack of the full tree; 0 = none. */
    node(node: number, choice: TreeChoice): number {
        const { tables, stacks, to } = this.base(choice);
        const at = to?.[node] ?? node;
        if (choice.shape !== "bottom-up" || node === 0) return at;
        const frame = tables.stacks.frame[stacks.telling(at)];
        return this.bottomUp(choice).stacks.childOf(0, frame);
    }

    /** Values per node of the full tree, added up per node of the drawn tree. */
    sums(sums: Map<number, number>, choice: TreeChoice): Map<number, number> {
        return mapped(sums, this.shown(choice).to);
    }

    /** The stacks with a frame of the given name, and their values in the trees of both sides. */
    around(
        label: number,
        choice: Folding,
        sums: Map<number, number>,
    ): { trees: AroundFrame; callers: Map<number, number>; callees: Map<number, number> } {
        const key = `${label},${keyOf(choice)}`;
        const { tables, stacks, to } = this.base(choice);
        if (this.lastAround?.key !== key) {
            const trees = aroundFrame(tables, stacks, this.usedIn(choice), label);
            this.lastAround = { key, trees };
        }
        const { trees } = this.lastAround;
        const inBase = mapped(sums, to);
        return {
            trees,
            callers: mapped(inBase, trees.callers.to),
            callees: mapped(inBase, trees.callees.to),
        };
    }

    /**
     * Per stack of the full tree: whether it is, or is below, `node` of the drawn tree. null if
     * there is no such node.
     */
    andBelow(node: number, choice: TreeChoice): Uint8Array | null {
        const { stacks, to } = this.shown(choice);
        if (node <= 0 || node >= stacks.count) return null;
        const below = stacks.andBelow(node);
        return to ? Uint8Array.from(to, (at) => below[at] ?? 0) : below;
    }

    /**
     * Per node of the drawn tree: whether it matches. `matches` has the answers for the full tree.
     */
    matches(hits: Uint8Array, matches: Uint8Array, choice: TreeChoice): Uint8Array {
        const { stacks, to } = this.shown(choice);
        if (!to) return matches;
        const found = stacks.search(hits);
        if (choice.shape !== "bottom-up") {
            matches.forEach((hit, node) => (found[to[node]] |= hit));
        }
        return found;
    }

    private base(choice: Folding): ShownTree {
        return choice.fold || choice.hidden !== ""
            ? this.folding(choice)
            : { tables: this.tables, stacks: this.whole, to: null };
    }

    private shown(choice: TreeChoice): ShownTree {
        return choice.shape === "bottom-up" ? this.bottomUp(choice) : this.base(choice);
    }

    private bottomUp(choice: Folding): ShownTree {
        return kept(this.inverted, keyOf(choice), () => {
            const base = this.base(choice);
            const { stacks, to } = bottomUp(base.tables, base.stacks, this.usedIn(choice));
            const ends = base.to ? Int32Array.from(base.to, (node) => to[node]) : to;
            return { tables: base.tables, stacks, to: ends };
        });
    }

    /** Per node of the full or the folded tree: whether a block has this stack. */
    private usedIn(choice: Folding): Uint8Array {
        const { stacks, to } = this.base(choice);
        const used = new Uint8Array(stacks.count);
        this.used.forEach((some, node) => (used[to?.[node] ?? node] |= some));
        return used;
    }

    private folding(choice: Folding): ShownTree {
        return kept(this.folded, keyOf(choice), () => {
            const { tables, to } = foldStacks(this.tables, choice);
            return { tables, stacks: new Stacks(tables), to };
        });
    }
}

const mostKept = 4; // trees: few, because a person tries many sets of hidden functions

function keyOf({ fold, hidden }: Folding): string {
    return `${fold},${hidden}`;
}

function kept(trees: Map<string, ShownTree>, key: string, make: () => ShownTree): ShownTree {
    const known = trees.get(key);
    if (known) return known;
    if (trees.size >= mostKept) trees.clear();
    const made = make();
    trees.set(key, made);
    return made;
}

/** Values of nodes that are not in the tree are left out. */
function mapped(sums: Map<number, number>, to: ArrayLike<number> | null): Map<number, number> {
    if (!to) return sums;
    const result = new Map<number, number>();
    for (const [node, bytes] of sums) {
        const at = to[node];
        if (at >= 0) result.set(at, (result.get(at) ?? 0) + bytes);
    }
    return result;
}
