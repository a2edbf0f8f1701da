// Stacks as an icicle: callers on top, width = bytes. Draws boxes that the data folder laid out.
import { formatBytes } from "../data/format";
import type { StackBox, Stacks } from "../data/stacks";
import { type Colours, hatched } from "./colours";
import { type Layer, fitText, mono } from "./surface";

export const rowHeight = 19;

export function boxLabel(stacks: Stacks, box: StackBox, total: number, what: string): string {
    const bytes = formatBytes(Math.round(box.to - box.from));
    if (box.node === 0) return total > 0 ? `${what}  ${bytes}` : what;
    // The innermost Python frames say most: they come first, their callers after, native ones last.
    const python = box.chain.filter((node) => stacks.isPython(node));
    const plain = box.chain.filter((node) => !stacks.isPython(node));
    const telling = stacks.telling(plain[0] ?? 0);
    if (python.length === 0 && plain.includes(telling)) plain.unshift(...plain.splice(plain.indexOf(telling), 1));
    const native = plain.map((node) => stacks.label(node)).join(" ‹ ");
    const names = python.map((node) => stacks.label(node)).join(" ‹ ");
    return `${names && native ? `${names} [${native}]` : names || native}  ${bytes}`;
}

export function drawIcicle(
    layer: Layer, stacks: Stacks, boxes: StackBox[], total: number, what: string, marked: number,
    matches: Uint8Array | null, holes: boolean, colours: Colours,
): void {
    const { context, width, height } = layer;
    context.fillStyle = colours.paper;
    context.fillRect(0, 0, width, height);
    context.font = mono(11);
    context.textAlign = "left";
    const scale = width / Math.max(1, total);
    for (const box of boxes) {
        const x = box.from * scale;
        const size = (box.to - box.from) * scale;
        if (size < 0.5) continue;
        const y = box.depth * rowHeight;
        const isMarked = marked > 0 && box.chain.includes(marked);
        const isMatch = matches !== null && box.node > 0 && matches[box.node] === 1;
        const python = box.chain.some((node) => stacks.isPython(node));
        context.fillStyle = box.node === 0 ? colours.other : isMarked || isMatch ? colours.mark : python ? (holes ? colours.hole : colours.use) : holes ? colours.cached : colours.ground;
        if (box.node !== 0 && python && holes && !isMarked && !isMatch) {
            // A hatched edge ties the box to the holes of the other pictures and leaves text legible.
            context.fillRect(x, y, Math.max(0.5, size - 1), rowHeight - 1);
            context.fillStyle = hatched(context, colours);
            context.fillRect(x, y, Math.min(5, size), rowHeight - 1);
        } else {
            context.fillRect(x, y, Math.max(0.5, size - 1), rowHeight - 1);
        }
        if (size > 24) {
            const dark = box.node !== 0 && (holes || isMarked || isMatch) && python;
            context.fillStyle = dark ? "#1b1f27" : colours.ink;
            context.fillText(fitText(context, boxLabel(stacks, box, total, what), size - 14), x + 8, y + 13);
        }
    }
}

export function hitIcicle(boxes: StackBox[], total: number, width: number, x: number, y: number): StackBox | null {
    const at = (x / width) * total;
    const depth = Math.floor(y / rowHeight);
    return boxes.find((box) => box.depth === depth && box.from <= at && at < box.to) ?? null;
}
