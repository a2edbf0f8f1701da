// The sections of the panel beside the verdict. Each shows what the analysis found, or nothing.
import { formatBytes, formatChange, formatCount, momentsApart } from "../data/format";
import { atMoment, type Card, type Culprit, type Part, savings } from "../data/header";
import { kindOfCategory } from "../data/kinds";
import { kindColour } from "../draw/kinds";
import { barGrid, choosable, heads, lineList } from "./cards";
import { button, el, table } from "./dom";
import type { PageView } from "./view";

function culpritTable(page: PageView, culprits: Culprit[]): HTMLElement {
    const { view, stacks } = page;
    const ages = culprits.some((culprit) => culprit.age !== "");
    const rows = culprits.flatMap((culprit, row) => [
        choosable(
            el(
                "tr",
                { tabindex: "0", "aria-selected": String(view.culprit === row) },
                el("td", { class: "size" }, formatBytes(culprit.held_open)),
                el("td", {}, formatBytes(culprit.live)),
                el("td", {}, formatCount(culprit.count)),
                el(
                    "td",
                    { class: "wrap pins" },
                    el("span", { class: "swatch" }),
                    el("code", {}, culprit.label || stacks.label(stacks.telling(culprit.stack))),
                    (culprit.phase || culprit.outlived) &&
                        el(
                            "span",
                            { class: "faint" },
                            (culprit.phase && ` in phase ${culprit.phase}`) + culprit.outlived,
                        ),
                ),
                ages && el("td", {}, culprit.age.replace(/^oldest /, "")),
            ),
            () =>
                page.change({
                    culprit: page.view.culprit === row ? -1 : row,
                    line: -1,
                    stack:
                        page.view.culprit === row
                            ? -1
                            : page.shownStacks.node(culprit.stack, page.view),
                }),
        ),
        ...(view.culprit === row ? blockers(page, culprit) : []),
    ]);
    return el(
        "table",
        { role: "grid" },
        heads([
            [
                "blocked",
                "free memory that these live blocks prevent from being reused: " +
                    "their share of the free bytes of their segments (or pages)",
            ],
            ["live bytes", "the size of these live blocks"],
            ["blocks", "the number of live blocks"],
            ["allocated at", "the line that allocated them"],
            ...(ages
                ? [
                      ["age of oldest", "the age of the oldest of these blocks at this moment"] as [
                          string,
                          string,
                      ],
                  ]
                : []),
        ]),
        el("tbody", {}, ...rows),
    );
}

const mostBlockers = 4;

// Below the chosen row: its largest blocks, to go to.
function blockers(page: PageView, { blocks: rows }: Culprit): HTMLElement[] {
    const { model } = page;
    const { size, start, count } = model.blocks;
    const known = rows.filter((row) => row < count).sort((a, b) => size[b] - size[a]);
    if (known.length === 0) return [];
    const shown = known.slice(0, mostBlockers);
    const moment = momentsApart(shown.map((row) => start[row] * model.head.tick_ns));
    const buttons = shown.map((row) => {
        const when = atMoment(model.head, start[row], moment);
        const title = `select this block, allocated ${when}`;
        const text = `${formatBytes(size[row])} ${when}`;
        return button(text, title, () => page.change({ selected: row }));
    });
    const what = known.length > mostBlockers ? "largest blocks: " : "blocks: ";
    return [el("tr", { class: "below" }, el("td", { colspan: "5" }, what, ...buttons))];
}

/** A row that marks the blocks of a line, and shows the live memory of stacks. */
function lineRow(page: PageView, node: number, ...cells: (HTMLElement | false)[]): HTMLElement {
    const stack = page.shownStacks.node(node, page.view);
    const chosen = (): boolean => page.view.culprit < 0 && stack > 0 && page.view.stack === stack;
    return choosable(el("tr", { tabindex: "0", "aria-selected": String(chosen()) }, ...cells), () =>
        page.change({ culprit: -1, line: -1, stack: chosen() ? -1 : stack, stacks: "live" }),
    );
}

const kindHead: [string, string] = ["kind (estimate)", "estimated from stack and lifetime"];

function holderTable(page: PageView, { holders, since }: Card): HTMLElement {
    const kinds = holders.some((holder) => holder.category !== "");
    const rows = holders.map((holder) =>
        lineRow(
            page,
            holder.stack,
            el("td", { class: "size" }, formatBytes(holder.live)),
            since !== "" &&
                el(
                    "td",
                    { class: "amount" },
                    holder.change === null ? "unknown" : formatChange(holder.change),
                ),
            el("td", {}, formatCount(holder.count)),
            el("td", { class: "wrap" }, el("code", {}, holder.label)),
            kinds && el("td", {}, holder.category || "other"),
        ),
    );
    return el(
        "table",
        { role: "grid" },
        heads([
            ["live bytes", "the size of the live blocks"],
            ...(since
                ? [
                      [
                          `since ${since}`,
                          `the change of the live bytes since the same point of ${since}, the last good one`,
                      ] as [string, string],
                  ]
                : []),
            ["blocks", "the number of live blocks"],
            ["allocated at", "the line that allocated them"],
            ...(kinds ? [kindHead] : []),
        ]),
        el("tbody", {}, ...rows),
    );
}

function growingTable(page: PageView): HTMLElement {
    const { rows, when } = page.model.head.growth;
    const kinds = rows.some((row) => row.category !== "");
    return el(
        "table",
        { role: "grid" },
        heads([
            ["per step", `the growth of the live bytes at the starts of the steps, ${when}`],
            ["grown", `the growth of the live bytes ${when}`],
            [
                "live as the last step began",
                "the live bytes at the start of the last of these steps",
            ],
            ["allocated at", "the line that allocated them"],
            ...(kinds ? [kindHead] : []),
        ]),
        el(
            "tbody",
            {},
            ...rows.map((row) =>
                lineRow(
                    page,
                    row.stack,
                    el("td", { class: "size" }, formatBytes(row.per_step)),
                    el("td", {}, formatBytes(row.grown)),
                    el("td", {}, formatBytes(row.live)),
                    el("td", { class: "wrap" }, el("code", {}, row.label)),
                    kinds && el("td", {}, row.category || "other"),
                ),
            ),
        ),
    );
}

/** The memory in use by category: a bar, the names of its parts, and their sum. */
function categoryBar(
    { colours, model }: PageView,
    { categories, categories_basis, in_use, outside, screen }: Card,
): HTMLElement {
    const sum = (those: Part[]): number => those.reduce((all, { bytes }) => all + bytes, 0);
    const inside = sum(categories);
    // In a shortage, what is missing may be outside the pool.
    const others = screen === "shortage" ? outside : [];
    const greys = [colours.other, colours.line, colours.faint];
    const all = Math.max(1, inside + sum(others));
    const bar = el("div", { class: "parts" });
    const legend = el("p", { class: "legend" });
    const add = ({ name, bytes, note }: Part, colour: string): void => {
        const size = formatBytes(bytes);
        const part = el("i", { title: `${name}: ${size}` });
        part.style.width = `${(100 * bytes) / all}%`;
        const box = el("i");
        part.style.background = box.style.background = colour;
        bar.append(part);
        legend.append(el("span", {}, box, `${name} ${size}${note ? ` (${note})` : ""}`));
    };
    categories.forEach((part) =>
        add(part, kindColour(colours, kindOfCategory(model.head, part.name))),
    );
    others.forEach((part, at) =>
        add({ ...part, note: "outside the pool" }, greys[at % greys.length]),
    );
    const total =
        `${formatBytes(in_use ?? inside)} in total (${categories_basis})` +
        (others.length > 0 ? `; ${formatBytes(sum(others))} outside the pool` : "");
    return el("div", { class: "categories" }, bar, legend, el("p", { class: "faint" }, total));
}

// ---- the sections -------------------------------------------------------------------------------

export interface Section {
    heading: string;
    content: HTMLElement[];
    always?: boolean; // the heading says more than the question
}

/** The lines that block free memory. */
export function blockedSection(page: PageView, card: Card): Section | null {
    if (card.culprits.length === 0) return null;
    return {
        heading: "Which allocations block free memory",
        content: [culpritTable(page, card.culprits)],
    };
}

/** The lines with the most live memory, and the memory by category. */
export function holdersSection(page: PageView, card: Card): Section | null {
    const { categories, holders, holders_more, holders_when, lines } = card;
    if (holders.length + categories.length === 0) return null;
    return {
        heading: ["Live memory by line", holders_when].filter(Boolean).join(" "),
        always: holders_when !== "",
        content: [
            ...(categories.length > 0 ? [categoryBar(page, card)] : []),
            ...lineList(lines),
            ...(holders.length > 0 ? [holderTable(page, card)] : []),
            ...(holders_more ? [el("p", { class: "faint" }, holders_more)] : []),
        ],
    };
}

/** The lines that grow, and what survived its purpose. */
export function growthSection(page: PageView): Section | null {
    const { rows, lines } = page.model.head.growth;
    if (rows.length + lines.length === 0) return null;
    return {
        heading: "Growth",
        content: [...(rows.length > 0 ? [growingTable(page)] : []), ...lineList(lines)],
    };
}

/** What would reduce the memory that the program itself needs. */
export function savingSection(page: PageView): Section | null {
    const lines = savings(page.model.head);
    return lines.length === 0 ? null : { heading: "Use less memory", content: lineList(lines) };
}

/** Memory of the card outside the pool, beside the memory in use in the pool. */
export function outsideSection(_: PageView, { outside, in_use }: Card): Section | null {
    if (outside.length === 0) return null;
    const bars = outside.map(({ name, bytes }) => ({
        label: name,
        kind: "device",
        bytes,
        from: 0,
    }));
    const own = { label: "in use in the pool", kind: "used", bytes: in_use ?? 0, from: 0 };
    return {
        heading: "Outside the pool",
        content: [barGrid(in_use === null ? bars : [own, ...bars], null)],
    };
}

/** How close the run came to running out of memory. */
export function nearMissSection(page: PageView): Section | null {
    const { near_miss } = page.model.head;
    return near_miss.length === 0 ? null : { heading: "Near misses", content: lineList(near_miss) };
}

/** Free blocks of a snapshot, and the requests that they serve. */
export function holesSection(page: PageView): Section | null {
    const { heading, rows, more } = page.model.head.holes;
    if (rows.length === 0) return null;
    return {
        heading,
        content: [
            table(
                ["bytes", "holes", "serve"],
                rows.map((row) => [formatBytes(row.bytes), formatCount(row.count), row.serves]),
            ),
            ...(more ? [el("p", { class: "faint" }, more)] : []),
        ],
    };
}
