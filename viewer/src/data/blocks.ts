// The blocks of a device as columns, sorted by start. They arrive in packs of at most 256 Ki
// blocks. Each pack is decoded separately (by a worker, if there is one) and copied to its place.
import type { Columns } from "./columns";
import type { PackDescription } from "./header";

export const never = 0xffffffff;
export const noUnit = 0xffffffff;
const unknownExcess = 2 ** 48 - 1;

export interface Blocks {
    count: number;
    start: Uint32Array;
    freed: Uint32Array; // when the program frees the block
    // when its memory is reusable; the same array as `freed` if no block ever waits for a stream
    end: Uint32Array;
    unit: Uint32Array;
    offset: Float64Array; // address on the axis
    size: Uint32Array | Float64Array;
    excess: Int32Array | Float64Array; // size - requested; < 0 = not known
    stack: Uint16Array | Uint32Array;
    stream: Uint8Array | Uint16Array;
}

/** Whether a column needs its wide form. The answer is the same for all packs of a device. */
export interface BlockLayout {
    pending: boolean;
    size: boolean;
    excess: boolean;
    stack: boolean;
    stream: boolean;
}

export function blockLayout(packs: PackDescription[]): BlockLayout {
    const widest = (name: string): number =>
        packs.reduce(
            (most, pack) =>
                Math.max(most, pack.columns.find((column) => column[0] === name)?.[1] ?? 0),
            0,
        );
    return {
        pending: widest("pending") > 0,
        size: widest("size") > 4,
        excess: widest("excess") > 3,
        stack: widest("stack") > 2,
        stream: widest("stream") > 1,
    };
}

export function emptyBlocks(count: number, layout: BlockLayout): Blocks {
    const end = new Uint32Array(count);
    return {
        count,
        end,
        start: new Uint32Array(count),
        freed: layout.pending ? new Uint32Array(count) : end,
        unit: new Uint32Array(count),
        offset: new Float64Array(count),
        size: layout.size ? new Float64Array(count) : new Uint32Array(count),
        excess: layout.excess ? new Float64Array(count) : new Int32Array(count),
        stack: layout.stack ? new Uint32Array(count) : new Uint16Array(count),
        stream: layout.stream ? new Uint16Array(count) : new Uint8Array(count),
    };
}

const copied = ["start", "unit", "size", "excess", "stack", "stream"] as const;

/** The first `count` of `blocks`, in the same memory. */
function firstBlocks(blocks: Blocks, count: number): Blocks {
    const end = blocks.end.subarray(0, count);
    return {
        count,
        end,
        start: blocks.start.subarray(0, count),
        freed: blocks.freed === blocks.end ? end : blocks.freed.subarray(0, count),
        unit: blocks.unit.subarray(0, count),
        offset: blocks.offset.subarray(0, count),
        size: blocks.size.subarray(0, count),
        excess: blocks.excess.subarray(0, count),
        stack: blocks.stack.subarray(0, count),
        stream: blocks.stream.subarray(0, count),
    };
}

/** Returns the blocks of one pack, in the memory of `spare` (same layout) if they fit. */
export function blocksOf(
    columns: Columns,
    unitOffset: Float64Array,
    layout: BlockLayout,
    spare?: Blocks,
): Blocks {
    const count = columns.start.length;
    const blocks =
        spare && spare.count >= count ? firstBlocks(spare, count) : emptyBlocks(count, layout);
    for (const name of copied) blocks[name].set(columns[name]);
    const { start, freed, end, unit, offset, excess } = blocks;
    const { held, pending, offset: inUnit } = columns;
    for (let row = 0; row < count; ++row) {
        end[row] = held[row] === never ? never : start[row] + held[row];
    }
    if (layout.pending) {
        freed.set(end);
        for (let row = 0; row < count; ++row) {
            if (pending[row] !== 0 && freed[row] !== never) {
                end[row] = pending[row] === never ? never : freed[row] + pending[row];
            }
        }
    }
    for (let row = 0; row < count; ++row) {
        offset[row] = inUnit[row] + (unit[row] === noUnit ? 0 : unitOffset[unit[row]]);
    }
    if (layout.excess) {
        for (let row = 0; row < count; ++row) if (excess[row] === unknownExcess) excess[row] = -1;
    }
    return blocks;
}

/** Copies a pack's blocks into the rows from `at` on. */
export function placeBlocks(blocks: Blocks, part: Blocks, at: number): void {
    if (at + part.count > blocks.count) {
        throw new Error("the file has more blocks than it announces");
    }
    for (const name of copied) blocks[name].set(part[name], at);
    blocks.end.set(part.end, at);
    if (blocks.freed !== blocks.end) blocks.freed.set(part.freed, at);
    blocks.offset.set(part.offset, at);
}
