// What the blocks of a picture can be coloured by: each block gets one of few kinds.
import { type DeviceModel, never, noUnit, unitSmall } from "./model";
import { phasesInSteps } from "./phases";
import type { Stacks } from "./stacks";

export type ColourBy = "state" | "age" | "phase" | "stream" | "pool" | "stack";
export const colourings: readonly ColourBy[] = ["state", "age", "phase", "stream", "pool", "stack"];

export const mostKinds = 8;  // colours that can be told apart; what is left is "other"

export interface Kinds {
    names: string[];   // at most mostKinds, and "other" behind them where there are more
    of: Uint8Array;    // per block
}

// The kinds that hold most (bytes x time) get a name each, the others share one.
function largest(model: DeviceModel, keys: ArrayLike<number>, name: (key: number) => string): Kinds {
    const { blocks, lastTick } = model;
    const weights = new Map<number, number>();
    for (let row = 0; row < blocks.count; ++row) {
        const lived = Math.min(blocks.end[row], lastTick) - blocks.start[row] + 1;
        weights.set(keys[row], (weights.get(keys[row]) ?? 0) + blocks.size[row] * lived);
    }
    const ranked = [...weights].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([key]) => key);
    const shown = ranked.slice(0, mostKinds);
    const place = new Map(shown.map((key, at) => [key, at]));
    const of = new Uint8Array(blocks.count);
    for (let row = 0; row < blocks.count; ++row) of[row] = place.get(keys[row]) ?? mostKinds;
    const names = shown.map(name);
    if (ranked.length > mostKinds) names.push(`${ranked.length - mostKinds} others`);
    return { names, of };
}

const ages: [below: number, name: string][] = [
    [0.001, "below 0.1 % of the run"], [0.01, "0.1 to 1 %"], [0.1, "1 to 10 %"], [0.5, "10 to 50 %"], [Infinity, "over half of it"],
];

function byAge(model: DeviceModel): Kinds {
    const { blocks, lastTick } = model;
    const of = new Uint8Array(blocks.count);
    for (let row = 0; row < blocks.count; ++row) {
        if (blocks.freed[row] === never) {
            of[row] = ages.length;
            continue;
        }
        const share = (blocks.end[row] - blocks.start[row]) / lastTick;
        of[row] = ages.findIndex(([below]) => share < below);
    }
    return { names: [...ages.map(([, name]) => name), "never freed"], of };
}

function byPool(model: DeviceModel): Kinds {
    const { blocks, units } = model;
    const keys = new Float64Array(blocks.count);
    for (let row = 0; row < blocks.count; ++row) {
        const unit = blocks.unit[row];
        keys[row] = unit === noUnit ? -1 : units.pool[unit] > 0 ? units.pool[unit] + 1 : units.flags[unit] & unitSmall ? 0 : 1;
    }
    return largest(model, keys, (key) => (key < 0 ? "outside" : key === 0 ? "small blocks" : key === 1 ? "large blocks" : `private pool ${key - 1}`));
}

function byPhase(model: DeviceModel): Kinds {
    const { phases, head, blocks } = model;
    // Each of hundreds of steps would be a kind: where the program marked phases, steps are one.
    const stepLane = head.phase_lanes.length > 1 ? head.phase_lanes.indexOf("steps") : -1;
    const steps = phasesInSteps(phases, blocks.start);
    let at = steps.next();
    while (!at.done) at = steps.next();
    const keys = at.value.map((phase) => (phase < 0 ? -1 : phases.lane[phase] === stepLane ? -2 : phases.name[phase]));
    return largest(model, keys, (key) => (key === -1 ? "in no phase" : key === -2 ? "in a step, outside of its phases" : head.phase_names[key]));
}

function byStack(model: DeviceModel, stacks: Stacks): Kinds {
    // Stacks that lead to the same line are one kind.
    const lines = new Map<string, number>();
    const labels: string[] = [];
    const lineOf = new Float64Array(stacks.count);
    for (let node = 0; node < stacks.count; ++node) {
        const label = stacks.label(stacks.telling(node));
        let line = lines.get(label);
        if (line === undefined) {
            line = labels.push(label) - 1;
            lines.set(label, line);
        }
        lineOf[node] = line;
    }
    const keys = Float64Array.from(model.blocks.stack, (stack) => lineOf[stack]);
    return largest(model, keys, (key) => labels[key]);
}

/** null for "state", which is the pictures' own. Costs a pass over the blocks. */
export function kindsOf(model: DeviceModel, stacks: Stacks, by: ColourBy): Kinds | null {
    switch (by) {
        case "state": return null;
        case "age": return byAge(model);
        case "phase": return byPhase(model);
        case "stream": return largest(model, model.blocks.stream, (key) => `stream ${model.head.streams[key] ?? key}`);
        case "pool": return byPool(model);
        case "stack": return byStack(model, stacks);
    }
}
