// The table of dependencies: a row is computed or drawn when a part of the page's state changed
// that it depends on.
import type { Part } from "./store";

export interface Update {
    on: readonly Part[];
    /** Returns false if the part that it makes did not change. */
    draw: (changed: ReadonlySet<Part>) => unknown;
    makes?: Part; // counts as changed for the rows below
}

/** Throws if a row depends on a part that only a later row makes. */
export function checkUpdates(table: readonly Update[]): void {
    table.forEach(({ on }, at) => {
        for (const { makes } of table.slice(at)) {
            if (makes && on.includes(makes)) throw new Error(`${makes} is made too late`);
        }
    });
}

/** Runs the rows that depend on a changed part, from first to last. */
export function runUpdates(table: readonly Update[], changed: ReadonlySet<Part>): void {
    const all = new Set(changed);
    for (const { on, draw, makes } of table) {
        if (on.some((part) => all.has(part)) && draw(all) !== false && makes) all.add(makes);
    }
}
