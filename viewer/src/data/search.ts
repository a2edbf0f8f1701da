// What a person types to find frames: text, or /a regular expression/. Case does not matter.

/** `hits` has a 1 for each name that matches. */
export type SearchAnswer = { hits: Uint8Array } | { problem: string };

/** Looks for regular expressions beside the page. */
export interface ExpressionSearch {
    /** Ends an earlier search, which then has no answer. */
    find(names: readonly string[], source: string, done: (answer: SearchAnswer) => void): void;
    stop(): void;
}

/** The expression between the slashes; null for text. */
export function expressionOf(query: string): string | null {
    return /^\/(.+)\/i?$/.exec(query.trim())?.[1] ?? null;
}

export function findText(names: readonly string[], text: string): Uint8Array {
    const wanted = text.toLowerCase();
    return Uint8Array.from(names, (name) => Number(name.toLowerCase().includes(wanted)));
}

/** May run for ever: some expressions try a number of ways that doubles with each letter. */
export function findExpression(names: readonly string[], source: string): SearchAnswer {
    try {
        const expression = new RegExp(source, "i");
        return { hits: Uint8Array.from(names, (name) => Number(expression.test(name))) };
    } catch (error) {
        const reason = (error as Error).message.replace(
            /^Invalid regular expression: (\/.*: )?/,
            "",
        );
        return { problem: `not a regular expression: ${reason}` };
    }
}
