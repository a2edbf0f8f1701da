// What a person types to find frames: text, or /a regular expression/.

export interface Matcher {
    test: (text: string) => boolean;
    problem: string | null;  // why the expression cannot be used; nothing matches then
}

const longest = 2000;  // of a name: expressions can take long on long ones

/** null for an empty query. Case does not matter. */
export function makeMatcher(query: string): Matcher | null {
    const wanted = query.trim();
    if (!wanted) return null;
    const expression = /^\/(.+)\/i?$/.exec(wanted);
    if (!expression) {
        const plain = wanted.toLowerCase();
        return { test: (text) => text.toLowerCase().includes(plain), problem: null };
    }
    // A repeated group that itself repeats can take for ever, and a link can carry it.
    if (/[*+}]\)[*+{]|\|[^)]*\)[*+{]/.test(expression[1])) return { test: () => false, problem: "an expression with nested repetitions is refused" };
    try {
        const compiled = new RegExp(expression[1], "i");
        return { test: (text) => compiled.test(text.slice(0, longest)), problem: null };
    } catch (error) {
        return { test: () => false, problem: `not a regular expression: ${(error as Error).message}` };
    }
}
