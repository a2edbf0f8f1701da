// Reads a panel of the page as boxes and texts with their places, to save it as a picture. The
// browser has laid the panel out, so a saved panel looks as on the page.
import { addText, type Paint, paintOf, type Piece } from "../draw/pieces";

export interface ReadCanvas {
    canvas: HTMLCanvasElement;
    x: number;
    y: number;
    width: number;
    height: number;
}

/** Places are relative to the upper left corner of the panel. */
export interface ReadPanel {
    width: number;
    height: number;
    pieces: Piece[];
    canvases: ReadCanvas[];
}

/**
 * Reads with the panel laid out in full: nothing in it scrolls, and it has no controls. The page is
 * as before when this returns, so no frame shows the difference, and no panel scrolls back.
 */
function whileWhole<T>(panel: HTMLElement, read: () => T): T {
    // The pictures keep the size in which they were drawn.
    const fixed = [panel, ...panel.querySelectorAll<HTMLElement>(".box")].map(
        (place): [HTMLElement, string, DOMRect] => [
            place,
            place.style.cssText,
            place.getBoundingClientRect(),
        ],
    );
    for (const [place, , { width, height }] of fixed) {
        place.style.setProperty("width", `${width}px`, "important");
        if (place !== panel) place.style.setProperty("height", `${height}px`, "important");
    }
    panel.classList.add("saving");
    try {
        return read();
    } finally {
        panel.classList.remove("saving");
        for (const [place, style] of fixed) place.style.cssText = style;
    }
}

const sides = ["Top", "Right", "Bottom", "Left"] as const;

const marks: Record<string, string> = {
    disc: "•",
    circle: "◦",
    "disclosure-open": "▾",
    "disclosure-closed": "▸",
};

class Reader {
    readonly pieces: Piece[] = [];
    readonly canvases: ReadCanvas[] = [];
    private readonly measuring = document.createElement("canvas").getContext("2d")!;
    private readonly range = document.createRange();

    constructor(
        private readonly left: number,
        private readonly top: number,
    ) {}

    read(element: Element, opacity = 1): void {
        const style = getComputedStyle(element);
        if (style.display === "none" || style.clipPath !== "none") return;
        if (element instanceof HTMLCanvasElement) {
            this.canvases.push({ canvas: element, ...this.placeOf(element) });
            return;
        }
        const alpha = opacity * Number(style.opacity);
        if (style.display !== "contents" && style.visibility === "visible") {
            this.box(element, style, alpha);
            this.mark(element, style, alpha);
        }
        if (element instanceof HTMLSelectElement) {
            const { left, top, right, bottom } = element.getBoundingClientRect();
            const [option] = element.selectedOptions;
            if (option) this.put(option.text, { left, top, right, bottom }, style, alpha);
            return;
        }
        const closed = element instanceof HTMLDetailsElement && !element.open;
        for (const child of element.childNodes) {
            if (closed && !(child instanceof Element && child.matches("summary"))) continue;
            if (child instanceof Text) this.text(child, style, alpha);
            else if (child instanceof Element) this.read(child, alpha);
        }
    }

    private placeOf(of: Element): { x: number; y: number; width: number; height: number } {
        const { left, top, width, height } = of.getBoundingClientRect();
        return { x: left - this.left, y: top - this.top, width, height };
    }

    /** Like browsers: neighbouring boxes have a common edge. */
    private onPixels(of: Element): { x: number; y: number; width: number; height: number } {
        const { x, y, width, height } = this.placeOf(of);
        const along = (from: number, size: number): [number, number] => {
            const start = Math.round(from);
            return [start, size === 0 ? 0 : Math.max(1, Math.round(from + size) - start)];
        };
        const [[left, wide], [top, high]] = [along(x, width), along(y, height)];
        return { x: left, y: top, width: wide, height: high };
    }

    // ---- boxes ----------------------------------------------------------------------------------

    private box(element: Element, style: CSSStyleDeclaration, opacity: number): void {
        const area = this.onPixels(element);
        if (area.width === 0 || area.height === 0) return;
        const faded = ({ colour, alpha }: Paint): Paint => ({ colour, alpha: alpha * opacity });
        const borders = sides.map((side) => {
            const width = parseFloat(style[`border${side}Width`]);
            const paint = paintOf(style[`border${side}Color`]);
            const kind = style[`border${side}Style`];
            return paint && width > 0 && kind !== "none" && kind !== "hidden"
                ? { ...faded(paint), width, kind }
                : null;
        });
        const [first] = borders;
        const same = borders.every((one) => JSON.stringify(one) === JSON.stringify(first));
        const radius = same ? parseFloat(style.borderTopLeftRadius) : 0;
        const paint = style.backgroundImage.startsWith("repeating-linear-gradient")
            ? { colour: "hatch", alpha: 1 }
            : paintOf(style.backgroundColor);
        if (paint) this.pieces.push({ kind: "box", ...area, radius, ...faded(paint) });
        if (same && first && radius > 0) {
            this.pieces.push({ ...first, kind: "frame", ...area, radius, stroke: first.width });
            return;
        }
        const { x, y, width, height } = area;
        borders.forEach((border, side) => {
            if (!border) return;
            const { colour, alpha, width: stroke } = border;
            const across = side % 2 === 0;
            const line = {
                x: side === 1 ? x + width - stroke : x,
                y: side === 2 ? y + height - stroke : y,
                width: across ? width : stroke,
                height: across ? stroke : height,
            };
            if (border.kind === "dashed") {
                const middle = across
                    ? { ...line, y: line.y + stroke / 2, height: 0 }
                    : { ...line, x: line.x + stroke / 2, width: 0 };
                this.pieces.push({ kind: "dashes", ...middle, stroke, colour, alpha });
            } else {
                this.pieces.push({ kind: "box", ...line, radius: 0, colour, alpha });
            }
        });
    }

    // ---- texts ----------------------------------------------------------------------------------

    /** How far letters reach above and below the baseline. */
    private reach(style: CSSStyleDeclaration): [font: string, above: number, below: number] {
        const font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
        if (this.measuring.font !== font) this.measuring.font = font;
        const { fontBoundingBoxAscent, fontBoundingBoxDescent } = this.measuring.measureText("x");
        return [font, fontBoundingBoxAscent, fontBoundingBoxDescent];
    }

    private put(
        text: string,
        { left, top, right, bottom }: Pick<DOMRect, "left" | "top" | "right" | "bottom">,
        style: CSSStyleDeclaration,
        opacity: number,
    ): void {
        const [font, above, below] = this.reach(style);
        const paint = paintOf(style.color);
        if (!paint) return;
        addText(this.pieces, {
            kind: "text",
            x: left - this.left,
            y: (top + bottom + above - below) / 2 - this.top,
            right: right - this.left,
            text,
            font,
            colour: paint.colour,
            alpha: paint.alpha * opacity,
        });
    }

    /** A text that is not in the document, in the first line of an element. */
    private line(
        element: Element,
        text: string,
        style: CSSStyleDeclaration,
        opacity: number,
        outside = false,
    ): void {
        const { left, top } = element.getBoundingClientRect();
        const [, above, below] = this.reach(style);
        const width = this.measuring.measureText(text).width;
        const x = outside
            ? left - width - 5
            : left + parseFloat(style.paddingLeft) + parseFloat(style.borderLeftWidth);
        const height = parseFloat(style.lineHeight) || above + below;
        const y = top + parseFloat(style.paddingTop) + parseFloat(style.borderTopWidth);
        this.put(text, { left: x, right: x + width, top: y, bottom: y + height }, style, opacity);
    }

    // The number or sign of an item of a list, and the name of a cell (page.css).
    private mark(element: Element, style: CSSStyleDeclaration, opacity: number): void {
        if (style.display === "list-item") {
            const type = style.listStyleType;
            const text =
                type === "decimal" && element instanceof HTMLLIElement
                    ? `${element.value}.`
                    : (marks[type] ?? "");
            if (text) this.line(element, text, style, opacity, !type.startsWith("disclosure"));
        }
        if (element instanceof HTMLElement && element.dataset.label !== undefined) {
            const before = getComputedStyle(element, "::before");
            const shown = before.display !== "none" && before.content !== "none";
            if (shown) this.line(element, element.dataset.label, before, opacity);
        }
    }

    private text(node: Text, style: CSSStyleDeclaration, opacity: number): void {
        const { data } = node;
        if (style.visibility !== "visible" || !/\S/.test(data)) return;
        const rectsOf = (from: number, to: number): DOMRect[] => {
            this.range.setStart(node, from);
            this.range.setEnd(node, to);
            return [...this.range.getClientRects()].filter(({ width }) => width > 0);
        };
        const exact = style.whiteSpace.startsWith("pre");
        // A line of the text begins and ends with a letter. Tabs are gaps.
        const parts = data.matchAll(exact ? /\S(?:[^\t\n]*\S)?/g : /\S+/g);
        let run: { from: number; to: number; rect: DOMRect; right: number } | null = null;
        const finish = (): void => {
            if (!run) return;
            const text = data.slice(run.from, run.to);
            const { left, top, bottom } = run.rect;
            const place = { left, top, bottom, right: run.right };
            this.put(exact ? text : text.replace(/\s+/g, " "), place, style, opacity);
            run = null;
        };
        const add = (from: number, to: number, join: boolean): void => {
            const rects = rectsOf(from, to);
            if (rects.length > 1 && to - from > 1) {
                // It is broken between two letters.
                for (let at = from, next: number; at < to; at = next) {
                    next = at + String.fromCodePoint(data.codePointAt(at)!).length;
                    add(at, next, join || at > from);
                }
                return;
            }
            const [rect] = rects;
            if (!rect) return;
            if (run && join && Math.abs(run.rect.top - rect.top) < 2) {
                run.to = to;
                run.right = rect.right;
            } else {
                finish();
                run = { from, to, rect, right: rect.right };
            }
        };
        for (const part of parts) add(part.index, part.index + part[0].length, !exact);
        finish();
    }
}

/** A whole panel: also what it scrolls to, without its controls. */
export function readPanel(panel: HTMLElement): ReadPanel {
    return whileWhole(panel, () => {
        const { left, top, width, height } = panel.getBoundingClientRect();
        const reader = new Reader(left, top);
        reader.read(panel);
        const { pieces, canvases } = reader;
        return { width, height, pieces, canvases };
    });
}
