// Stores the view in the part of the address after "#", so that a link shows what its sender saw.
// Unknown or broken values are ignored.
import { heatOrders } from "../data/heat";
import { orders } from "../data/rangelines";
import { shapes } from "../data/shownstacks";
import { axisUnits } from "../data/tworuns";
import type { View } from "./store";

const numbers = [
    "device",
    "t0",
    "t1",
    "a0",
    "a1",
    "cursor",
    "mark",
    "r0",
    "r1",
    "s0",
    "s1",
    "line",
    "card",
    "culprit",
    "selected",
    "hole",
    "stack",
    "zoom",
    "frame",
    "whatif",
    "heat",
] as const;

// Choices and their values. The first one is the default and is not written.
const choices = {
    theme: ["auto", "light", "dark"],
    stacks: ["holes", "live", "churn", "growth"],
    shape: shapes,
    colour: ["state", "age", "phase", "stream", "pool", "category", "stack"],
    order: ["worst", "address"],
    by: orders,
    drag: ["pan", "range"],
    axis: axisUnits,
    rows: heatOrders,
} as const satisfies { [Key in keyof View]?: readonly View[Key][] };

// Their defaults are in `unsaid`.
const switches = ["fold", "only"] as const;

// Texts that a person typed, by their keys in the link.
const texts = { q: "query", comment: "comment" } as const;

export const longestComment = 2000;

/** Defaults for values that a link leaves out, if they do not depend on the device. */
export const unsaid = {
    query: "",
    comment: "",
    theme: "auto",
    shape: "icicle",
    fold: true,
    hidden: "",
    only: false,
    colour: "state",
    order: "worst",
    by: "change",
    drag: "pan",
    axis: "step",
    heat: -1,
    rows: "differs",
} as const satisfies Partial<View>;

export function writeHash(view: View): string {
    const parts: string[] = numbers
        .filter((key) => view[key] !== -1)
        .map((key) => `${key}=${Math.round(view[key])}`);
    for (const key of Object.keys(texts) as (keyof typeof texts)[]) {
        if (view[texts[key]]) parts.push(`${key}=${encodeURIComponent(view[texts[key]])}`);
    }
    for (const key of Object.keys(choices) as (keyof typeof choices)[]) {
        if (view[key] !== choices[key][0] || key === "stacks") parts.push(`${key}=${view[key]}`);
    }
    for (const key of switches) {
        if (view[key] !== unsaid[key]) parts.push(`${key}=${view[key] ? 1 : 0}`);
    }
    if (view.hidden) parts.push(`hidden=${view.hidden}`);
    return "#" + parts.join("&");
}

export function readHash(hash: string): Partial<View> {
    const view: Partial<View> = {};
    for (const part of hash.replace(/^#/, "").split("&")) {
        const cut = part.indexOf("=");
        if (cut < 0) continue;
        const key = part.slice(0, cut);
        const value = part.slice(cut + 1);
        const known = numbers.find((name) => name === key);
        // Only whole numbers >= 0 are written. Any other number would be an invalid index.
        if (known && /^\d{1,15}$/.test(value)) view[known] = Number(value);
        if (key === "hidden" && /^\d{1,9}(,\d{1,9}){0,99}$/.test(value)) view.hidden = value;
        if (key === "q" || key === "comment") {
            try {
                view[texts[key]] = decodeURIComponent(value).slice(0, longestComment);
            } catch {
                // The link was cut in the middle of an escape: it is shown without this text.
            }
        }
        for (const name of Object.keys(choices) as (keyof typeof choices)[]) {
            if (name === key && (choices[name] as readonly string[]).includes(value)) {
                Object.assign(view, { [name]: value });
            }
        }
        for (const name of switches) if (name === key) view[name] = value === "1";
    }
    return view;
}
