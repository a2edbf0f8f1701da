// What the report says about a job: its rows under their headings.
import type { Header, JobRow, NamedPart } from "./header";

const mostUnreadable = 8;

/** A heading with the rows that follow it. */
export interface JobBlock {
    heading: JobRow | null; // null: rows without a heading
    rows: { label: string; kind: JobRow["kind"]; lines: NamedPart[][] }[];
}

export function jobBlocks({ job }: Header): JobBlock[] {
    const blocks: JobBlock[] = [];
    const unreadable = job.filter(({ kind }) => kind === "unreadable");
    const left = new Set(unreadable.slice(mostUnreadable));
    for (const row of job) {
        if (row.kind === "failure" || row.kind === "heading") {
            blocks.push({ heading: row, rows: [] });
            continue;
        }
        if (left.has(row)) continue;
        if (blocks.length === 0) blocks.push({ heading: null, rows: [] });
        const { rows } = blocks[blocks.length - 1];
        const last = rows.at(-1);
        if (last && (row.label === "" || row.label === last.label)) last.lines.push(row.parts);
        else rows.push({ label: row.label, kind: row.kind, lines: [row.parts] });
    }
    if (left.size > 0) {
        const text = `${left.size} more traces could not be read: the table of processes names them`;
        blocks
            .at(-1)!
            .rows.at(-1)!
            .lines.push([{ text, ranks: [] }]);
    }
    return blocks;
}

/** All sentences, to look for words that need an explanation. */
export function jobText({ job }: Header): string {
    return job.map(({ parts }) => parts.map(({ text }) => text).join("")).join("\n");
}
