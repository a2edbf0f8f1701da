// The call tree as it is drawn: in full, or with library frames folded.
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

    /** The names of a tree. The folded tree's names begin with all names of the full tree. */
    names(fold: boolean): readonly string[] {
        return fold ? this.folding().fold.tables.strings : this.tables.strings;
    }

    /** The drawn tree's node for a node of the full tree. */
    node(node: number, fold: boolean): number {
        return fold && node > 0 ? this.folding().fold.to[node] : node;
    }

    /** Values per node of the full tree, added up per node of the drawn tree. */
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
     * Per stack of the full tree: whether it is, or is called by, `node` of the drawn tree. null if
     * there is no such node.
     */
    andBelow(node: number, fold: boolean): Uint8Array | null {
        const tree = this.tree(fold);
        if (node <= 0 || node >= tree.count) return null;
        const below = tree.andBelow(node);
        return fold ? Uint8Array.from(this.folding().fold.to, (at) => below[at]) : below;
    }

    /**
     * Per node of the drawn tree: whether it matches. `matches` has the answers for the full tree.
     */
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
