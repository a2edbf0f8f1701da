// One device in memory: columns of blocks and of release units (segments, or pages of expandable
// segments), bins and map planes. Times are ticks of header.tick_ns. Sizes and offsets are bytes.
import { type Blocks, blockLayout, blocksOf, emptyBlocks, noUnit, placeBlocks } from "./blocks";
import type { Columns } from "./columns";
import type { Card, DeviceHeader, Side } from "./header";
import { type Curves, readCurves } from "./curves";
import { LiveIndex } from "./liveindex";
import { type SideMemory, type Track, bytesAt, tracksOf } from "./overtime";
import { type Phases, readPhases } from "./phases";
import { upperBound } from "./upperbound";

export { never, noUnit } from "./blocks";

export interface Units {
    count: number;
    start: ArrayLike<number>;
    end: ArrayLike<number>;
    offset: Float64Array;
    size: ArrayLike<number>;
    pool: ArrayLike<number>; // 0 = the default pool
    stream: ArrayLike<number>;
    small: ArrayLike<number>; // 1 = in the pool for small blocks
}

/**
 * Ticks at which a private pool allows the release of its segments and forbids it again, in turn.
 */
export interface PoolHistory {
    name: string;
    changes: number[];
}

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
    complete: boolean; // false: blocks are still being read, so the columns are empty
    bins: Bins;
    map: MapPlanes;
    units: Units;
    blocks: Blocks;
    spanBlock: Uint32Array; // blocks that span several units: ascending, one row per further unit
    spanUnit: Uint32Array;
    live: LiveIndex;
    phases: Phases;
    curves: Curves;
    others: SideMemory; // memory outside the pool
    tracks: Track[];
    pools: PoolHistory[]; // indexed by units.pool
}

/** Memory used outside the pool at a time: the CUDA context, other libraries, other processes. */
export function othersAt(model: DeviceModel, tick: number): number {
    return bytesAt(model.others, tick);
}

/** Per pool: whether it prevents the release of its empty segments at a time. */
export function poolsHeld(model: DeviceModel, tick: number): Uint8Array {
    return Uint8Array.from(model.pools, ({ changes }, pool) =>
        pool > 0 && upperBound(changes, tick) % 2 === 0 ? 1 : 0,
    );
}

/** Packs whose names end like this are enough to draw a device before its blocks are read. */
export const overviewPacks = [
    "bins",
    "map",
    "units",
    "phases",
    "curve_times",
    "curves",
    "others",
    "pinned",
    "managed",
];

export function makeOverview(head: DeviceHeader, packs: Map<string, Columns>): DeviceModel {
    const pack = packNamed(packs);
    const units = pack("units");
    const bins = pack("bins");
    const blocks = emptyBlocks(0, blockLayout([]));
    const overTime = (name: Side): SideMemory => {
        const { time, bytes } = pack(name);
        return { time, bytes, partNs: head.part_ns[name] };
    };
    return {
        head,
        lastTick: Math.max(1, Math.ceil(head.end_ns / head.tick_ns)),
        complete: false,
        bins: { count: bins.held.length, ...bins } as unknown as Bins,
        map: { columns: head.map[0], rows: head.map[1], ...pack("map") } as unknown as MapPlanes,
        units: {
            count: units.start.length,
            ...units,
            offset: Float64Array.from(units.offset),
        } as unknown as Units,
        blocks,
        spanBlock: new Uint32Array(0),
        spanUnit: new Uint32Array(0),
        live: new LiveIndex(blocks.start, blocks.end),
        phases: readPhases(pack("phases")),
        curves: readCurves(head, pack("curve_times"), pack("curves")),
        others: overTime("others"),
        tracks: tracksOf(overTime),
        pools: head.pools.map(({ name, changes_ns }) => ({
            name,
            changes: changes_ns.map((time) => Math.floor(time / head.tick_ns)),
        })),
    };
}

export function withBlocks(overview: DeviceModel, blocks: Blocks, spans: Columns): DeviceModel {
    return {
        ...overview,
        complete: true,
        blocks,
        spanBlock: Uint32Array.from(spans.block),
        spanUnit: Uint32Array.from(spans.unit),
        live: new LiveIndex(blocks.start, blocks.end),
    };
}

/** Builds the model at once, from all packs of a device. */
export function makeModel(head: DeviceHeader, packs: Map<string, Columns>): DeviceModel {
    const overview = makeOverview(head, packs);
    const parts = head.packs.filter(({ id }) => id.includes("-blocks-"));
    const layout = blockLayout(parts);
    const blocks = emptyBlocks(head.blocks, layout);
    let at = 0;
    for (const { id, rows } of parts) {
        placeBlocks(blocks, blocksOf(packs.get(id)!, overview.units.offset, layout), at);
        at += rows;
    }
    if (at !== head.blocks) throw new Error("the file is cut off: blocks are missing");
    return withBlocks(overview, blocks, packNamed(packs)("spans"));
}

function packNamed(packs: Map<string, Columns>): (name: string) => Columns {
    return (name) => {
        for (const [id, columns] of packs) if (id.endsWith("-" + name)) return columns;
        throw new Error(`the file has no ${name}`);
    };
}

/** Calls `visit` with every unit that the block overlaps, in ascending order of address. */
export function forUnits(model: DeviceModel, block: number, visit: (unit: number) => void): void {
    const unit = model.blocks.unit[block];
    if (unit === noUnit) return;
    visit(unit);
    const { spanBlock, spanUnit } = model;
    if (spanBlock.length === 0) return;
    for (
        let i = upperBound(spanBlock, block - 1);
        i < spanBlock.length && spanBlock[i] === block;
        ++i
    ) {
        visit(spanUnit[i]);
    }
}

/**
 * The cursor position for a card. A retry shows the state before its block, one tick earlier. If
 * several events share a tick, the state is the one after all of them.
 */
export function cardTick(head: DeviceHeader, card: Card): number {
    return Math.max(0, Math.floor(card.time_ns / head.tick_ns) - (card.kind === "retry" ? 1 : 0));
}

/** The address in the traced process at an offset of the axis. */
export function addressAt(head: DeviceHeader, offset: number): bigint {
    let found = 0;
    for (let i = 0; i < head.axis.length && head.axis[i][2] <= offset; ++i) found = i;
    const range = head.axis[found];
    return range ? BigInt(range[0]) + BigInt(Math.floor(offset - range[2])) : 0n;
}
