// Memory of all processes of a job over time: one row per process and device, on one clock.
import type { Header, Rank } from "./header";
import { shownPeak } from "./ranks";

export const heatMeasures = [
    "reserved",
    "allocated",
    "free on the card",
    "reserved but not allocated",
] as const;
export const heatOrders = ["differs", "rank"] as const;
export type HeatOrder = (typeof heatOrders)[number];
export type HeatMeasure = (typeof heatMeasures)[number];

export interface HeatRow {
    rank: Rank;
    // 0 = the process did not run, 1 = not known, else 2 + its share in 1/253, rounded up
    allocated: Uint8Array;
    reserved: Uint8Array | null; // null = unknown
}

const unknown = 1;
const zero = 2;
const steps = 255 - zero;

export function decodeBytes(text: string): Uint8Array {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** The rows that have values, those that differ from the others first. */
export function heatRows(header: Header, byRank: boolean): HeatRow[] {
    const rows = header.ranks
        .filter(({ allocated_heat }) => allocated_heat !== null)
        .map((rank) => {
            const reserved = rank.reserved_heat;
            return {
                rank,
                allocated: decodeBytes(rank.allocated_heat!),
                reserved: reserved === null ? null : decodeBytes(reserved),
            };
        });
    if (byRank) return rows;
    const peaks = rows.map(({ rank }) => shownPeak(rank)).sort((a, b) => a - b);
    const usual = peaks[Math.floor(peaks.length / 2)] ?? 0;
    const differs = ({ rank }: HeatRow): number => Math.abs(shownPeak(rank) - usual);
    // The first failures come before all times. A failure whose time is not known may be an early
    // one, so it comes before the others.
    const firsts = Number.MAX_SAFE_INTEGER;
    const failed = ({ rank }: HeatRow): number => {
        if (rank.first_failure !== null) return rank.first_failure - firsts;
        if (rank.first_oom_ns !== null) return rank.first_oom_ns + (rank.start_after_ns ?? 0);
        return (rank.ooms ?? 0) > 0 ? -1 : Infinity;
    };
    return rows.sort((a, b) =>
        failed(a) === failed(b) ? differs(b) - differs(a) : failed(a) - failed(b),
    );
}

/** Bytes of a column; null = the process did not run, or they are unknown. */
export function heatBytes(
    { heat }: Header,
    row: HeatRow,
    measure: HeatMeasure,
    column: number,
): number | null {
    const bytes = (values: Uint8Array): number =>
        ((values[column] - zero) / steps) * heat.full_bytes;
    if (row.allocated[column] < zero) return null;
    if (measure === "allocated") return bytes(row.allocated);
    if (row.reserved === null) return null;
    if (measure === "reserved") return bytes(row.reserved);
    if (measure === "reserved but not allocated") {
        return Math.max(0, bytes(row.reserved) - bytes(row.allocated));
    }
    return row.rank.capacity === null ? null : Math.max(0, row.rank.capacity - bytes(row.reserved));
}

/** Whether it is unknown if the process of a row still ran, or what it held, in a column. */
export function heatUnknown({ allocated }: HeatRow, column: number): boolean {
    return allocated[column] === unknown;
}

/** The parts of a row in which that is unknown: first column, and the one after the last. */
export function unknownParts(row: HeatRow, columns: number): [number, number][] {
    const parts: [number, number][] = [];
    for (let column = 0; column < columns; ++column) {
        if (!heatUnknown(row, column)) continue;
        const last = parts.at(-1);
        if (last?.[1] === column) ++last[1];
        else parts.push([column, column + 1]);
    }
    return parts;
}

/** How exact the bytes of a column are: reserved and allocated memory are rounded up. */
export function heatCertainty(measure: HeatMeasure): "at most" | "at least" | "about" {
    if (measure === "reserved" || measure === "allocated") return "at most";
    return measure === "free on the card" ? "at least" : "about";
}

/** The share of the scale that a value has, 0 to 1. Little free memory is the dark end. */
export function heatShare(header: Header, measure: HeatMeasure, bytes: number): number {
    const share = Math.min(1, bytes / header.heat.full_bytes);
    return measure === "free on the card" ? 1 - share : share;
}
