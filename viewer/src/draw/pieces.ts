// The boxes and texts of a panel with their places, as PNG and SVG draw them.
import { withEscapes } from "../data/escapes";
import { type Colours, hatched } from "./colours";

/** A colour without transparency, and how much of it covers what is below. */
export interface Paint {
    colour: string; // "#rrggbb", or "hatch" for free memory
    alpha: number;
}

interface Area {
    x: number;
    y: number;
    width: number;
    height: number;
}

export type Piece = Paint &
    (
        | (Area & { kind: "box"; radius: number })
        | (Area & { kind: "frame"; radius: number; stroke: number })
        | (Area & { kind: "dashes"; stroke: number }) // a line from a corner to the other
        | {
              kind: "text";
              x: number;
              y: number; // of the baseline
              right: number;
              text: string;
              font: string;
          }
    );

/** A colour of a computed style; null = it is transparent. */
export function paintOf(css: string): Paint | null {
    // "rgb(0, 133, 122)", "rgba(0, 133, 122, 0.2)", "color(srgb 0 0.52 0.48 / 0.2)"
    const numbers = css.match(/[\d.]+(?:e-?\d+)?/g)?.map(Number) ?? [];
    if (numbers.length < 3 || !/^(rgb|color\(srgb )/.test(css)) return null;
    const full = css.startsWith("rgb") ? 1 : 255;
    const [alpha = 1] = numbers.slice(3);
    const parts = numbers.slice(0, 3).map((part) =>
        Math.round(part * full)
            .toString(16)
            .padStart(2, "0"),
    );
    return alpha > 0 ? { colour: `#${parts.join("")}`, alpha } : null;
}

/** Adds a text. It continues the text before it if no space is between them. */
export function addText(pieces: Piece[], piece: Piece & { kind: "text" }): void {
    const last = pieces.at(-1);
    const { x, y, right, font, colour, alpha } = piece;
    const text = withEscapes(piece.text);
    if (
        last?.kind === "text" &&
        last.font === font &&
        last.colour === colour &&
        last.alpha === alpha &&
        Math.abs(last.y - y) < 0.6 &&
        Math.abs(last.right - x) < 0.7
    ) {
        last.text += text;
        last.right = right;
    } else {
        pieces.push({ ...piece, text });
    }
}

/** The size of the area from the origin that has all pieces. */
export function extentOf(pieces: readonly Piece[]): { width: number; height: number } {
    const rights = pieces.map((piece) =>
        piece.kind === "text" ? piece.right : piece.x + piece.width,
    );
    // Letters reach at most this far below the baseline.
    const bottoms = pieces.map((piece) =>
        piece.kind === "text" ? piece.y + 5 : piece.y + piece.height,
    );
    const most = (values: number[]): number =>
        values.reduce((largest, value) => Math.max(largest, value), 0);
    return { width: most(rights), height: most(bottoms) };
}

function drawPiece(context: CanvasRenderingContext2D, piece: Piece, colours: Colours): void {
    const { x, y } = piece;
    context.globalAlpha = piece.alpha;
    const colour = piece.colour === "hatch" ? hatched(context, colours) : piece.colour;
    context.fillStyle = context.strokeStyle = colour;
    if (piece.kind === "text") {
        context.font = piece.font;
        context.fillText(piece.text, x, y);
        return;
    }
    const { width, height } = piece;
    if (piece.kind === "dashes") {
        context.lineWidth = piece.stroke;
        context.setLineDash([3 * piece.stroke, 2 * piece.stroke]);
        context.beginPath();
        context.moveTo(x, y);
        context.lineTo(x + width, y + height);
        context.stroke();
        context.setLineDash([]);
    } else if (piece.kind === "frame") {
        const { stroke, radius } = piece;
        context.lineWidth = stroke;
        context.beginPath();
        context.roundRect(x + stroke / 2, y + stroke / 2, width - stroke, height - stroke, radius);
        context.stroke();
    } else if (piece.radius > 0) {
        context.beginPath();
        context.roundRect(x, y, width, height, piece.radius);
        context.fill();
    } else {
        context.fillRect(x, y, width, height);
    }
}

export function drawPieces(
    context: CanvasRenderingContext2D,
    pieces: readonly Piece[],
    colours: Colours,
): void {
    context.textAlign = "left";
    for (const piece of pieces) drawPiece(context, piece, colours);
    context.globalAlpha = 1;
}
