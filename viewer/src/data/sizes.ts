// How many blocks have which size.
import type { BlockCount } from "./hits";
import type { DeviceModel } from "./model";

/** Blocks of from <= size < to bytes; `to` is twice `from`. */
export interface SizeClass extends BlockCount {
    from: number;
    to: number;
}

/** Classes with a block, smallest first. */
export function sizeClasses(model: DeviceModel, rows: Iterable<number>): SizeClass[] {
    const { size } = model.blocks;
    const classes = new Map<number, SizeClass>();
    for (const row of rows) {
        const from = size[row] < 1 ? 0 : 2 ** Math.floor(Math.log2(size[row]));
        let known = classes.get(from);
        if (!known) {
            known = { from, to: Math.max(1, 2 * from), blocks: 0, bytes: 0 };
            classes.set(from, known);
        }
        ++known.blocks;
        known.bytes += size[row];
    }
    return [...classes.values()].sort((a, b) => a.from - b.from);
}
