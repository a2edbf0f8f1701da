// The processes of a job: their names, and their places in the strip that shows all of them.
import { formatBlocks, formatBytes, formatCount, formatTime } from "./format";
import type { DeviceHeader, Header, Rank } from "./header";
import type { Cell, TableData } from "./rows";

export function rankState({ ooms, retries }: Rank): "OOM" | "retries" | "" {
    return (ooms ?? 0) > 0 ? "OOM" : (retries ?? 0) > 0 ? "retries" : "";
}

/** The process where there is little room: its rank, its number or, without both, its file. */
export function shortName({ rank, pid, file }: Rank): string {
    if (rank !== null) return `rank ${rank}`;
    return pid === 0 ? file.slice(file.lastIndexOf("/") + 1) : `pid ${pid}`;
}

/** "rank 3 · pid 4711 · GPU 0 · OOM" */
export function rankLabel(row: Rank): string {
    const parts = [
        row.rank === null ? row.helper || "no rank" : `rank ${row.rank}`,
        row.generation === null ? "" : `generation ${row.generation}`,
        row.pid === 0 ? row.file : `pid ${row.pid}`,
        row.gpu === null ? "no GPU memory" : `GPU ${row.gpu}`,
        rankState(row),
    ];
    return parts.filter((part) => part).join(" · ");
}

/** Names what runs on a device: the program and the process. */
export function processTitle({ processes }: Header, { process }: DeviceHeader): string {
    return [processes[process].title, processes[process].process]
        .filter((part) => part)
        .join(" · ");
}

/**
 * Says how many processes are in the file in full, how many only as one line, and how many are
 * unreadable.
 */
export function ranksText({ ranks, processes, unreadable, job }: Header): string {
    // a process has one row per device
    const counted = (rows: Rank[]): number => new Set(rows.map(({ command }) => command)).size;
    const all = counted(ranks);
    const lines = all - processes.length;
    const oom = counted(ranks.filter((row) => rankState(row) === "OOM"));
    const incomplete = job.some(({ label }) => ["missing", "partial", "damaged"].includes(label));
    const unknown = incomplete || unreadable.length > 0 || ranks.some(({ ooms }) => ooms === null);
    const none = unknown ? "no out-of-memory is known" : "none ran out of memory";
    return [
        lines > 0
            ? `${formatCount(processes.length)} of ${formatCount(all)} complete in this file (underlined), ${formatCount(lines)} as one line each`
            : `all ${all} complete in this file`,
        oom > 0 ? `${formatCount(oom)} ran out of memory` : none,
        unreadable.length > 0 ? `${formatCount(unreadable.length)} unreadable` : "",
    ]
        .filter((part) => part)
        .join("; ");
}

export interface Slots {
    width: number; // width of one row in pixels
    first: number; // where the first row begins
}

const widest = 150;

export function slotsOf(count: number, width: number): Slots {
    return { width: Math.min(widest, width / Math.max(1, count)), first: 0 };
}

/** The peak that a bar shows: reserved memory or, if that is unknown, allocated memory. */
export function shownPeak({ peak_reserved, peak_allocated }: Rank): number {
    return peak_reserved ?? peak_allocated;
}

/**
 * The row to show where rows from..to-1 share a column of pixels: OOM first, then retries, then the
 * highest peak.
 */
export function worstOf(ranks: Rank[], from: number, to: number): number {
    const severity = (row: Rank): [number, number] => [
        ["", "retries", "OOM"].indexOf(rankState(row)),
        shownPeak(row),
    ];
    let worst = from;
    for (let i = from + 1; i < to; ++i) {
        const [a, b] = [severity(ranks[i]), severity(ranks[worst])];
        if (a[0] > b[0] || (a[0] === b[0] && a[1] > b[1])) worst = i;
    }
    return worst;
}

/** The row at `x`; -1 = none. */
export function rankAt(ranks: Rank[], width: number, x: number): number {
    const slots = slotsOf(ranks.length, width);
    const from = Math.floor((x - slots.first) / slots.width);
    if (x < slots.first || from >= ranks.length) return -1;
    return worstOf(
        ranks,
        from,
        Math.min(ranks.length, Math.max(from + 1, Math.floor((x + 1 - slots.first) / slots.width))),
    );
}

/** The rows at which another generation begins, without the first one. */
export function generationStarts(ranks: Rank[]): number[] {
    return ranks.flatMap(({ generation }, at) =>
        at > 0 && generation !== ranks[at - 1].generation ? [at] : [],
    );
}

/**
 * How full the row's device was at its peak, 0 to 1. Without a known capacity, relative to `most`,
 * the highest peak of all rows.
 */
export function fillOf(row: Rank, most: number): number {
    return Math.min(1, shownPeak(row) / Math.max(1, row.capacity ?? most));
}

/** All processes, and the files that could not be read, as tables. */
export function rankTables({ ranks, devices, unreadable }: Header): TableData[] {
    const bytes = (name: string): TableData["columns"][0] => ({ name, show: formatBytes });
    const time = (name: string): TableData["columns"][0] => ({ name, show: formatTime });
    const rows = ranks.map((row): Cell[] => [
        row.rank,
        row.pid || null,
        row.gpu,
        row.peak_allocated,
        row.peak_reserved,
        row.capacity,
        row.retries,
        row.ooms,
        row.first_oom_ns,
        row.start_after_ns,
        row.ended,
        row.device !== null
            ? `complete, ${formatBlocks(devices[row.device].blocks)}`
            : row.trace
              ? "one line"
              : "one line, of a summary",
        row.host,
        row.generation,
        row.helper,
        row.program,
        row.file,
        row.command,
    ]);
    const tables: TableData[] = [
        {
            title: "Processes",
            ofAll: true,
            columns: [
                { name: "rank" },
                { name: "pid" },
                { name: "GPU" },
                bytes("peak allocated"),
                bytes("peak reserved"),
                bytes("capacity"),
                { name: "retries" },
                { name: "OOMs" },
                time("first OOM, own time axis"),
                time("start after the first process"),
                { name: "ended" },
                { name: "in this file" },
                { name: "host" },
                { name: "generation" },
                { name: "helper" },
                { name: "program", names: true },
                { name: "file" },
                { name: "command for its page" },
            ],
            rows,
        },
    ];
    if (unreadable.length > 0) {
        tables.push({
            title: "Traces that could not be read",
            ofAll: true,
            columns: [{ name: "file" }, { name: "reason" }],
            rows: unreadable.map(({ file, reason }) => [file, reason]),
        });
    }
    return tables;
}
