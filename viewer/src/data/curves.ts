// Reserved memory over time in the replays of the what-if rows: one curve per row that has one.
import type { Columns } from "./columns";
import type { DeviceHeader } from "./header";

export interface Curves {
    times: Uint32Array; // ticks at which the steps of the curves begin
    byRow: (Float64Array | null)[]; // bytes, one curve per what-if row
}

export function readCurves(head: DeviceHeader, times: Columns, values: Columns): Curves {
    const ticks = Uint32Array.from(times.time);
    const all = Float64Array.from(values.reserved);
    let at = 0;
    const byRow = head.whatif.map((row) => {
        if (!row.curve) return null;
        const curve = all.subarray(at, at + ticks.length);
        if (curve.length !== ticks.length) {
            throw new Error("the file is cut off: a curve is missing");
        }
        at += ticks.length;
        return curve;
    });
    return { times: ticks, byRow };
}
