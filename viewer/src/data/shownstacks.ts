// The call tree that is drawn: whole, or with the frames of libraries folded.
import { foldStacks, type FoldedStacks } from "./fold";
import type { StackTables } from "./header";
import { Stacks } from "./stacks";

export class ShownStacks {
    private folded: { stacks: Stacks; fold: FoldedStacks } | null = null;

    constructor(
        private readonly tables: StackTables,
        private readonly whole: Stacks,
    ) {}

    tree(fold: boolean): Stacks {
        return fold ? this.folding().stacks : this.whole;
    }

    /** The names of a tree. Those of the folded one begin with those of the whole one. */
    names(fold: boolean): readonly string[] {
        return fold ? this.folding().fold.tables.strings : this.tables.strings;
    }

    /** A node of the whole tree in the tree that is drawn. */
    node(node: number, fold: boolean): number {
        return fold && node > 0 ? this.folding().fold.to[node] : node;
    }

    /** Values of the whole tree's nodes, added up for the tree that is drawn. */
    sums(sums: Map<number, number>, fold: boolean): Map<number, number> {
        if (!fold) return sums;
        const { to } = this.folding().fold;
        const folded = new Map<number, number>();
        for (const [stack, bytes] of sums) {
            folded.set(to[stack], (folded.get(to[stack]) ?? 0) + bytes);
        }
        return folded;
    }

    /**
     * Per stack of the blocks, whether it is `node` of the tree that is drawn or called by it; null
     * for no such node.
     */
    andBelow(node: number, fold: boolean): Uint8Array | null {
        const tree = this.tree(fold);
        if (node <= 0 || node >= tree.count) return null;
        const below = tree.andBelow(node);
        return fold ? Uint8Array.from(this.folding().fold.to, (at) => below[at]) : below;
    }

    /** Per node of the tree that is drawn, whether it matches; `matches` are those of the whole. */
    matches(hits: Uint8Array, matches: Uint8Array, fold: boolean): Uint8Array {
        if (!fold) return matches;
        const { stacks, fold: folding } = this.folding();
        const found = stacks.search(hits);
        matches.forEach((hit, node) => (found[folding.to[node]] |= hit));
        return found;
    }

    private folding(): { stacks: Stacks; fold: FoldedStacks } {
        if (!this.folded) {
            const fold = foldStacks(this.tables);
            this.folded = { stacks: new Stacks(fold.tables), fold };
        }
        return this.folded;
    }
}
