// Draws stacks as an icicle (callers on top) or a flame graph (callers at the bottom). Width is
// bytes. stacks.ts computes the boxes.
import { formatBytes } from "../data/format";
import type { StackBox, Stacks } from "../data/stacks";
import { type Colours, hatched } from "./colours";
import { type Layer, fitText, mono } from "./surface";

export const rowHeight = 19;

export function boxLabel(stacks: Stacks, box: StackBox, total: number, what: string): string {
    const bytes = formatBytes(Math.round(box.to - box.from));
    if (box.node === 0) return total > 0 ? `${what}  ${bytes}` : what;
    // Python frames come first because they say most, from the innermost to its callers. Native
    // frames come last.
    const python = box.chain.filter((node) => stacks.isPython(node));
    const plain = box.chain.filter((node) => !stacks.isPython(node));
    const telling = stacks.telling(plain[0] ?? 0);
    if (python.length === 0 && plain.includes(telling)) {
        plain.unshift(...plain.splice(plain.indexOf(telling), 1));
    }
    const native = plain.map((node) => stacks.label(node)).join(" ‹ ");
    const names = python.map((node) => stacks.label(node)).join(" ‹ ");
    return `${names && native ? `${names} [${native}]` : names || native}  ${bytes}`;
}

export interface StackPicture {
    boxes: StackBox[];
    total: number;
    what: string; // label of the outermost box
    marked: number; // node; <= 0 = none
    matches: Uint8Array | null;
    hatch: boolean; // whether the bytes are blocked free memory
    flame: boolean;
}

export function boxTop(box: StackBox, height: number, flame: boolean): number {
    return flame ? height - (box.depth + 1) * rowHeight : box.depth * rowHeight;
}

export function drawIcicle(
    layer: Layer,
    stacks: Stacks,
    picture: StackPicture,
    colours: Colours,
): void {
    const { context, width, height } = layer;
    const { boxes, total, matches, hatch, flame } = picture;
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, height);
    context.font = mono(11);
    context.textAlign = "left";
    const scale = width / Math.max(1, total);
    for (const box of boxes) {
        const x = box.from * scale;
        const size = (box.to - box.from) * scale;
        if (size < 0.5) continue;
        const y = boxTop(box, height, flame);
        const isMarked = picture.marked > 0 && box.chain.includes(picture.marked);
        const isMatch = matches !== null && box.node > 0 && matches[box.node] === 1;
        const own = box.chain.some((node) => stacks.isOwn(node));
        const plain = hatch ? colours.cached : colours.ground;
        context.fillStyle =
            box.node === 0
                ? colours.other
                : isMarked || isMatch
                  ? colours.mark
                  : own
                    ? hatch
                        ? colours.hole
                        : colours.use
                    : plain;
        context.fillRect(x, y, Math.max(0.5, size - 1), rowHeight - 1);
        if (box.node !== 0 && own && hatch && !isMarked && !isMatch) {
            // A hatched edge links the box to the free memory in the other pictures and keeps the
            // text legible.
            context.fillStyle = hatched(context, colours);
            context.fillRect(x, y, Math.min(5, size), rowHeight - 1);
        }
        if (size > 24) {
            const onColour =
                box.node !== 0 &&
                (isMarked || isMatch ? "mark" : own ? (hatch ? "hole" : "use") : "");
            context.fillStyle =
                onColour === "mark"
                    ? colours.onMark
                    : onColour === "hole"
                      ? colours.onHole
                      : colours.ink;
            context.fillText(
                fitText(context, boxLabel(stacks, box, total, picture.what), size - 14),
                x + 8,
                y + 13,
            );
        }
    }
}

export function hitIcicle(
    boxes: StackBox[],
    total: number,
    width: number,
    height: number,
    flame: boolean,
    x: number,
    y: number,
): StackBox | null {
    const at = (x / width) * total;
    return (
        boxes.find((box) => {
            const top = boxTop(box, height, flame);
            return y >= top && y < top + rowHeight && box.from <= at && at < box.to;
        }) ?? null
    );
}
