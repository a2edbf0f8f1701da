// Memory of all processes of a job over time: one row per process and device, on one clock.
import type { Header, Rank } from "./header";
import { shownPeak } from "./ranks";

export const heatMeasures = ["reserved", "free on the card", "reserved but not allocated"] as const;
export type HeatMeasure = (typeof heatMeasures)[number];

export interface HeatRow {
    rank: Rank;
    reserved: Uint8Array; // 0 = the process did not run, else 1 + its share in 1/254
    allocated: Uint8Array;
}

const steps = 254;

export function decodeBytes(text: string): Uint8Array {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** The rows that have values, those that differ from the others first. */
export function heatRows(header: Header, byRank: boolean): HeatRow[] {
    const rows = header.ranks
        .filter(({ allocated_heat }) => allocated_heat !== null)
        .map((rank) => {
            const allocated = decodeBytes(rank.allocated_heat!);
            return {
                rank,
                reserved: rank.reserved_heat === null ? allocated : decodeBytes(rank.reserved_heat),
                allocated,
            };
        });
    if (byRank) return rows;
    const peaks = rows.map(({ rank }) => shownPeak(rank)).sort((a, b) => a - b);
    const usual = peaks[Math.floor(peaks.length / 2)] ?? 0;
    const differs = ({ rank }: HeatRow): number => Math.abs(shownPeak(rank) - usual);
    return rows.sort(
        (a, b) =>
            Number(b.rank.ooms > 0) - Number(a.rank.ooms > 0) ||
            (a.rank.first_oom_ns ?? 0) +
                (a.rank.start_after_ns ?? 0) -
                (b.rank.first_oom_ns ?? 0) -
                (b.rank.start_after_ns ?? 0) ||
            differs(b) - differs(a),
    );
}

/** Bytes of a column; null = the process did not run, or its capacity is unknown. */
export function heatBytes(
    { heat }: Header,
    row: HeatRow,
    measure: HeatMeasure,
    column: number,
): number | null {
    const bytes = (values: Uint8Array): number => ((values[column] - 1) / steps) * heat.full_bytes;
    if (!row.allocated[column]) return null;
    if (measure === "reserved") return bytes(row.reserved);
    if (measure === "reserved but not allocated") {
        return Math.max(0, bytes(row.reserved) - bytes(row.allocated));
    }
    return row.rank.capacity === null ? null : Math.max(0, row.rank.capacity - bytes(row.reserved));
}

/** The share of the scale that a value has, 0 to 1. Little free memory is the dark end. */
export function heatShare(header: Header, measure: HeatMeasure, bytes: number): number {
    const share = Math.min(1, bytes / header.heat.full_bytes);
    return measure === "free on the card" ? 1 - share : share;
}
