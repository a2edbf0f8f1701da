// Colours of blocks: each block gets one of a few kinds. For ten million blocks this takes longer
// than a frame, so it is done in steps.
import { formatBlocks, formatBytes } from "./format";
import type { DeviceHeader } from "./header";
import { type DeviceModel, never } from "./model";
import { phasesInSteps } from "./phases";
import type { Stacks } from "./stacks";
import { finish, rowsInStep } from "./steps";

export type ColourBy = "state" | "age" | "phase" | "stream" | "pool" | "category" | "stack";
export const colourings: readonly ColourBy[] = [
    "state",
    "age",
    "phase",
    "stream",
    "pool",
    "category",
    "stack",
];

export const mostKinds = 8; // a reader can distinguish this many colours; the rest is "others"

export interface Kinds {
    by: ColourBy;
    names: string[]; // at most mostKinds, then "others" if there are more
    of: Uint8Array; // one per block; a block of 0 bytes may have a number without a name
}

type Steps<T> = Generator<void, T>;
type Sorted = Omit<Kinds, "by">;

// Computes kinds from a column. `table` maps a block's value to a key below `keys`. Values beyond
// the table have the key 0. The keys that `choose` shows get a name each, by default those with the
// most bytes x time. All other keys share one name.
function* largest(
    model: DeviceModel,
    column: ArrayLike<number>,
    table: Uint32Array,
    keys: number,
    name: (key: number) => string,
    choose = heaviest,
): Steps<Sorted> {
    const { blocks, lastTick } = model;
    const { start, end, size, count } = blocks;
    const known = table.length;
    const weights = new Float64Array(keys);
    for (let from = 0; from < count; from += rowsInStep) {
        const to = Math.min(count, from + rowsInStep);
        for (let row = from; row < to; ++row) {
            const value = column[row];
            weights[value < known ? table[value] : 0] +=
                size[row] * ((end[row] < lastTick ? end[row] : lastTick) - start[row] + 1);
        }
        yield;
    }
    const [shown, some] = choose(weights);
    const place = new Uint8Array(keys).fill(mostKinds);
    shown.forEach((key, at) => (place[key] = at));
    const kindOf = Uint8Array.from(table, (key) => place[key]);
    const of = new Uint8Array(count);
    let others = 0;
    let otherBytes = 0;
    for (let from = 0; from < count; from += rowsInStep) {
        const to = Math.min(count, from + rowsInStep);
        for (let row = from; row < to; ++row) {
            const kind = column[row] < known ? kindOf[column[row]] : place[0];
            of[row] = kind;
            if (kind === mostKinds) {
                ++others;
                otherBytes += size[row];
            }
        }
        yield;
    }
    const names = shown.map(name);
    if (some > shown.length) {
        names.push(
            `${some - shown.length} others: ${formatBlocks(others)}, ${formatBytes(otherBytes)} in all`,
        );
    }
    return { names, of };
}

// Returns the keys with the largest weights, largest first, and the number of keys with any weight.
// Sorting would be slow: there can be many thousand keys, for example one per step.
function heaviest(weights: Float64Array): [shown: number[], some: number] {
    const shown: number[] = [];
    let some = 0;
    for (let key = 0; key < weights.length; ++key) {
        if (weights[key] <= 0) continue;
        ++some;
        if (shown.length === mostKinds && weights[key] <= weights[shown[mostKinds - 1]]) continue;
        let at = shown.length;
        while (at > 0 && weights[shown[at - 1]] < weights[key]) --at;
        shown.splice(at, 0, key);
        if (shown.length > mostKinds) shown.pop();
    }
    return [shown, some];
}

const identity = (count: number): Uint32Array => Uint32Array.from({ length: count }, (_, at) => at);

const ageLimits = [0.001, 0.01, 0.1, 0.5]; // shares of the run
const ageNames = [
    "below 0.1 % of the run",
    "0.1 to 1 %",
    "1 to 10 %",
    "10 to 50 %",
    "over 50 %",
    "never freed",
];

function* byAge(model: DeviceModel): Steps<Sorted> {
    const {
        lastTick,
        blocks: { start, end, freed, count },
    } = model;
    const [first, second, third, fourth] = ageLimits.map((share) => share * lastTick);
    const of = new Uint8Array(count);
    for (let from = 0; from < count; from += rowsInStep) {
        const to = Math.min(count, from + rowsInStep);
        for (let row = from; row < to; ++row) {
            // a block may wait until after the end of the trace
            const lived = (end[row] < lastTick ? end[row] : lastTick) - start[row];
            of[row] =
                freed[row] === never
                    ? 5
                    : lived < first
                      ? 0
                      : lived < second
                        ? 1
                        : lived < third
                          ? 2
                          : lived < fourth
                            ? 3
                            : 4;
        }
        yield;
    }
    return { names: ageNames, of };
}

// Pools by number: 0 = outside of segments, 1 and 2 = the default pool, then the private pools.
const [outside, small, large] = [0, 1, 2];

/** The number of the pool of each unit. Blocks outside all units have no entry: they are pool 0. */
export function poolOfUnits({ units }: DeviceModel): Uint32Array {
    return Uint32Array.from(units.pool, (pool, at) =>
        pool > 0 ? pool + 2 : units.small[at] === 1 ? small : large,
    );
}

export function poolName(model: DeviceModel, pool: number): string {
    return pool === outside
        ? "outside of segments"
        : pool === small
          ? "small blocks"
          : pool === large
            ? "large blocks"
            : model.pools[pool - 2].name;
}

function byPool(model: DeviceModel): Steps<Sorted> {
    // Blocks outside all units have a number beyond the table, so they get the key 0.
    return largest(model, model.blocks.unit, poolOfUnits(model), model.pools.length + 2, (key) =>
        poolName(model, key),
    );
}

function* byPhase(model: DeviceModel): Steps<Sorted> {
    const {
        phases,
        head: { phase_lanes, phase_names },
        blocks,
    } = model;
    // Steps count as one kind if the program marked phases. Otherwise each of hundreds of steps
    // would be a kind.
    const stepLane = phase_lanes.length > 1 ? phase_lanes.indexOf("steps") : -1;
    const [none, step, names] = [0, 1, 2];
    const keys = Uint32Array.from(phases.name, (name, phase) =>
        phases.lane[phase] === stepLane ? step : names + name,
    );
    const found = yield* phasesInSteps(phases, blocks.start);
    // "No phase" (-1) becomes the largest unsigned number, beyond the table.
    return yield* largest(
        model,
        new Uint32Array(found.buffer),
        keys,
        phase_names.length + names,
        (key) =>
            key === none
                ? "no phase"
                : key === step
                  ? "in a step, in no phase"
                  : phase_names[key - names],
    );
}

/** All categories, in the order of their colours. */
const categoriesOf = ({ categories }: DeviceHeader): string[] => [...categories, "other"];

/** The kind of a category, so that it has the same colour in all panels. */
export function kindOfCategory(head: DeviceHeader, name: string): number {
    const at = categoriesOf(head).indexOf(name);
    return at < 0 ? mostKinds : Math.min(at, mostKinds);
}

// Returns the first keys up to the last one with any weight, and the number of keys to name.
function inOrder(weights: Float64Array): [shown: number[], some: number] {
    const others = weights.subarray(mostKinds).filter((weight) => weight > 0).length;
    const last = weights.findLastIndex((weight) => weight > 0);
    const shown = identity(Math.min(mostKinds, last + 1));
    return [[...shown], shown.length + others];
}

function byCategory(model: DeviceModel, stacks: Stacks): Steps<Sorted> {
    const names = categoriesOf(model.head);
    const { stack, category } = model.head.stack_categories;
    const table = new Uint32Array(stacks.count).fill(names.length - 1);
    stack.forEach((node, at) => (table[node] = category[at]));
    return largest(model, model.blocks.stack, table, names.length, (key) => names[key], inOrder);
}

function byStack(model: DeviceModel, stacks: Stacks): Steps<Sorted> {
    // Stacks that the report names by the same line are one kind.
    const lines = new Map<string, number>();
    const labels: string[] = [];
    const lineOf = new Uint32Array(stacks.count);
    for (let node = 0; node < stacks.count; ++node) {
        const label = stacks.label(stacks.telling(node));
        let line = lines.get(label);
        if (line === undefined) {
            line = labels.push(label) - 1;
            lines.set(label, line);
        }
        lineOf[node] = line;
    }
    return largest(model, model.blocks.stack, lineOf, labels.length, (key) => labels[key]);
}

function sorted(model: DeviceModel, stacks: Stacks, by: Exclude<ColourBy, "state">): Steps<Sorted> {
    switch (by) {
        case "age":
            return byAge(model);
        case "phase":
            return byPhase(model);
        case "stream": {
            const { streams } = model.head;
            return largest(
                model,
                model.blocks.stream,
                identity(Math.max(1, streams.length)),
                Math.max(1, streams.length),
                (key) => `stream ${streams[key] ?? key}`,
            );
        }
        case "pool":
            return byPool(model);
        case "category":
            return byCategory(model, stacks);
        case "stack":
            return byStack(model, stacks);
    }
}

/**
 * Computes kinds in steps well below 10 ms each. Returns null for "state", which the pictures draw
 * without kinds.
 */
export function kindsInSteps(
    model: DeviceModel,
    stacks: Stacks,
    by: ColourBy,
): Steps<Kinds> | null {
    if (by === "state") return null;
    return (function* (): Steps<Kinds> {
        return { by, ...(yield* sorted(model, stacks, by)) };
    })();
}

/** Computes all kinds at once. */
export function kindsOf(model: DeviceModel, stacks: Stacks, by: ColourBy): Kinds | null {
    const steps = kindsInSteps(model, stacks, by);
    return steps && finish(steps);
}
