// The view as the part of the address after "#", so that a link shows what its sender saw. Unknown
// or broken values are ignored.
import type { View } from "./store";

const numbers = ["device", "t0", "t1", "a0", "a1", "cursor", "card", "culprit", "selected", "stack"] as const;

export function writeHash(view: View): string {
    const parts: string[] = numbers.map((key) => `${key}=${Math.round(view[key])}`);
    if (view.query) parts.push(`q=${encodeURIComponent(view.query)}`);
    if (view.theme !== "auto") parts.push(`theme=${view.theme}`);
    parts.push(`stacks=${view.stacks}`);
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
        const number = Number(value);
        if (known && value !== "" && Number.isFinite(number) && number >= -1) view[known] = number;
        if (key === "q") {
            try {
                view.query = decodeURIComponent(value);
            } catch {
                // A link cut in the middle of an escape: shown without its search.
            }
        }
        if (key === "theme" && (value === "light" || value === "dark")) view.theme = value;
        if (key === "stacks" && (value === "holes" || value === "live")) view.stacks = value;
    }
    return view;
}
