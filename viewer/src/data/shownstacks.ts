// The call tree as it is drawn: in full or with library frames folded, and from the program's entry
// to the allocation or bottom-up.
import { type AroundFrame, aroundFrame, bottomUp } from "./derivedtrees";
import { foldStacks } from "./fold";
import type { StackTables } from "./header";
import { Stacks } from "./stacks";

export const shapes = ["icicle", "flame", "bottom-up", "callers"] as const;
export type Shape = (typeof shapes)[number];

/** Which tree is drawn. "callers" marks stacks of the same tree as icicle and flame. */
export interface TreeChoice {
    fold: boolean;
    shape: Shape;
}

/** A tree, its tables, and the node of each stack of the full tree; -1 = not in it. */
interface ShownTree {
    tables: StackTables;
    stacks: Stacks;
    to: ArrayLike<number> | null; // null: the same nodes
}

export class ShownStacks {
    private folded: ShownTree | null = null;
    private used: Uint8Array = new Uint8Array(0);
    private inverted = new Map<boolean, ShownTree>(); // by whether library frames are folded
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

    /** The names of a tree. The folded tree's names begin with all names of the full tree. */
    names(fold: boolean): readonly string[] {
        return fold ? this.folding().tables.strings : this.tables.strings;
    }

    /** The drawn tree's node that stands for a line or a stack of the full tree; 0 = none. */
    node(node: number, choice: TreeChoice): number {
        const at = this.base(choice.fold).to?.[node] ?? node;
        if (choice.shape !== "bottom-up" || node === 0) return at;
        const { tables, stacks } = this.base(choice.fold);
        const frame = tables.stacks.frame[stacks.telling(at)];
        return this.bottomUp(choice.fold).stacks.childOf(0, frame);
    }

    /** Values per node of the full tree, added up per node of the drawn tree. */
    sums(sums: Map<number, number>, choice: TreeChoice): Map<number, number> {
        return mapped(sums, this.shown(choice).to);
    }

    /** The stacks with a frame of the given name, and their values in the trees of both sides. */
    around(
        label: number,
        fold: boolean,
        sums: Map<number, number>,
    ): { trees: AroundFrame; callers: Map<number, number>; callees: Map<number, number> } {
        const key = `${fold},${label}`;
        const { tables, stacks, to } = this.base(fold);
        if (this.lastAround?.key !== key) {
            this.lastAround = { key, trees: aroundFrame(tables, stacks, this.usedIn(fold), label) };
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

    private base(fold: boolean): ShownTree {
        return fold ? this.folding() : { tables: this.tables, stacks: this.whole, to: null };
    }

    private shown({ fold, shape }: TreeChoice): ShownTree {
        return shape === "bottom-up" ? this.bottomUp(fold) : this.base(fold);
    }

    private bottomUp(fold: boolean): ShownTree {
        let made = this.inverted.get(fold);
        if (!made) {
            const base = this.base(fold);
            const { stacks, to } = bottomUp(base.tables, base.stacks, this.usedIn(fold));
            const ends = base.to ? Int32Array.from(base.to, (node) => to[node]) : to;
            made = { tables: base.tables, stacks, to: ends };
            this.inverted.set(fold, made);
        }
        return made;
    }

    /** Per node of the full or the folded tree: whether a block has this stack. */
    private usedIn(fold: boolean): Uint8Array {
        const { stacks, to } = this.base(fold);
        const used = new Uint8Array(stacks.count);
        this.used.forEach((some, node) => (used[to?.[node] ?? node] |= some));
        return used;
    }

    private folding(): ShownTree {
        if (!this.folded) {
            const { tables, to } = foldStacks(this.tables);
            this.folded = { tables, stacks: new Stacks(tables), to };
        }
        return this.folded;
    }
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
