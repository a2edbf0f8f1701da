// A canvas with the size of its box in device pixels, and a second canvas above it for what moves
// with the cursor. Drawing uses CSS pixels.

export interface Layer {
    canvas: HTMLCanvasElement;
    context: CanvasRenderingContext2D;
    width: number; // CSS pixels
    height: number;
    ratio: number;
}

function makeLayer(canvas: HTMLCanvasElement, opaque: boolean): Layer {
    const context = canvas.getContext("2d", { alpha: !opaque })!;
    return { canvas, context, width: 0, height: 0, ratio: 1 };
}

function resize(layer: Layer, width: number, height: number): void {
    const ratio = window.devicePixelRatio || 1;
    const across = Math.max(1, Math.round(width * ratio));
    const down = Math.max(1, Math.round(height * ratio));
    if (layer.canvas.width !== across || layer.canvas.height !== down) {
        layer.canvas.width = across;
        layer.canvas.height = down;
    }
    layer.width = width;
    layer.height = height;
    layer.ratio = ratio;
    layer.context.setTransform(ratio, 0, 0, ratio, 0, 0);
}

export class Surface {
    readonly base: Layer;
    readonly over: Layer;

    /**
     * `box` contains one canvas with a name. The second canvas is added here and hidden from screen
     * readers.
     */
    constructor(readonly box: HTMLElement) {
        const canvas = box.querySelector("canvas")!;
        const above = document.createElement("canvas");
        above.className = "over";
        above.setAttribute("aria-hidden", "true");
        box.append(above);
        this.base = makeLayer(canvas, true);
        this.over = makeLayer(above, false);
    }

    /** Whether the box's size differs from the last picture's. */
    grew(): boolean {
        const { clientWidth, clientHeight } = this.box;
        return clientWidth !== this.base.width || clientHeight !== this.base.height;
    }

    /** Adopts the box's size. Returns whether there is something to draw on. */
    fit(): boolean {
        const { clientWidth, clientHeight } = this.box;
        resize(this.base, clientWidth, clientHeight);
        resize(this.over, clientWidth, clientHeight);
        return clientWidth > 0 && clientHeight > 0;
    }

    clearOver(): CanvasRenderingContext2D {
        this.over.context.clearRect(0, 0, this.over.width, this.over.height);
        return this.over.context;
    }
}

export const font = (size: number, weight = ""): string =>
    `${weight} ${size}px system-ui, "DejaVu Sans", sans-serif`.trim();
export const mono = (size: number): string =>
    `${size}px ui-monospace, "DejaVu Sans Mono", monospace`;

/** Writes a text in place of a picture: why there is none yet. */
export function drawNotice(
    layer: Layer,
    text: string,
    colours: { paper: string; faint: string },
): void {
    const { context, width, height } = layer;
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, height);
    context.font = font(12);
    context.textAlign = "left";
    context.fillStyle = colours.faint;
    context.fillText(text, 4, 20);
}

const advances = new Map<string, Map<string, number>>();

/**
 * Width of a text in a `mono` font, where all letters are equally wide. Measuring each label would
 * take longer than drawing it.
 */
function monoWidth(context: CanvasRenderingContext2D, text: string): number {
    let known = advances.get(context.font);
    if (!known) advances.set(context.font, (known = new Map<string, number>()));
    let width = 0;
    for (const letter of text) {
        const key = letter >= " " && letter <= "~" ? "0" : letter;
        let advance = known.get(key);
        if (advance === undefined) known.set(key, (advance = context.measureText(key).width));
        width += advance;
    }
    return width;
}

/** `text` shortened with an ellipsis so that it fits. */
export function fitText(context: CanvasRenderingContext2D, text: string, width: number): string {
    const widthOf = context.font.includes("monospace")
        ? monoWidth
        : (_: CanvasRenderingContext2D, part: string): number => context.measureText(part).width;
    if (widthOf(context, text) <= width) return text;
    let low = 0;
    let high = text.length;
    while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (widthOf(context, text.slice(0, middle) + "…") <= width) low = middle;
        else high = middle - 1;
    }
    return low > 1 ? text.slice(0, low) + "…" : "";
}
