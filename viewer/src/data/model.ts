// One device in memory: columns of blocks and of release units (segments, or pages of expandable
// ones), bins and map planes. Times are ticks of header.tick_ns, sizes and offsets bytes.
import type { Columns } from "./columns";
import type { DeviceHeader } from "./header";
import { LiveIndex } from "./liveindex";

export const never = 0xffffffff;
export const noUnit = 0xffffffff;
const unknownExcess = 2 ** 48 - 1;

export interface Blocks {
    count: number;
    start: Uint32Array;
    freed: Uint32Array;  // the program's free
    end: Uint32Array;    // reusable from here on
    unit: Uint32Array;
    offset: Float64Array;  // on the axis
    size: Float64Array;
    excess: Float64Array;  // size - requested; < 0 = not known
    stack: Uint32Array;
    stream: Uint32Array;
}

export interface Units {
    count: number;
    start: Uint32Array;
    end: Uint32Array;
    offset: Float64Array;
    size: Float64Array;
    segment: Uint32Array;
    pool: Uint32Array;
    stream: Uint32Array;
    flags: Uint8Array;
}

export const unitSmall = 1;
export const unitMayRelease = 2;
export const unitExpandable = 4;

export interface Bins {
    count: number;
    requested: Float64Array;
    internal: Float64Array;
    pending: Float64Array;
    held: Float64Array;
    releasable: Float64Array;
    other: Float64Array;
    allocated_max: Float64Array;
    allocated_min: Float64Array;
    reserved_max: Float64Array;
}

export interface MapPlanes {
    columns: number;
    rows: number;
    in_use: Uint8Array;
    kept: Uint8Array;
    reserved: Uint8Array;
}

export interface DeviceModel {
    head: DeviceHeader;
    lastTick: number;
    bins: Bins;
    map: MapPlanes;
    units: Units;
    blocks: Blocks;
    spanBlock: Uint32Array;  // blocks over several units: ascending, with the further unit each
    spanUnit: Uint32Array;
    live: LiveIndex;
}

export function makeUnits(columns: Columns, count: number): Units {
    return { count, ...columns } as unknown as Units;
}

export function makeBlocks(chunks: Columns[], units: Units): Blocks {
    let count = 0;
    for (const chunk of chunks) count += chunk.start.length;
    const blocks: Blocks = {
        count,
        start: new Uint32Array(count),
        freed: new Uint32Array(count),
        end: new Uint32Array(count),
        unit: new Uint32Array(count),
        offset: new Float64Array(count),
        size: new Float64Array(count),
        excess: new Float64Array(count),
        stack: new Uint32Array(count),
        stream: new Uint32Array(count),
    };
    let at = 0;
    for (const chunk of chunks) {
        const n = chunk.start.length;
        for (const name of ["start", "unit", "size", "excess", "stack", "stream"] as const) {
            blocks[name].set(chunk[name] as never, at);
        }
        for (let i = 0; i < n; ++i) {
            const row = at + i;
            const start = chunk.start[i];
            const held = chunk.held[i];
            const pending = chunk.pending[i];
            const freed = held === never ? never : start + held;
            blocks.freed[row] = freed;
            blocks.end[row] = freed === never || pending === never ? never : freed + pending;
            const unit = chunk.unit[i];
            blocks.offset[row] = chunk.offset[i] + (unit === noUnit ? 0 : units.offset[unit]);
            if (blocks.excess[row] === unknownExcess) blocks.excess[row] = -1;
        }
        at += n;
    }
    return blocks;
}

export function makeModel(head: DeviceHeader, packs: Map<string, Columns>): DeviceModel {
    const pack = (name: string): Columns => {
        for (const [id, columns] of packs) if (id.endsWith("-" + name)) return columns;
        throw new Error(`the file has no ${name}`);
    };
    const unitColumns = pack("units");
    const units = makeUnits(unitColumns, unitColumns.start.length);
    const chunks = [...packs].filter(([id]) => id.includes("-blocks-")).map(([, columns]) => columns);
    const blocks = makeBlocks(chunks, units);
    if (blocks.count !== head.blocks) throw new Error("the file is cut off: blocks are missing");
    const spans = pack("spans");
    const bins = pack("bins");
    return {
        head,
        lastTick: Math.max(1, Math.ceil(head.end_ns / head.tick_ns)),
        bins: { count: bins.held.length, ...bins } as unknown as Bins,
        map: { columns: head.map[0], rows: head.map[1], ...pack("map") } as unknown as MapPlanes,
        units,
        blocks,
        spanBlock: spans.block as Uint32Array,
        spanUnit: spans.unit as Uint32Array,
        live: new LiveIndex(blocks.start, blocks.end),
    };
}

/** First position in ascending `values` whose value is above `limit`. */
export function upperBound(values: Uint32Array | Float64Array, limit: number): number {
    let low = 0;
    let high = values.length;
    while (low < high) {
        const middle = (low + high) >>> 1;
        if (values[middle] <= limit) low = middle + 1;
        else high = middle;
    }
    return low;
}

/** Calls back with every unit that the block touches, in ascending order of address. */
export function forUnits(model: DeviceModel, block: number, visit: (unit: number) => void): void {
    const unit = model.blocks.unit[block];
    if (unit === noUnit) return;
    visit(unit);
    const { spanBlock, spanUnit } = model;
    if (spanBlock.length === 0) return;
    for (let i = upperBound(spanBlock, block - 1); i < spanBlock.length && spanBlock[i] === block; ++i) {
        visit(spanUnit[i]);
    }
}

/** The traced process's address at an offset of the axis. */
export function addressAt(head: DeviceHeader, offset: number): bigint {
    let found = 0;
    for (let i = 0; i < head.axis.length && head.axis[i][2] <= offset; ++i) found = i;
    const range = head.axis[found];
    return range ? BigInt(range[0]) + BigInt(Math.floor(offset - range[2])) : 0n;
}
