// Draws stacks as boxes in rows: callers on top (icicle, bottom-up trees) or below (flame graph),
// or the callers of a frame above it and what it calls below it. Width is bytes. stacks.ts computes
// the boxes, stackplaces.ts their rows.
import { formatBytes } from "../data/format";
import type { StackBox, Stacks } from "../data/stacks";
import { type Colours, hatched } from "./colours";
import { type Layer, fitText, mono } from "./surface";

export const rowHeight = 19;

/** A box with its place in the picture. */
export interface PlacedBox extends StackBox {
    stacks: Stacks; // the tree of its nodes
    top: number; // pixels
    note: string; // follows its label
}

export function boxLabel(box: PlacedBox): string {
    const { stacks, note } = box;
    const bytes = formatBytes(Math.round(box.to - box.from));
    if (box.node === 0) return box.to > box.from ? `${note}  ${bytes}` : note;
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
    return `${names && native ? `${names} [${native}]` : names || native}  ${bytes}${note}`;
}

export interface StackPicture {
    boxes: PlacedBox[];
    total: number;
    isMarked: (box: PlacedBox) => boolean;
    isMatch: (box: PlacedBox) => boolean;
    hatch: boolean; // whether the bytes are blocked free memory
}

export function drawIcicle(layer: Layer, picture: StackPicture, colours: Colours): void {
    const { context, width, height } = layer;
    const { boxes, total, hatch } = picture;
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, height);
    context.font = mono(11);
    context.textAlign = "left";
    const scale = width / Math.max(1, total);
    for (const box of boxes) {
        const x = box.from * scale;
        const size = (box.to - box.from) * scale;
        if (size < 0.5) continue;
        const y = box.top;
        const isMarked = picture.isMarked(box);
        const isMatch = box.node > 0 && picture.isMatch(box);
        const own = box.chain.some((node) => box.stacks.isOwn(node));
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
            context.fillText(fitText(context, boxLabel(box), size - 14), x + 8, y + 13);
        }
    }
}

export function hitIcicle(
    boxes: PlacedBox[],
    total: number,
    width: number,
    x: number,
    y: number,
): PlacedBox | null {
    const at = (x / width) * total;
    return (
        boxes.find(
            ({ top, from, to }) => y >= top && y < top + rowHeight && from <= at && at < to,
        ) ?? null
    );
}
