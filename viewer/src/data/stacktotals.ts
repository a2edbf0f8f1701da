// Number and bytes of all blocks of each stack. One pass over the blocks of a device.
import type { Blocks } from "./blocks";
import type { DeviceModel } from "./model";

/** As long as the highest stack number of a block needs. Sums per stack fit into such arrays. */
export interface StackTotals {
    blocks: Uint32Array;
    bytes: Float64Array;
}

const totalsOf = new WeakMap<Blocks, StackTotals>();

export function stackTotals({ blocks }: DeviceModel): StackTotals {
    let totals = totalsOf.get(blocks);
    if (!totals) totalsOf.set(blocks, (totals = summed(blocks)));
    return totals;
}

function summed({ stack, size, count }: Blocks): StackTotals {
    let numbers = new Uint32Array(1024);
    let bytes = new Float64Array(1024);
    let most = 0;
    for (let row = 0; row < count; ++row) {
        const node = stack[row];
        if (node > most) {
            most = node;
            if (node >= numbers.length) {
                const [fewer, less] = [numbers, bytes];
                numbers = new Uint32Array(2 * node);
                bytes = new Float64Array(2 * node);
                numbers.set(fewer);
                bytes.set(less);
            }
        }
        ++numbers[node];
        bytes[node] += size[row];
    }
    return { blocks: numbers.subarray(0, most + 1), bytes: bytes.subarray(0, most + 1) };
}
