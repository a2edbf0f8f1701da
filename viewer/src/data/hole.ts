// One free range inside a segment (or page of an expandable segment): since when it is free, what
// is beside it, what keeps its segment, and which requests failed while it was free.
import type { Card } from "./header";
import { type HeapState, holesOf, isKept } from "./heap";
import { cardTick, type DeviceModel, poolsHeld } from "./model";
import { partAt } from "./under";
import { upperBound } from "./upperbound";

type Bytes = [offset: number, size: number];

export interface FailedRequest {
    card: number; // index into the header's cards
    requested: number;
    size: number; // of the free range around the same address at that moment
}

export interface Hole {
    offset: number;
    size: number;
    unit: number;
    before: number; // live block next to it; -1 = the segment begins or ends there
    after: number;
    blocks: Uint32Array; // live blocks of the segment: without them it could be released
    bytes: number; // of these blocks within the segment
    kept: boolean; // whether its segment cannot be released
    since: number; // tick from which all its bytes are free
    last: number; // the block that was freed then; -1 = none, it is free since the segment exists
    beyondBefore: number; // bytes free beyond the block before it, and after it
    beyondAfter: number;
    failed: FailedRequest[];
}

/** The free range of the segments at the heap's time that contains an offset; null = none. */
export function holeAt(model: DeviceModel, heap: HeapState, at: number): Hole | null {
    const { units, blocks } = model;
    const state = heap.units.find(
        ({ unit }) => units.offset[unit] <= at && at < units.offset[unit] + units.size[unit],
    );
    const range = state ? partAt(model, state, at).hole : null;
    if (!state || !range) return null;
    const [offset, size] = range;
    const next = state.blocks.findIndex((block) => blocks.offset[block] >= offset + size);
    const following = next < 0 ? state.blocks.length : next;
    const before = state.blocks[following - 1] ?? -1;
    const after = state.blocks[following] ?? -1;
    const freeAt = (byte: number): number => {
        const beside =
            byte >= units.offset[state.unit] &&
            byte < units.offset[state.unit] + units.size[state.unit]
                ? partAt(model, state, byte).hole
                : null;
        return beside?.[1] ?? 0;
    };
    return {
        offset,
        size,
        unit: state.unit,
        before,
        after,
        blocks: state.blocks,
        bytes: state.used,
        kept: state.kept,
        ...freeSince(model, heap.tick, state.unit, range),
        beyondBefore: before < 0 ? 0 : freeAt(blocks.offset[before] - 1),
        beyondAfter: after < 0 ? 0 : freeAt(blocks.offset[after] + blocks.size[after]),
        failed: failedRequests(model, heap, state.unit, offset),
    };
}

export interface FreePart {
    offset: number;
    size: number;
    kept: boolean; // whether its segment cannot be released
    since: number; // tick from which all its bytes are free
    last: number; // as in `Hole`
}

/**
 * The free range around an offset at any time, without the state of all segments; null = none. The
 * pointer moves through times of which no state is known.
 */
export function freePartAt(model: DeviceModel, tick: number, at: number): FreePart | null {
    const { blocks, units } = model;
    let unit = 0;
    while (
        unit < units.count &&
        (at < units.offset[unit] ||
            at >= units.offset[unit] + units.size[unit] ||
            tick < units.start[unit] ||
            tick >= units.end[unit])
    ) {
        ++unit;
    }
    if (unit === units.count) return null;
    const begin = units.offset[unit];
    const end = begin + units.size[unit];
    const [before, after] = model.live.around(tick, at, blocks.offset);
    const from = before < 0 ? begin : Math.max(begin, blocks.offset[before] + blocks.size[before]);
    const to = after < 0 ? end : Math.min(end, blocks.offset[after]);
    if (at < from) return null;
    const used = from > begin || to < end ? 1 : 0;
    return {
        offset: from,
        size: to - from,
        kept: isKept(model, unit, used, poolsHeld(model, tick)),
        ...freeSince(model, tick, unit, [from, to - from]),
    };
}

// A pass over the blocks that began before: the last one that ended on these bytes.
function freeSince(
    { blocks, units }: DeviceModel,
    tick: number,
    unit: number,
    [offset, size]: Bytes,
): { since: number; last: number } {
    let since = units.start[unit];
    let last = -1;
    for (let row = upperBound(blocks.start, tick) - 1; row >= 0; --row) {
        const end = blocks.end[row];
        if (end < since || end > tick) continue;
        if (blocks.offset[row] < offset + size && blocks.offset[row] + blocks.size[row] > offset) {
            [since, last] = [end, row];
        }
    }
    return { since, last };
}

// Out-of-memories and retries at whose moment the address was free in the same segment.
function failedRequests(
    model: DeviceModel,
    heap: HeapState,
    unit: number,
    at: number,
): FailedRequest[] {
    const { units, head } = model;
    const asked = ({ kind, requested }: Card): boolean =>
        requested !== null && (kind === "oom" || kind === "retry");
    return head.cards.flatMap((card, index) => {
        const tick = cardTick(head, card);
        if (!asked(card) || tick < units.start[unit] || tick >= units.end[unit]) return [];
        const size = freeAround(
            model,
            tick === heap.tick ? heap.live : model.live.at(tick),
            unit,
            at,
        );
        return size > 0 ? [{ card: index, requested: card.requested!, size }] : [];
    });
}

/** The bytes of the free range of a unit around an offset, if `live` are the live blocks. */
function freeAround(
    { blocks, units }: DeviceModel,
    live: Uint32Array,
    unit: number,
    at: number,
): number {
    let low = units.offset[unit];
    let high = low + units.size[unit];
    for (const row of live) {
        const from = blocks.offset[row];
        const to = from + blocks.size[row];
        if (from <= at && at < to) return 0;
        if (to <= at && to > low) low = to;
        if (from > at && from < high) high = from;
    }
    return high - low;
}

/** The holes of the heap that cannot be released, the largest first, as offsets. */
export function holesBySize(model: DeviceModel, heap: HeapState): number[] {
    const kept = heap.units.filter((state) => state.kept && state.free > 0);
    return kept
        .flatMap((state) => holesOf(model, state))
        .sort((a, b) => b[1] - a[1] || a[0] - b[0])
        .map(([offset]) => offset);
}
