// Terms of a search that look at blocks: size>1MiB, age<10ms, freed:never, stream:0x7f,
// pool:small, category:optimizer, label:cache, phase:"first epoch". All of them must hold. A minus
// sign excludes: -pool:small, and -forward excludes blocks with this text in their stack.
import { formatCounted } from "./format";
import { poolName, poolOfUnits } from "./kinds";
import { type DeviceModel, never } from "./model";
import { phasesInSteps } from "./phases";
import type { Stacks } from "./stacks";
import { rowsInStep } from "./steps";

export interface Term {
    not: boolean; // the blocks for which it does not hold
    key: string; // "stack": the value is text of a stack
    sign: string; // of sizes and times: > >= < <= =
    value: string;
}

export interface Query {
    text: string; // what remains for the search of stacks
    terms: Term[];
}

const amounts = ["size", "age"];
const names = ["freed", "stream", "pool", "category", "label", "phase"];
const termOf = new RegExp(
    `^(?:(${amounts.join("|")})(>=|<=|[<>=:])|(${names.join("|")}):)("[^"]*"?|\\S*)$`,
    "i",
);

const units: Record<string, [units: Record<string, number>, example: string]> = {
    // as in preload/include/fragtrace/sizes.h
    size: [
        {
            "": 1,
            b: 1,
            kb: 1e3,
            mb: 1e6,
            gb: 1e9,
            tb: 1e12,
            k: 2 ** 10,
            m: 2 ** 20,
            g: 2 ** 30,
            t: 2 ** 40,
            kib: 2 ** 10,
            mib: 2 ** 20,
            gib: 2 ** 30,
            tib: 2 ** 40,
        },
        "1MiB",
    ],
    age: [{ ns: 1, us: 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9 }, "10ms"],
};

// Sizes have commas where the page prints them exactly.
const number = "((?:\\d{1,3}(?:,\\d{3})+|\\d+)(?:\\.\\d*)?)";
const amountText = new RegExp(`^${number} *([a-z]*)$`, "i");
const apart = new RegExp(
    `(?<![^\\s-])((${amounts.join("|")})(?:>=|<=|[<>=:])${number}) +([a-z]+)(?!\\S)`,
    "gi",
);

/** The search with numbers and their units as one word: "size=8 MiB" becomes "size=8MiB". */
function joined(query: string): string {
    return query.replace(apart, (all, term: string, key: string, _: string, unit: string) =>
        unit.toLowerCase() in units[key.toLowerCase()][0] ? term + unit : all,
    );
}

function amountOf({ key, value }: Term): number | null {
    const [, figure, unit] = amountText.exec(value) ?? ["", "", "?"];
    const factor = units[key][0][unit.toLowerCase()];
    return factor === undefined ? null : Math.floor(Number(figure.replaceAll(",", "")) * factor);
}

/** Divides a search into terms and text. A regular expression is never divided. */
export function parseQuery(query: string): Query {
    const [whole, expression] = /(?:^|\s)(\/.+\/i?)(?=\s|$)/.exec(query) ?? ["", ""];
    const rest = whole === "" ? query : query.replace(whole, " ");
    const terms: Term[] = [];
    const words: string[] = [];
    for (const word of joined(rest).match(/(?:[^\s"]|"[^"]*"?)+/g) ?? []) {
        const not = word.length > 1 && word.startsWith("-");
        const found = termOf.exec(not ? word.slice(1) : word);
        if (found === null && !not) {
            words.push(word.replace(/^"([^"]*)"?$/, "$1"));
            continue;
        }
        const [, amount, sign, name, value] = found ?? ["", undefined, ":", "stack", word.slice(1)];
        terms.push({
            not,
            key: (amount ?? name).toLowerCase(),
            sign: sign === ":" ? "=" : (sign ?? "="),
            value: value.replaceAll('"', ""),
        });
    }
    const text = words.join(" ");
    return { text: [text, expression].filter(Boolean).join(" "), terms };
}

/**
 * What is wrong if nothing contains the text and a part of it looks like a term. Text that is found
 * is never judged, because names may look like terms, too.
 */
export function unknownTerm(text: string): string | null {
    const [, name] = /(?:^|\s)([a-z]+):[^:\s]/.exec(text) ?? [];
    if (name === undefined) return null;
    return `nothing has this text, and "${name}:" is no term; terms are ${[...amounts, ...names].join(", ")}`;
}

const compare: Record<string, (a: number, b: number) => boolean> = {
    ">": (a, b) => a > b,
    ">=": (a, b) => a >= b,
    "<": (a, b) => a < b,
    "<=": (a, b) => a <= b,
    "=": (a, b) => a === b,
};

type Test = (row: number) => boolean;

/** The names that contain the text, as 1 per name. */
function named({ key, value }: Term, all: readonly string[]): Uint8Array | string {
    const wanted = value.toLowerCase();
    const found = Uint8Array.from(all, (name) => Number(name.toLowerCase().includes(wanted)));
    if (found.includes(1)) return found;
    const mostNamed = 6;
    const known = [...new Set(all)].filter(Boolean);
    const more =
        known.length > mostNamed ? `, ... (${formatCounted(known.length, "name", "names")})` : "";
    return known.length === 0
        ? `the trace has no ${key}`
        : `no ${key} has "${value}" in its name; there are ${known.slice(0, mostNamed).join(", ")}${more}`;
}

function* testOf(model: DeviceModel, stacks: Stacks, term: Term): Generator<void, Test | string> {
    const { blocks, head, lastTick } = model;
    const { key, sign, value } = term;
    const { start, end, freed, size, stream, stack, unit } = blocks;
    switch (key) {
        case "stack": {
            const found = stacks.withText(value);
            return (row) => found[stack[row]] === 1;
        }
        case "size":
        case "age": {
            const wanted = amountOf(term);
            if (wanted === null) return `${key}: "${value}" is not like ${units[key][1]}`;
            const is = compare[sign];
            const tick = head.tick_ns;
            return key === "size"
                ? (row) => is(size[row], wanted)
                : (row) => is((Math.min(end[row], lastTick) - start[row]) * tick, wanted);
        }
        case "freed":
            return value === "never"
                ? (row) => freed[row] === never
                : value === "yes"
                  ? (row) => freed[row] !== never
                  : `freed: "${value}" is neither never nor yes`;
        case "stream": {
            const found = named(term, head.streams);
            return typeof found === "string" ? found : (row) => found[stream[row]] === 1;
        }
        case "pool": {
            const pools = poolOfUnits(model);
            const found = named(
                term,
                Array.from({ length: model.pools.length + 2 }, (_, pool) => poolName(model, pool)),
            );
            return typeof found === "string" ? found : (row) => found[pools[unit[row]] ?? 0] === 1;
        }
        case "category": {
            const found = named(term, ["other", ...head.categories]);
            if (typeof found === "string") return found;
            const of = new Map<number, number>();
            head.stack_categories.stack.forEach((node, at) =>
                of.set(node, head.stack_categories.category[at] + 1),
            );
            return (row) => found[of.get(stack[row]) ?? 0] === 1;
        }
        case "label": {
            const found = named(term, stacks.labels);
            if (typeof found === "string") return found;
            const below = stacks.withFrames(found);
            return (row) => below[stack[row]] === 1;
        }
        default: {
            const found = named(term, head.phase_names);
            if (typeof found === "string") return found;
            const phase = yield* phasesInSteps(model.phases, start);
            return (row) => phase[row] >= 0 && found[model.phases.name[phase[row]]] === 1;
        }
    }
}

/**
 * Per block of the device: 1 if all terms hold. Terms without a value are left out, because
 * somebody is typing. Returns a sentence if a term cannot be understood. Made in steps.
 */
export function* blocksWith(
    model: DeviceModel,
    stacks: Stacks,
    terms: readonly Term[],
): Generator<void, Uint8Array | string> {
    const { count } = model.blocks;
    const wanted = new Uint8Array(count).fill(1);
    for (const term of terms.filter(({ value }) => value !== "")) {
        const test = yield* testOf(model, stacks, term);
        if (typeof test === "string") return test;
        for (let from = 0; from < count; from += rowsInStep) {
            const to = Math.min(count, from + rowsInStep);
            for (let row = from; row < to; ++row) if (test(row) === term.not) wanted[row] = 0;
            yield;
        }
    }
    return wanted;
}
