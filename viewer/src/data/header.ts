// The page's header, written by analyzer/report/page/page_header.cpp. Times are in nanoseconds,
// sizes in bytes, and null means unknown.

import { formatBlocks, formatCounted, formatTime } from "./format";

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
    outlived: string; // ", still alive 3 steps later"; "" = not known to be
    blocks: number[];
}

/** A source line with live memory at the time of a card, whether it blocks free memory or not. */
export interface Holder {
    stack: number;
    label: string;
    category: string;
    live: number;
    count: number;
    change: number | null; // bytes since Card.since; null = unknown
}

/** A line of the report with its label. Without a label, the line above goes on. */
export interface ReportLine {
    label: string;
    text: string;
}

/** A part of the memory in use, or of the memory outside the pool. */
export interface Part {
    name: string;
    bytes: number;
    note: string;
}

/** The question that the first screen answers. The analysis chooses it by the verdict. */
export type Screen =
    "blocked" | "shortage" | "growth" | "others" | "retry" | "near_miss" | "peak" | "state";

/**
 * One bar of a card. All bars share one scale. A part of a whole starts where the part before it
 * ends.
 */
export interface Bar {
    label: string;
    kind: string;
    bytes: number;
    from: number;
}

export interface Card {
    kind: "oom" | "retry" | "near_miss" | "no_oom" | "state";
    screen: Screen;
    question: string;
    time_ns: number;
    heading: string;
    sentence: string;
    who: string;
    change: string;
    change_row: string; // the WhatIf.name of this change; "" = it has no row
    tried: ReportLine[]; // outcomes of `fragtrace try`
    forecast_error: string; // "" = the remedy has no forecast
    reported: boolean; // the report is about this failure
    verdict: string;
    requested: number | null;
    bars: Bar[];
    details: string[];
    assumptions: string[];
    stack: number;
    asked_by: string;
    holders_when: string;
    holders_more: string;
    since: string; // "step 4", with which `holders` are compared; "" = nothing to compare with
    in_use: number | null; // bytes of all lines, those not listed included
    categories: Part[]; // of `holders`; empty = unknown
    categories_basis: string;
    outside: Part[]; // memory of the card outside the pool
    lines: ReportLine[]; // what else the report says about this moment
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
    difference: string; // of reserved memory to the recorded settings: "same", "-60 MiB"
    differs: string; // from which event on its requests are others; "" = none are
    usable: boolean;
    note: string;
    as_run: boolean;
    bound: boolean; // a limit of reserved memory for any allocator
    // Whether the run gets past an out-of-memory that the recording has. What follows it is not
    // known.
    gets_past: boolean;
    rest_fails: boolean; // gets_past, but the rest of the step is forecast to fail
    curve: boolean;
    cost: string; // "" = unknown
    set: string; // the setting as an assignment for a shell; "" = no setting
    run: string; // command that runs the program again with the change; "" = it cannot
}

/** Popular advice. `settings` is false if it reduces the program's own memory. */
export interface Advice {
    name: string;
    effect: string;
    settings: boolean;
}

/** A line whose live memory grows from step to step. */
export interface GrowingLine {
    stack: number;
    label: string;
    category: string;
    per_step: number;
    grown: number;
    live: number;
}

/** Free blocks of a snapshot that serve the same requests. */
export interface Holes {
    bytes: number;
    count: number;
    serves: string;
}

/** The phases of one name, summed up; null = unknown. */
export interface PhaseTotals {
    name: string;
    count: number;
    time_ns: number;
    peak_allocated: number;
    peak_reserved: number | null;
    change: number;
    mallocs: number | null;
    retries: number | null;
}

export interface Total {
    label: string;
    value: number | null; // null = unknown
    bytes: boolean;
}

/**
 * Memory beside the pool. If the length of its parts is not 0, it has one value for each part of
 * the time: the most within it.
 */
export type Side = "others" | "pinned" | "managed";

export interface DeviceHeader {
    process: number; // index into Header.processes
    name: string;
    index: number;
    virtual: boolean;
    capacity: number | null; // memory available to the pool
    total: number | null; // memory of the card
    limit: number | null; // limit that the process set itself
    tick_ns: number;
    end_ns: number;
    blocks: number;
    blocks_left_out: number;
    bytes_left_out: number; // bytes allocated by them over the run
    segments_left_out: number; // or pages of expandable ones
    notes: string[]; // what the file leaves out of the device
    part_ns: Record<Side, number>;
    first_start_ns: number | null; // over all blocks
    last_start_ns: number | null;
    map: [columns: number, rows: number];
    streams: string[];
    categories: string[]; // kinds of memory, and the user's categories
    stack_categories: { stack: number[]; category: number[] };
    pools: { name: string; changes_ns: number[] }[]; // the first one is the default pool
    axis: [address: string, size: number, offset: number][];
    axis_bytes: number;
    markers: Marker[];
    phase_lanes: string[];
    phase_names: string[];
    phases_merged: number; // those without a range of their own
    cards: Card[];
    whatif: WhatIf[];
    no_whatif: string; // why nothing was replayed
    whatif_remarks: string[]; // about all rows
    whatif_classes: ReportLine[]; // the meanings of the rows' classes
    totals: Total[];
    advice: Advice[];
    advice_heading: string;
    growth: { when: string; rows: GrowingLine[]; lines: ReportLine[] };
    near_miss: ReportLine[];
    holes: { heading: string; rows: Holes[]; more: string };
    lines: ReportLine[]; // what the report says about the device and the run
    packs: PackDescription[];
}

/** Whether the segments were recorded. If not, each block has a stand-in segment of its size. */
export function segmentsKnown({ totals }: DeviceHeader): boolean {
    return totals.every(({ label, value }) => label !== "waste" || value !== null);
}

/** Whether all requested sizes are known. If not, the sizes of blocks stand for them. */
export function requestedKnown({ totals }: DeviceHeader): boolean {
    return totals.every(({ label, value }) => label !== "peak requested" || value !== null);
}

/** Whether the device has only the state at one moment. It has no times. */
export function isState({ cards }: DeviceHeader): boolean {
    return cards.some(({ kind }) => kind === "state");
}

/** A moment after the name of what it belongs to. */
export function atMoment(
    head: DeviceHeader,
    tick: number,
    show: (ns: number) => string = formatTime,
): string {
    return isState(head) ? "in this state" : `at ${show(tick * head.tick_ns)}`;
}

/** After figures at a moment: what the file leaves out of them. */
export function leftOutText({ blocks_left_out, segments_left_out }: DeviceHeader): string {
    const parts = [
        ...(blocks_left_out > 0 ? [formatBlocks(blocks_left_out)] : []),
        ...(segments_left_out > 0 ? [formatCounted(segments_left_out, "segment", "segments")] : []),
    ];
    return parts.length > 0
        ? `, without those that the file leaves out (${parts.join(", ")} over the run)`
        : "";
}

/** Failed requests; null = unknown. */
export function failedRequests({ totals }: DeviceHeader): number | null {
    const found = totals.find(({ label }) => label === "ooms");
    return found ? found.value : 0;
}

/** The advice that reduces the memory of the program itself, and the error of its figures. */
export function savings({ advice }: DeviceHeader): ReportLine[] {
    const lines = advice
        .filter(({ settings }) => !settings)
        .map(({ name, effect }) => ({ label: name, text: effect }));
    return lines.some(({ text }) => /\d [KMGT]?i?B/.test(text))
        ? [
              ...lines,
              {
                  label: "error of these figures",
                  text: "unknown: no run with such a change was measured",
              },
          ]
        : lines;
}

/** The card with which a device opens: the first failure, otherwise that of the run; -1 = none. */
export function openingCard({ cards }: DeviceHeader): number {
    const reported = cards.findIndex((card) => card.reported);
    if (reported >= 0) return reported;
    const failure = cards.findIndex(({ kind }) => kind !== "retry");
    return Math.min(cards.length - 1, Math.max(0, failure));
}

/** Whether the question of the card is about blocks that prevent free memory from being reused. */
export function asksForBlockers(card: Card | undefined): boolean {
    return (
        card !== undefined &&
        card.culprits.length > 0 &&
        (card.screen === "blocked" || card.screen === "retry")
    );
}

/** A traced process. Each has its own clock. */
export interface Process {
    title: string;
    process: string;
    command: string;
    notes: string[];
    program_pools: string; // the report's lines about pools of the program; empty = none
    lines: ReportLine[];
    phases: { rows: PhaseTotals[]; more: string };
}

/**
 * One line per device of each process of a job, including processes that are in the file in full.
 */
export interface Rank {
    rank: number | null;
    pid: number; // 0 = not known
    gpu: number | null; // null = the process used no GPU
    host: string; // empty = not known
    generation: number | null; // null = the job has only one
    helper: string; // "helper of rank 3"; empty = it is none
    trace: boolean; // false: only a summary of the process is known
    capacity: number | null;
    peak_allocated: number;
    peak_reserved: number | null; // null = unknown
    retries: number | null; // null = unknown
    ooms: number | null; // null = unknown
    first_oom_ns: number | null; // on the process's own clock
    first_failure: number | null; // number of its generation's first failure; null = it is none
    start_after_ns: number | null; // after the start of the job's first process
    ended: string;
    program: string;
    file: string;
    command: string; // command that makes a page of this process alone
    device: number | null; // index into Header.devices; null = only this line is in the file
    // base64, one byte for each column of Header.heat (heat.ts); null = not known
    reserved_heat: string | null;
    allocated_heat: string | null;
}

/** A part of a sentence about the job. */
export interface NamedPart {
    text: string;
    ranks: number[]; // the processes that it names: indices into Header.ranks
}

/**
 * A row of what the report says about the job. "failure" and "heading" have no label. "report": the
 * sentence is that of one process's report. Without a label, the row above goes on.
 */
export interface JobRow {
    kind: "failure" | "heading" | "report" | "row" | "unreadable";
    label: string;
    parts: NamedPart[];
}

/** The common time axis and scale of the rows of a job. */
export interface Heat {
    columns: number; // 0 = no row has values
    column_ns: number;
    full_bytes: number;
}

/** Values of both runs: A, then B. */
export type Pair<T> = [a: T, b: T];

export type TimeSpanNs = [from: number, to: number];

/** A line of the program whose memory at the peak differs; null = not known. */
export interface ComparedLine {
    label: string;
    label_a: string; // differs from `label` if the line moved within the file
    a: number | null;
    b: number | null;
    stacks: { frames: string[]; a: number; b: number }[]; // that changed most, innermost first
}

export interface ComparedDevice {
    gpu: number;
    devices: Pair<number | null>; // indices into Header.devices; null = the run does not have it
    peaks_ns: Pair<number | null>; // when reserved memory first reached its maximum
    state: boolean; // a run is the state at one moment: there is no time to compare
    headline: string;
    note: string;
    figures: { name: string; part: boolean; a: string; b: string; difference: string }[];
    lines: ComparedLine[];
}

/** A sentence about a place in both runs; null: the run has no such place. */
export interface ComparedPlace {
    text: string;
    gpu: number | null; // null = of the whole run
    times_ns: Pair<TimeSpanNs | null>;
}

/** Phases of one name that differ; the times are those of the first that differs. */
export interface ComparedPhase {
    name: string;
    only_in: "" | "A" | "B"; // if not empty, the values are
    values: [count: string, allocated: string, reserved: string, change: string];
    times_ns: Pair<TimeSpanNs | null>;
}

/** Two runs side by side. Sentences and values are those of `fraganalyze compare`. */
export interface TwoRuns {
    runs: Pair<string>;
    processes: Pair<number>; // indices into Header.processes
    devices: ComparedDevice[];
    places: ComparedPlace[]; // where the runs differ first
    phases: ComparedPhase[];
    phases_equal: boolean; // both runs have phases, and none differs
    settings: { key: string; a: string; b: string }[];
}

/** Names, frames and the call tree: the parts of the header that stacks consist of. */
export interface StackTables {
    strings: string[];
    // Each value is an index into `strings`, except in `line` and `python`. `label` is the frame's
    // name in reports. `library` is the library with its code ("" = the program's own code).
    frames: {
        function: number[];
        file: number[];
        line: number[];
        python: number[];
        label: number[];
        library: number[];
    };
    // `telling`: number of callers between the stack's innermost frame and the frame that names it
    // in reports.
    stacks: { parent: number[]; frame: number[]; telling: number[] };
}

export interface Header extends StackTables {
    format: string;
    version: number;
    title: string;
    processes: Process[];
    ranks: Rank[]; // sorted by rank; empty on a page of a single process
    job: JobRow[]; // empty on a page of a single process
    heat: Heat;
    unreadable: { file: string; reason: string }[];
    comparison: TwoRuns | null; // null: the page does not compare two runs
    class_words: { word: string; meaning: string }[]; // how certain a figure is
    // Consecutive lines of source files; `file` is an index into `strings`.
    sources: { file: number; first_line: number; lines: string[]; changed: boolean }[];
    devices: DeviceHeader[];
}

export const formatVersion = 16;

/** Throws one plain sentence if the text is not a complete header of this version. */
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
