// Saves the pictures, one below the other: as a PNG, or as an SVG in which all but the map are
// vectors (a map can have a million rectangles).
import { hatchPattern, SvgContext, svgFile, type SvgPart } from "../draw/svg";
import type { Layer, Surface } from "../draw/surface";
import type { Page } from "./page";
import { saveBlob, saveText } from "./save";

const gap = 8;

function drawnOver(context: CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D, surface: Surface, top: number): void {
    const { base, over } = surface;
    if (base.canvas.width > 0 && base.canvas.height > 0) context.drawImage(base.canvas, 0, top);
    if (over.canvas.width > 0 && over.canvas.height > 0) context.drawImage(over.canvas, 0, top);
}

export function savePng(page: Page): void {
    const surfaces: Surface[] = [page.chart, page.map, page.segments, page.panel.surface];
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(...surfaces.map((surface) => surface.base.canvas.width));
    canvas.height = surfaces.reduce((sum, surface) => sum + surface.base.canvas.height + gap, 0);
    const context = canvas.getContext("2d")!;
    context.fillStyle = page.colours.paper;
    context.fillRect(0, 0, canvas.width, canvas.height);
    let top = 0;
    for (const surface of surfaces) {
        drawnOver(context, surface, top);
        top += surface.base.canvas.height + gap;
    }
    canvas.toBlob((blob) => {
        if (blob) saveBlob(blob, "fragtrace.png");
    });
}

function mapImage(surface: Surface): string {
    const canvas = document.createElement("canvas");
    canvas.width = surface.base.canvas.width;
    canvas.height = surface.base.canvas.height;
    drawnOver(canvas.getContext("2d")!, surface, 0);
    const { width, height } = surface.base;
    return `<image width="${width}" height="${height}" href="${canvas.toDataURL("image/png")}"/>`;
}

export function saveSvg(page: Page): void {
    const { colours, chart, map, segments, panel } = page;
    const parts: SvgPart[] = [];
    let top = 0;
    const add = (surface: Surface, content: string): void => {
        parts.push({ y: top, content });
        top += surface.base.height + gap;
    };
    const vector = (name: string, surface: Surface, paint: (layer: Layer) => void): void => {
        const context = new SvgContext(name);
        paint({ ...surface.base, context: context as unknown as CanvasRenderingContext2D });
        add(surface, context.text);
    };
    vector("chart", chart, (layer) => page.paintTime(layer, layer.context));
    add(map, mapImage(map));
    vector("segments", segments, (layer) => void page.paintHeap(layer));
    vector("stacks", panel.surface, (layer) => panel.paint(layer));
    const width = Math.max(chart.base.width, map.base.width, segments.base.width);
    const file = svgFile(width, top, `${page.header.title} - fragtrace`, colours.paper, hatchPattern(colours.hole, colours.hatch), parts);
    saveText(file, "image/svg+xml", "fragtrace.svg");
}
