// Lines of source code that were copied into the page (--sources).
import type { Header } from "./header";

export interface SourceLines {
    place: string; // file and line
    line: number; // the frame's line
    first: number; // the number of the first of `lines`
    lines: string[];
    changed: boolean; // the file changed after the recording began
}

/** A few lines before and after the line of a frame; null: the page has none. */
export function sourceOf(header: Header, frame: number, reach = 3): SourceLines | null {
    const line = header.frames.line[frame] ?? 0;
    const file = header.frames.file[frame];
    const source = header.sources.find(
        (one) =>
            one.file === file && one.first_line <= line && line < one.first_line + one.lines.length,
    );
    if (!source) return null;
    const begin = Math.max(0, line - reach - source.first_line);
    return {
        place: `${header.strings[file]}:${line}`,
        line,
        first: source.first_line + begin,
        lines: source.lines.slice(begin, line + reach + 1 - source.first_line),
        changed: source.changed,
    };
}
