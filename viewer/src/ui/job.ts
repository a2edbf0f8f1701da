// The first screen of a job: what the report says about all processes. A click on a process that a
// sentence names shows it.
import { formatCount } from "../data/format";
import type { NamedPart, Rank } from "../data/header";
import { jobBlocks, jobText } from "../data/jobrows";
import { rankLabel, rankTables } from "../data/ranks";
import { saidWords } from "./cards";
import { dataTable } from "./datatable";
import { byId, el, showDialog, withCode } from "./dom";
import { saveButton } from "./image";
import { openRank } from "./ranks";
import type { PageView } from "./view";

const mostButtons = 32;
const mostLines = 6; // of one label; further ones are folded

export function showJob(page: PageView): void {
    const { header } = page;
    const panel = byId("job");
    panel.hidden = header.job.length === 0;
    byId("main").classList.toggle(
        "of-several",
        header.job.length > 0 || header.comparison !== null,
    );
    if (header.job.length === 0) return;
    const shown = (parts: NamedPart[]): (Node | string)[] => sentence(page, parts);
    jobBlocks(header).forEach(({ heading, rows }, at) => {
        if (heading) {
            panel.append(
                el(
                    "h2",
                    { ...(at === 0 ? { id: "job-title" } : {}), "data-kind": heading.kind },
                    ...shown(heading.parts),
                ),
            );
        }
        if (rows.length === 0) return;
        panel.append(
            el(
                "dl",
                { class: "answers" },
                ...rows.flatMap(({ label, kind, lines }) => {
                    const all = lines.map((parts) =>
                        el("dd", { "data-kind": kind }, ...shown(parts)),
                    );
                    const most = all.length > mostLines + 1 ? mostLines : all.length;
                    return [
                        el("dt", {}, label),
                        ...all.slice(0, most),
                        ...further(all.slice(most)),
                    ];
                }),
            ),
        );
    });
    const words = saidWords(header.class_words, jobText(header));
    if (words) panel.append(el("p", { class: "faint explain" }, words));
    panel.append(saveButton(page, panel, "the job"));
}

function further(lines: HTMLElement[]): HTMLElement[] {
    if (lines.length === 0) return [];
    const rest = lines.map((line) => el("p", {}, ...line.childNodes));
    const summary = el("summary", {}, `${formatCount(lines.length)} more`);
    return [el("dd", {}, el("details", {}, summary, ...rest))];
}

// The parts of a sentence. Punctuation after a name stays on the line of the name.
function sentence(page: PageView, parts: NamedPart[]): (Node | string)[] {
    const nodes: (Node | string)[] = [];
    parts.forEach((part, at) => {
        const before = parts[at - 1]?.ranks.length > 0 ? punctuation(part) : "";
        const rest = { ...part, text: part.text.slice(before.length) };
        if (rest.text === "") return;
        if (part.ranks.length === 0) {
            nodes.push(...withCode(rest.text));
            return;
        }
        const node = named(page, rest);
        const next = parts[at + 1];
        const after = next ? punctuation(next) : "";
        nodes.push(after ? el("span", { class: "together" }, node, after) : node);
    });
    return nodes;
}

function punctuation({ text, ranks }: NamedPart): string {
    return ranks.length > 0 ? "" : (/^[,;:.)]+/.exec(text)?.[0] ?? "");
}

// A part that names processes is a button.
function named(page: PageView, { text, ranks }: NamedPart): Node {
    const rows = ranks.map((rank) => page.header.ranks[rank]);
    const complete = rows.some(({ device }) => device !== null);
    const one = rows.length === 1;
    const button = el(
        "button",
        {
            type: "button",
            class: complete ? "name" : "name partly",
            title: one
                ? complete
                    ? "show this process"
                    : "this file has only one line of this process"
                : "list these processes",
        },
        text,
    );
    button.addEventListener("click", () => {
        if (one) openRank(page, rows[0], true);
        else showSeveral(page, text, rows);
    });
    return button;
}

function showSeveral(page: PageView, text: string, rows: Rank[]): void {
    const { header } = page;
    const complete = rows.filter(({ device }) => device !== null);
    const [all] = rankTables(header);
    const places = new Map(header.ranks.map((row, at) => [row, at]));
    const button = (row: Rank): HTMLElement => {
        const element = el("button", { type: "button" }, rankLabel(row));
        element.addEventListener("click", () => openRank(page, row, true));
        return element;
    };
    const buttons = complete.slice(0, mostButtons).flatMap((row) => [button(row), " "]);
    showDialog(
        el("h2", {}, text),
        el(
            "p",
            {},
            complete.length === 0
                ? "This file has only one line of each of these processes."
                : `${formatCount(complete.length)} of ${formatCount(rows.length)} complete in this file: `,
            ...buttons,
        ),
        dataTable(page, {
            ...all,
            title: "These processes",
            rows: rows.map((row) => all.rows[places.get(row)!]),
        }),
    );
}
