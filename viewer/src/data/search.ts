// Search text that a person types to find frames: plain text or /a regular expression/. Case does
// not matter.

/** `hits` has a 1 for each name that matches. */
export type SearchAnswer = { hits: Uint8Array } | { problem: string };

/** Searches with regular expressions outside the page's thread. */
export interface ExpressionSearch {
    /** Starts a search. An earlier search ends without an answer. */
    find(names: readonly string[], source: string, done: (answer: SearchAnswer) => void): void;
    stop(): void;
}

/** The expression between the slashes, or null for plain text. */
export function expressionOf(query: string): string | null {
    return /^\/(.+)\/i?$/.exec(query.trim())?.[1] ?? null;
}

export function findText(names: readonly string[], text: string): Uint8Array {
    const wanted = text.toLowerCase();
    return Uint8Array.from(names, (name) => Number(name.toLowerCase().includes(wanted)));
}

/** May run for ever: the time of some expressions doubles with each letter. */
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
