// Panels without a canvas, as saved pictures draw them: tables, bars and legends, whose texts wrap.
// The places of all texts and boxes are computed first, so that PNG and SVG get the same ones.
import { withEscapes } from "../data/escapes";
import type { Colours } from "./colours";
import { font, mono } from "./surface";

export interface TextCell {
    text: string;
    look?: "bold" | "faint" | "code";
    box?: { colour: string; letter?: string }; // before the text
}

export interface TextRow {
    cells: TextCell[];
    chosen?: boolean;
}

export type TextBlock =
    | { kind: "table"; rows: TextRow[]; lines: boolean } // lines: between the rows
    | { kind: "bar"; parts: { colour: string; share: number }[] }
    | { kind: "legend"; cells: TextCell[] }
    | { kind: "text"; cell: TextCell };

type Placed =
    | { kind: "text"; x: number; y: number; text: string; font: string; colour: string }
    | {
          kind: "box";
          x: number;
          y: number;
          width: number;
          height: number;
          colour: string;
          alpha: number;
      };

export interface TextLayout {
    height: number;
    placed: Placed[];
}

const lineHeight = 16;
const baseline = 12; // from the top of a line
const columnGap = 10;
const boxSize = 11;
const boxRoom = boxSize + 5;
const barHeight = 16;
const blockGap = 5;

const fontOf = ({ look }: TextCell): string =>
    look === "code" ? mono(11) : font(11.5, look === "bold" ? "bold" : "");

const indentOf = ({ box }: TextCell): number => (box ? boxRoom : 0);

// Line breaks count as spaces: every text is wrapped anew.
const wordsOf = ({ text }: TextCell): string[] =>
    withEscapes(text)
        .split(/\s+/)
        .filter((word) => word);

function widthOf(context: CanvasRenderingContext2D, cell: TextCell): number {
    context.font = fontOf(cell);
    return indentOf(cell) + context.measureText(wordsOf(cell).join(" ")).width;
}

/** The lines of a cell. A word that is wider than its cell is broken. */
function linesOf(context: CanvasRenderingContext2D, cell: TextCell, width: number): string[] {
    context.font = fontOf(cell);
    const room = Math.max(20, width - indentOf(cell));
    const fits = (text: string): boolean => context.measureText(text).width <= room;
    const lines: string[] = [];
    let line = "";
    for (const word of wordsOf(cell)) {
        const longer = line ? `${line} ${word}` : word;
        if (fits(longer)) {
            line = longer;
            continue;
        }
        if (line) lines.push(line);
        line = "";
        for (const letter of word) {
            if (line && !fits(line + letter)) {
                lines.push(line);
                line = "";
            }
            line += letter;
        }
    }
    return line ? [...lines, line] : lines;
}

/** The widths of columns: what they need, and less for the widest if it is too much. */
export function columnWidths(needed: readonly number[], room: number): number[] {
    const widths = needed.map(() => 0);
    let left = room;
    // The narrow columns get what they need, the others share the rest.
    const order = needed.map((_, at) => at).sort((a, b) => needed[a] - needed[b]);
    order.forEach((column, at) => {
        widths[column] = Math.min(needed[column], left / (order.length - at));
        left -= widths[column];
    });
    return widths;
}

/** Places the blocks below each other in `width` pixels. `context` only measures. */
export function layoutBlocks(
    context: CanvasRenderingContext2D,
    blocks: readonly TextBlock[],
    width: number,
    colours: Colours,
): TextLayout {
    const placed: Placed[] = [];
    const box = (
        x: number,
        y: number,
        wide: number,
        height: number,
        colour: string,
        alpha = 1,
    ): void => void placed.push({ kind: "box", x, y, width: wide, height, colour, alpha });
    const put = (cell: TextCell, x: number, top: number, wide: number): number => {
        const lines = linesOf(context, cell, wide);
        if (cell.box) {
            const { colour, letter } = cell.box;
            box(x, top + 3, boxSize, boxSize, colour);
            if (letter) {
                const [inner, y] = [x + 2, top + baseline];
                const bold = font(10, "bold");
                const { paper } = colours;
                placed.push({ kind: "text", x: inner, y, text: letter, font: bold, colour: paper });
            }
        }
        lines.forEach((text, at) => {
            const colour = cell.look === "faint" ? colours.faint : colours.ink;
            const y = top + at * lineHeight + baseline;
            const left = x + indentOf(cell);
            placed.push({ kind: "text", x: left, y, text, font: fontOf(cell), colour });
        });
        return Math.max(1, lines.length) * lineHeight;
    };
    const table = (rows: TextRow[], lines: boolean, top: number): number => {
        const columns = Math.max(0, ...rows.map(({ cells }) => cells.length));
        const needed = Array.from({ length: columns }, (_, at) =>
            Math.ceil(
                Math.max(
                    0,
                    ...rows.map(({ cells }) => (cells[at] ? widthOf(context, cells[at]) : 0)),
                ),
            ),
        );
        const widths = columnWidths(needed, width - columnGap * (columns - 1));
        let y = top;
        rows.forEach(({ cells, chosen }, row) => {
            if (lines && row > 0) box(0, y, width, 1, colours.line);
            const behind = placed.length;
            let x = 0;
            const heights = cells.map((cell, at) => {
                const height = put(cell, x, y + 1, widths[at]);
                x += widths[at] + columnGap;
                return height;
            });
            const height = Math.max(...heights) + 2;
            if (chosen) {
                const { mark: colour } = colours;
                const area = { x: 0, y, width, height, colour, alpha: 0.22 };
                placed.splice(behind, 0, { kind: "box", ...area });
            }
            y += height;
        });
        return y;
    };
    const bar = (parts: { colour: string; share: number }[], top: number): number => {
        let x = 0;
        for (const { colour, share } of parts) {
            box(x, top, share * width, barHeight, colour);
            x += share * width;
        }
        return top + barHeight;
    };
    // As many cells in a line as fit.
    const legend = (cells: TextCell[], top: number): number => {
        let [x, y] = [0, top];
        for (const cell of cells) {
            const wide = Math.min(width, widthOf(context, cell) + 1);
            if (x > 0 && x + wide > width) {
                x = 0;
                y += lineHeight;
            }
            y += put(cell, x, y, wide) - lineHeight;
            x += wide + columnGap;
        }
        return y + lineHeight;
    };
    let y = 0;
    for (const block of blocks) {
        y =
            block.kind === "table"
                ? table(block.rows, block.lines, y)
                : block.kind === "bar"
                  ? bar(block.parts, y)
                  : block.kind === "legend"
                    ? legend(block.cells, y)
                    : y + put(block.cell, 0, y, width);
        y += blockGap;
    }
    return { height: y, placed };
}

/** Draws what `layoutBlocks()` placed, with its upper left corner at a point. */
export function drawBlocks(
    context: CanvasRenderingContext2D,
    { placed }: TextLayout,
    left: number,
    top: number,
): void {
    context.textAlign = "left";
    for (const part of placed) {
        context.fillStyle = part.colour;
        if (part.kind === "box") {
            context.globalAlpha = part.alpha;
            context.fillRect(left + part.x, top + part.y, part.width, part.height);
            context.globalAlpha = 1;
        } else {
            context.font = part.font;
            context.fillText(part.text, left + part.x, top + part.y);
        }
    }
}
