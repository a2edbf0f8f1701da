// What a person types to find frames: text, or /a regular expression/.
import { Expression } from "./expression";

export interface Matcher {
    test: (text: string) => boolean;
    // why the expression cannot be used; nothing, or nothing more, matches then
    readonly problem: string | null;
}

const longest = 2000; // of a name: what comes behind is not looked at

/** null for an empty query. Case does not matter. */
export function makeMatcher(query: string): Matcher | null {
    const wanted = query.trim();
    if (!wanted) return null;
    const given = /^\/(.+)\/i?$/.exec(wanted);
    if (!given) {
        const plain = wanted.toLowerCase();
        return { test: (text) => text.toLowerCase().includes(plain), problem: null };
    }
    try {
        const expression = new Expression(given[1]);
        return {
            test: (text) => expression.test(text.slice(0, longest)),
            get problem() {
                return expression.effort < 0
                    ? "the expression is too much work for the names of this trace; not all were looked at"
                    : null;
            },
        };
    } catch (error) {
        return {
            test: () => false,
            problem: `not a regular expression that can be used: ${(error as Error).message}`,
        };
    }
}
