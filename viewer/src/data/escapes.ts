/**
 * Control characters and characters that change the writing direction as escapes, as the analysis
 * writes them (with_escapes() in analyzer/support/terminal.cpp). Line breaks and tabs stay.
 */
export function withEscapes(text: string): string {
    return text.replace(
        // eslint-disable-next-line no-control-regex -- these are the characters to show
        /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
        (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
}
