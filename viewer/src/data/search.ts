// What a person types to find frames: text, or /a regular expression/. Case does not matter.
import { Expression } from "./expression";

export interface Hits {
    hits: Uint8Array; // per name
    problem: string | null; // why nothing, or nothing more, was looked for
}

const longest = 2000; // of a name: what comes behind is not looked at

/** null for an empty query. */
export function findNames(names: readonly string[], query: string): Hits | null {
    const wanted = query.trim();
    if (!wanted) return null;
    const given = /^\/(.+)\/i?$/.exec(wanted);
    const nothing = new Uint8Array(names.length);
    if (!given) {
        const plain = wanted.toLowerCase();
        const hits = nothing.map((_, at) => Number(names[at].toLowerCase().includes(plain)));
        return { hits, problem: null };
    }
    try {
        const expression = new Expression(given[1]);
        const hits = nothing.map((_, at) => Number(expression.test(names[at].slice(0, longest))));
        const problem =
            expression.effort < 0
                ? "the expression is too much work for the names of this trace; not all were looked at"
                : null;
        return { hits, problem };
    } catch (error) {
        const problem = `not a regular expression that can be used: ${(error as Error).message}`;
        return { hits: nothing, problem };
    }
}
