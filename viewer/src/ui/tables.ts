// Every picture as a table, for readers who do not see the picture.
import { formatBlocks, formatBytes, formatCount, formatMoment, formatTime } from "../data/format";
import { atMoment, type DeviceHeader, isState, leftOutText, segmentsKnown } from "../data/header";
import { holesOf } from "../data/heap";
import { isWanted } from "../data/hits";
import { never, othersAt } from "../data/model";
import { bytesAt } from "../data/overtime";
import type { Cell, TableColumn, TableData } from "../data/rows";
import { sizeClasses } from "../data/sizes";
import type { Stacks } from "../data/stacks";
import { windowRows } from "../data/windowrows";
import { addressText } from "../draw/map";
import { showTables } from "./datatable";
import { byId, showDialog } from "./dom";
import { type PageView, windowMoments } from "./view";
import { measureName } from "./stackspanel";

const bytes = (name: string): TableColumn => ({
    name,
    show: (value) => formatBytes(Math.round(value)),
});
// for things that do not overlap
const sizes = (name: string): TableColumn => ({ ...bytes(name), adds: true });
const count = (name: string): TableColumn => ({ name, show: formatCount });
const text = (name: string): TableColumn => ({ name });
const names = (name: string): TableColumn => ({ name, names: true });
const duration = (name: string): TableColumn => ({ name, show: formatTime });
// with digits for a millionth of the run
const moment = (name: string, { end_ns }: DeviceHeader): TableColumn => ({
    name,
    show: (ns) => formatMoment(ns, end_ns / 1e6),
});

const mostCallers = 6;

const lines = new WeakMap<Stacks, Map<number, string>>();

// Caches the names: tables name the lines of many blocks that share a few stacks.
function line(page: PageView, stack: number): string {
    const { stacks } = page;
    let known = lines.get(stacks);
    if (!known) lines.set(stacks, (known = new Map<number, string>()));
    let label = known.get(stack);
    if (label === undefined) known.set(stack, (label = stacks.label(stacks.telling(stack))));
    return label;
}

export function memoryTables(page: PageView): TableData[] {
    const { heap, model } = page;
    const { capacity, total, limit, markers, tick_ns, phase_lanes, phase_names } = model.head;
    const parts: Cell[][] = segmentsKnown(model.head)
        ? [
              ["requested", heap.requested],
              ["rounding and slack", heap.allocated - heap.requested],
              ["pending: waiting for streams", heap.pending],
              ["holes", heap.held],
              ["cached, can be returned to the driver", heap.releasable],
              ["reserved (sum)", heap.reserved],
          ]
        : [["allocated (reserved memory is unknown)", heap.allocated]];
    const others = othersAt(model, page.view.cursor);
    const inParts = model.others.partNs > 0;
    if (others > 0) {
        parts.push([
            `outside the pool, others as last reported${inParts ? ", at most" : ""}`,
            others,
        ]);
    }
    if (total !== null && segmentsKnown(model.head)) {
        parts.push(
            [
                `free on the card${inParts ? ", at least" : ""}`,
                Math.max(0, total - others - heap.reserved),
            ],
            ["card", total],
        );
    } else if (capacity !== null) {
        parts.push(["capacity", capacity]);
    }
    if (limit !== null) parts.push(["limit of the process", limit]);
    const exactly = parts.map(([name, value]) => [
        name,
        value,
        `${formatCount(value as number)} B`,
    ]);
    const tables: TableData[] = [
        {
            title: `Memory ${atMoment(model.head, page.view.cursor, windowMoments(page))}${leftOutText(model.head)}`,
            columns: [text("part"), bytes("bytes"), text("exactly")],
            rows: exactly,
        },
        {
            title: "Events",
            columns: [moment("time", model.head), text("kind"), text("description")],
            rows: markers.map((marker) => [marker.time_ns, marker.kind, marker.text]),
        },
    ];
    if (model.tracks.length > 0) {
        tables.push({
            title: `Memory of the process that belongs to no card, at ${windowMoments(page)(page.view.cursor * tick_ns)}`,
            columns: [
                text("kind"),
                bytes("bytes"),
                text("exactly"),
                bytes("peak"),
                moment("time of the peak", model.head),
            ],
            rows: model.tracks.map((track): Cell[] => {
                const now = bytesAt(track, page.view.cursor);
                const { tick, bytes: most } = track.peak;
                return [
                    track.partNs > 0
                        ? `${track.what}, at most (the most within ${formatTime(track.partNs)})`
                        : track.what,
                    now,
                    `${formatCount(now)} B`,
                    most,
                    tick * tick_ns,
                ];
            }),
        });
    }
    const { phases, lastTick } = model;
    if (phases.count > 0) {
        const rows = Array.from(phases.start, (start, i): Cell[] => [
            start * tick_ns,
            (Math.min(phases.end[i], lastTick) - start) * tick_ns,
            phase_lanes[phases.lane[i]],
            phase_names[phases.name[i]],
            phases.ranges[i],
        ]);
        tables.push({
            title: "Steps and phases",
            columns: [
                moment("begin", model.head),
                duration("length"),
                text("lane"),
                text("name"),
                { ...count("ranges"), adds: true },
            ],
            rows,
        });
    }
    return tables;
}

const mostRows = 20_000;

function sizeTable(page: PageView, rows: Uint32Array, title: string): TableData {
    const all = rows.reduce((sum, row) => sum + page.model.blocks.size[row], 0);
    return {
        title,
        columns: [
            bytes("from"),
            bytes("below"),
            { ...count("blocks"), adds: true, bar: true },
            sizes("bytes"),
            {
                name: "share of bytes",
                show: (share) => `${(100 * share).toFixed(1)} %`,
                bar: true,
            },
        ],
        rows: sizeClasses(page.model, rows).map((row) => [
            row.from,
            row.to,
            row.blocks,
            row.bytes,
            all > 0 ? row.bytes / all : 0,
        ]),
    };
}

/**
 * The blocks at the cursor, as in the column right of the map, their sizes, and the blocks of the
 * window. During a search only its matches.
 */
export function blockTables(page: PageView): TableData[] {
    const { heap, model, view, found } = page;
    const wanted =
        found?.problem === null
            ? { stacks: found.matches, blocks: found.blocks, also: null }
            : null;
    const matching = wanted ? ` that match "${view.query}"` : "";
    const live = wanted
        ? heap.live.filter((row) => isWanted(wanted, model.blocks.stack[row], row))
        : heap.live;
    const { blocks, head } = model;
    const nsOf = (tick: number): number => tick * head.tick_ns;
    const columns = [
        sizes("size"),
        text("address"),
        moment("allocated", head),
        moment("freed", head),
        moment("reusable", head),
        text("state"),
        text("stream"),
        names("line"),
    ];
    const table = (
        title: string,
        rows: Uint32Array,
        state: (row: number) => string,
    ): TableData => ({
        title,
        columns,
        rows: Array.from(rows, (row): Cell[] => [
            blocks.size[row],
            addressText(model, blocks.offset[row]),
            isState(head) ? null : nsOf(blocks.start[row]),
            blocks.freed[row] === never ? null : nsOf(blocks.freed[row]),
            blocks.end[row] === never ? null : nsOf(blocks.end[row]),
            state(row),
            head.streams[blocks.stream[row]] ?? String(blocks.stream[row]),
            line(page, blocks.stack[row]),
        ]),
    });
    const { rows, all, left } = windowRows(model, view, mostRows, wanted);
    const without =
        left.blocks > 0
            ? `, without ${formatBlocks(left.blocks)} (${formatBytes(left.bytes)}) with least bytes × time`
            : "";
    return [
        table(
            `Blocks ${atMoment(head, view.cursor, windowMoments(page))}${matching}`,
            live,
            (row) =>
                blocks.freed[row] <= heap.tick
                    ? "pending"
                    : page.pins.has(row)
                      ? "blocks free memory"
                      : "in use",
        ),
        sizeTable(
            page,
            live,
            `Sizes of the blocks ${atMoment(head, view.cursor, windowMoments(page))}${matching}`,
        ),
        table(
            `Blocks in the window${matching}: ${formatCount(all.blocks)}, ${formatBytes(all.bytes)} allocated${without}`,
            rows,
            (row) => (page.pins.has(row) ? "blocks free memory" : ""),
        ),
    ];
}

export function holeTables(page: PageView): TableData[] {
    const { heap, model } = page;
    const holes: Cell[][] = [];
    const segments: Cell[][] = [];
    for (const state of heap.units) {
        const first =
            state.blocks.length > 0 ? line(page, model.blocks.stack[state.blocks[0]]) : "none";
        const size = model.units.size[state.unit];
        segments.push([
            size,
            state.free,
            addressText(model, model.units.offset[state.unit]),
            state.blocks.length,
            state.kept ? "not releasable" : "releasable",
        ]);
        for (const [offset, free] of holesOf(model, state)) {
            holes.push([
                free,
                addressText(model, offset),
                size,
                state.blocks.length,
                state.kept ? "not releasable" : "releasable",
                first,
            ]);
        }
    }
    holes.sort((a, b) => (b[0] as number) - (a[0] as number));
    segments.sort((a, b) => (b[1] as number) - (a[1] as number));
    return [
        {
            title: "Holes at the cursor",
            columns: [
                sizes("size"),
                text("address"),
                bytes("segment"),
                count("blocks in the segment"),
                text("state"),
                names("first of these blocks"),
            ],
            rows: holes,
        },
        {
            title: "Segments at the cursor",
            columns: [
                sizes("size"),
                bytes("free"),
                text("address"),
                count("blocks"),
                text("state"),
            ],
            rows: segments,
        },
    ];
}

export function stackTables(page: PageView): TableData[] {
    const { stacks, view } = page;
    const { sums, shrunk } = page.sums;
    const blocks = page.sums.blocks();
    const what = measureName(view);
    const columns = [
        sizes(what),
        count("blocks"),
        names("line"),
        text("innermost frame"),
        text("callers"),
    ];
    const rows = (of: Map<number, number>): Cell[][] =>
        [...of]
            .sort((a, b) => b[1] - a[1])
            .map(([stack, value]) => [
                Math.round(value),
                blocks.get(stack) ?? null,
                line(page, stack),
                stacks.label(stack),
                stacks.callers(stack, mostCallers),
            ]);
    const tables = [{ title: `Stacks by ${what}`, columns, rows: rows(sums) }];
    if (shrunk.size > 0) {
        tables.push({ title: "Stacks that shrank since the mark", columns, rows: rows(shrunk) });
    }
    return tables;
}

function whatIfTables(page: PageView): TableData[] {
    return [
        {
            title: "What if",
            columns: [
                names("replayed with"),
                count("OOMs"),
                bytes("peak reserved"),
                bytes("in holes"),
                bytes("cached"),
                count("cudaMallocs or maps"),
                count("retries"),
                text("class"),
                text("cost"),
                text("note"),
            ],
            rows: page.model.head.whatif.map((row) => [
                row.name,
                row.ooms,
                row.peak_reserved,
                row.held_open,
                row.releasable,
                row.segments,
                row.retries,
                row.usable ? row.class : `${row.class}, not usable`,
                row.cost,
                row.note,
            ]),
        },
    ];
}

function culpritTables(page: PageView): TableData[] {
    const card = page.model.head.cards[page.view.card];
    return [
        {
            title: "Which allocations block free memory",
            columns: [
                bytes("blocked memory"),
                bytes("live bytes"),
                count("blocks"),
                names("allocated at"),
                text("age of oldest"),
                text("phase"),
            ],
            rows: (card?.culprits ?? []).map((row) => [
                row.held_open,
                row.live,
                row.count,
                row.label,
                row.age,
                row.phase,
            ]),
        },
        {
            title: ["Live memory by line", card?.holders_when].filter(Boolean).join(" "),
            columns: [
                bytes("live bytes"),
                count("blocks"),
                names("allocated at"),
                text("kind (estimate)"),
            ],
            rows: (card?.holders ?? []).map((row) => [
                row.live,
                row.count,
                row.label,
                row.category || "other",
            ]),
        },
    ];
}

export function connectTables(page: PageView): void {
    const makers: [id: string, name: string, make: (page: PageView) => TableData[]][] = [
        ["chart-table", "table of memory, events and phases", memoryTables],
        ["map-table", "table of the blocks at the cursor and in the window", blockTables],
        [
            "segments-sizes",
            "how many blocks at the cursor have which size",
            (page) => [blockTables(page)[1]],
        ],
        ["segments-table", "table of holes and segments", holeTables],
        ["stacks-table", "table of stacks", stackTables],
        ["whatif-table", "table of what-if rows", whatIfTables],
        [
            "culprits-table",
            "table of the lines that block free memory, and of live memory by line",
            culpritTables,
        ],
    ];
    for (const [id, name, make] of makers) {
        byId(id).setAttribute("aria-label", name);
        byId(id).addEventListener("click", () => {
            if (page.model.complete) showTables(page, ...make(page));
            else showDialog("The page is still reading the blocks. Try again in a moment.");
        });
    }
}
