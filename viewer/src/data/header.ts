// The small part of the page, which analyzer/report/page/page_header.cpp writes. Times are in
// nanoseconds, sizes in bytes; null is unknown.

export type ColumnDescription = [name: string, width: number, difference: 0 | 1];

export interface PackDescription {
    id: string;
    rows: number;
    bytes: number;
    columns: ColumnDescription[];
}

export type MarkerKind = "oom" | "retry" | "burst" | "empty_cache" | "other";

export interface Marker {
    time_ns: number;
    kind: MarkerKind;
    text: string;
}

export interface Culprit {
    stack: number;
    label: string;
    held_open: number;
    live: number;
    count: number;
    age: string;
    phase: string;
    blocks: number[];
}

/** A line with live memory at the moment of a card, whether it blocks free memory or not. */
export interface Holder {
    stack: number;
    label: string;
    category: string;
    live: number;
    count: number;
}

/** One size of a card; all are on one scale, parts of a whole begin where the one before ends. */
export interface Bar {
    label: string;
    kind: string;
    bytes: number;
    from: number;
}

export interface Card {
    kind: "oom" | "retry" | "near_miss" | "no_oom" | "state";
    time_ns: number;
    heading: string;
    sentence: string;
    who: string;
    change: string;
    verdict: string;
    requested: number | null;
    bars: Bar[];
    details: string[];
    assumptions: string[];
    stack: number;
    asked_by: string;
    holders_when: string;
    holders_more: string;
    culprits: Culprit[];
    holders: Holder[];
}

export interface WhatIf {
    name: string;
    class: string;
    ooms: number;
    peak_reserved: number;
    held_open: number | null;
    releasable: number | null;
    segments: number;
    retries: number;
    usable: boolean;
    note: string;
    as_run: boolean;
    // an out-of-memory of the record does not happen: what comes after it is not known
    gets_past: boolean;
    curve: boolean;
}

export interface Total {
    label: string;
    value: number;
    bytes: boolean;
}

export interface DeviceHeader {
    process: number; // index into Header.processes
    name: string;
    index: number;
    virtual: boolean;
    capacity: number | null; // what the pool can have
    total: number | null; // of the card
    limit: number | null; // that the process set itself
    tick_ns: number;
    end_ns: number;
    blocks: number;
    blocks_left_out: number;
    bytes_left_out: number; // allocated over the run
    longest_left_out_ns: number;
    first_start_ns: number | null; // of all blocks
    last_start_ns: number | null;
    map: [columns: number, rows: number];
    streams: string[];
    pools: { name: string; changes_ns: number[] }[]; // the first is the default one
    axis: [address: string, size: number, offset: number][];
    axis_bytes: number;
    markers: Marker[];
    phase_lanes: string[];
    phase_names: string[];
    phases_left_out: number;
    cards: Card[];
    whatif: WhatIf[];
    totals: Total[];
    packs: PackDescription[];
}

/** A traced process, with a clock of its own. */
export interface Process {
    title: string;
    process: string;
    command: string;
    notes: string[];
}

/** One device of one process of a job as one line, also if the file has the process completely. */
export interface Rank {
    rank: number | null;
    pid: number; // 0 = not known
    gpu: number | null; // null = the process used none
    capacity: number | null;
    peak_allocated: number;
    peak_reserved: number;
    retries: number;
    ooms: number;
    first_oom_ns: number | null; // on the process's own clock
    start_after_ns: number | null; // from the start of the job's first process
    ended: string;
    program: string;
    file: string;
    command: string; // makes a page of this process alone
    device: number | null; // index into Header.devices; null = only this line
}

/** Names, frames and the call tree; the parts of the header that stacks are made of. */
export interface StackTables {
    strings: string[];
    // Numbers of strings, but for line and python. `label` is how the report names the frame,
    // `library` whose code it is ("" = the program's own).
    frames: {
        function: number[];
        file: number[];
        line: number[];
        python: number[];
        label: number[];
        library: number[];
    };
    // `telling`: so many callers up is the frame that the report names the stack by.
    stacks: { parent: number[]; frame: number[]; telling: number[] };
}

export interface Header extends StackTables {
    format: string;
    version: number;
    title: string;
    processes: Process[];
    ranks: Rank[]; // by rank; empty where the page is of one process alone
    unreadable: { file: string; reason: string }[];
    class_words: { word: string; meaning: string }[]; // how certain a figure is
    devices: DeviceHeader[];
}

export const formatVersion = 8;

/** Throws with a plain sentence when the text is not a whole header of this version. */
export function parseHeader(text: string): Header {
    let header: Header;
    try {
        header = JSON.parse(text) as Header;
    } catch {
        throw new Error("the file is cut off or damaged: its header cannot be read");
    }
    if (header.format !== "fragtrace-page" || header.version !== formatVersion) {
        throw new Error(
            `the data has format ${header.format} ${header.version}, not fragtrace-page ${formatVersion}`,
        );
    }
    return header;
}
