// Saves the pictures, one below the other, as a PNG.
import type { Surface } from "../draw/surface";
import type { Page } from "./page";

export function saveImage(page: Page): void {
    const surfaces: Surface[] = [page.chart, page.map, page.segments];
    const gap = 8;
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(...surfaces.map((surface) => surface.base.canvas.width));
    canvas.height = surfaces.reduce((sum, surface) => sum + surface.base.canvas.height + gap, 0);
    const context = canvas.getContext("2d")!;
    context.fillStyle = page.colours.paper;
    context.fillRect(0, 0, canvas.width, canvas.height);
    let top = 0;
    for (const { base, over } of surfaces) {
        context.drawImage(base.canvas, 0, top);
        if (over.canvas.width > 0 && over.canvas.height > 0) context.drawImage(over.canvas, 0, top);
        top += base.canvas.height + gap;
    }
    canvas.toBlob((blob) => {
        if (!blob) return;
        const link = document.createElement("a");
        link.href = URL.createObjectURL(blob);
        link.download = "fragtrace.png";
        link.click();
        URL.revokeObjectURL(link.href);
    });
}
