// Saves the page or one of its panels as on the screen, as PNG or SVG. Pictures with up to a
// million rectangles are images even in the SVG.
import { withEscapes } from "../data/escapes";
import { processTitle } from "../data/ranks";
import { drawPieces, extentOf } from "../draw/pieces";
import { hatchPattern, SvgContext, type SvgPart, svgFile } from "../draw/svg";
import { font } from "../draw/surface";
import { button, byId, el, showDialog } from "./dom";
import { saveBlob, saveText } from "./save";
import type { PageView, Picture } from "./view";
import { type ReadCanvas, readPanel, type ReadPanel } from "./wholepanel";

const border = 12;
const lineHeight = 20;
const narrowest = 360; // room for the lines above a panel

// Panels about all processes, or both runs: the verdict of the open one does not belong to them.
const ofAll = "#job, #heat-panel, #ranks, #comparison, #runs-box, .of-all";

interface Line {
    text: string;
    font: string;
}

/** What is saved: a panel, and the lines above it. */
interface Sheet {
    width: number;
    height: number;
    lines: Line[];
    panel: ReadPanel;
    top: number; // of the panel
}

function wrapped({ text, font: look }: Line, room: number): Line[] {
    const context = document.createElement("canvas").getContext("2d")!;
    context.font = look;
    const [first, ...words] = withEscapes(text).split(/\s+/);
    const lines = [first];
    for (const word of words) {
        const longer = `${lines[lines.length - 1]} ${word}`;
        if (context.measureText(longer).width <= room) lines[lines.length - 1] = longer;
        else lines.push(word);
    }
    return lines.map((line) => ({ text: line, font: look }));
}

/** Says what was recorded, and the verdict, unless the panel itself has its sentence. */
function linesAbove({ header, model, view }: PageView, panel: HTMLElement): Line[] {
    const card = model.head.cards[view.card];
    const process = [processTitle(header, model.head), model.head.name];
    const own = !panel.matches(ofAll);
    const bold = own ? [card?.heading, ...process] : [header.title];
    const sentence = own && !panel.matches("#app, #verdict") ? (card?.sentence ?? "") : "";
    return [
        { text: bold.filter((part) => part).join(" · "), font: font(14, "bold") },
        { text: sentence, font: font(12) },
    ].filter(({ text }) => text !== "");
}

function sheetOf(page: PageView, element: HTMLElement): Sheet {
    const panel = readPanel(element);
    const { width, height } = extentOf(panel.pieces);
    const wide = Math.max(narrowest, panel.width, width);
    const lines = linesAbove(page, element).flatMap((line) => wrapped(line, wide));
    const top = border + lines.length * lineHeight + 4;
    return {
        width: wide + 2 * border,
        height: top + Math.max(panel.height, height) + border,
        lines,
        panel,
        top,
    };
}

/** Draws everything except the canvases. */
function drawSheet(context: CanvasRenderingContext2D, page: PageView, sheet: Sheet): void {
    context.textAlign = "left";
    context.fillStyle = page.colours.ink;
    sheet.lines.forEach(({ text, font: look }, at) => {
        context.font = look;
        context.fillText(text, border, border + 13 + at * lineHeight);
    });
}

// "fragtrace-what-if"
function fileName(name: string): string {
    const words =
        name
            .replace(/^the |:.*/g, "")
            .toLowerCase()
            .match(/[a-z0-9]+/g) ?? [];
    return ["fragtrace", ...words].join("-").slice(0, 60);
}

// What browsers can draw: a side of a canvas, and its area, in pixels.
const longestSide = 32_000;
const largestArea = 64e6;

function savePng(page: PageView, element: HTMLElement, name: string): void {
    const sheet = sheetOf(page, element);
    const { width, height, panel, top } = sheet;
    const ratio = Math.min(
        devicePixelRatio || 1,
        longestSide / Math.max(width, height),
        Math.sqrt(largestArea / (width * height)),
    );
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(width * ratio);
    canvas.height = Math.ceil(height * ratio);
    const context = canvas.getContext("2d")!;
    context.scale(ratio, ratio);
    context.fillStyle = page.colours.paper;
    context.fillRect(0, 0, width, height);
    drawSheet(context, page, sheet);
    context.translate(border, top);
    drawPieces(context, panel.pieces, page.colours);
    for (const part of panel.canvases) {
        if (part.canvas.width === 0 || part.canvas.height === 0) continue;
        context.drawImage(part.canvas, part.x, part.y, part.width, part.height);
    }
    canvas.toBlob((blob) => {
        if (blob) saveBlob(blob, `${fileName(name)}.png`);
        else page.say("the browser cannot draw a picture of this size: save it as SVG");
    });
}

function asImage({ surface }: Picture): string {
    const { width, height, canvas: drawn, ratio } = surface.base;
    const canvas = document.createElement("canvas");
    canvas.width = drawn.width;
    canvas.height = drawn.height;
    const context = canvas.getContext("2d")!;
    context.scale(ratio, ratio);
    for (const layer of [surface.base, surface.over]) {
        if (!layer || layer.canvas.width === 0 || layer.canvas.height === 0) continue;
        context.drawImage(layer.canvas, 0, 0, width, height);
    }
    return `<image width="${width}" height="${height}" href="${canvas.toDataURL("image/png")}"/>`;
}

function asVectors(picture: Picture, name: string): string {
    if (!picture.paint) return asImage(picture);
    const context = new SvgContext(name);
    const canvas = context as unknown as CanvasRenderingContext2D;
    picture.paint({ ...picture.surface.base, context: canvas });
    return context.text;
}

function saveSvg(page: PageView, element: HTMLElement, name: string): void {
    const { colours } = page;
    const sheet = sheetOf(page, element);
    const { panel, top } = sheet;
    const drawn = (name: string, draw: (context: CanvasRenderingContext2D) => void): string => {
        const context = new SvgContext(name);
        draw(context as unknown as CanvasRenderingContext2D);
        return context.text;
    };
    const pictures = panel.canvases.flatMap(({ canvas, x, y }: ReadCanvas, at): SvgPart[] => {
        const picture = page.pictures.find(({ surface }) => surface.base.canvas === canvas);
        // Others are a picture's upper layer, which is drawn with it.
        if (!picture || canvas.width === 0 || canvas.height === 0) return [];
        return [{ x: border + x, y: top + y, content: asVectors(picture, `picture${at}`) }];
    });
    const file = svgFile(
        sheet.width,
        sheet.height,
        `${page.header.title} - fragtrace`,
        colours.paper,
        hatchPattern(colours.hole, colours.hatch),
        [
            { x: 0, y: 0, content: drawn("lines", (to) => drawSheet(to, page, sheet)) },
            {
                x: border,
                y: top,
                content: drawn("panel", (to) => drawPieces(to, panel.pieces, colours)),
            },
            ...pictures,
        ],
    );
    saveText(file, "image/svg+xml", `${fileName(name)}.svg`);
}

const formats = { PNG: savePng, SVG: saveSvg };
export type Format = keyof typeof formats;

/** Saves the whole page. */
export function savePage(page: PageView, format: Format): void {
    formats[format](page, byId("app"), "");
}

/** Buttons that save a panel as PNG and as SVG. */
export function formatButtons(page: PageView, panel: HTMLElement, name: string): HTMLElement[] {
    return (Object.keys(formats) as Format[]).map((format) => {
        const save = (): void => formats[format](page, panel, name);
        const element = button(format, `save ${name} as ${format}`, save);
        element.setAttribute("aria-label", `save ${name} as ${format}`);
        return element;
    });
}

/** A button that offers to save a panel. `name` is that of the panel, in words. */
export function saveButton(page: PageView, panel: HTMLElement, name: string): HTMLElement {
    const [png, svg] = ["PNG", "SVG"] as const;
    const element = button("save", `save this panel as ${png} or ${svg}`, () =>
        showDialog(
            el("h2", {}, `Save: ${name}`),
            el("p", {}, ...formatButtons(page, panel, name).flatMap((one) => [one, " "])),
        ),
    );
    element.setAttribute("aria-label", `save ${name}`);
    element.className = "save";
    return element;
}

/** Adds the buttons of the panels whose head stays. The others add theirs when they are drawn. */
export function connectSaving(page: PageView): void {
    for (const id of [
        "time",
        "addresses",
        "stacks-panel",
        "segments-panel",
        "heat-panel",
        "runs-box",
        "ranks",
        "culprits",
        "whatif",
    ]) {
        const panel = byId(id);
        const bar = panel.querySelector(":is(.bar, .headline, .buttons)")!;
        const name = panel.querySelector("h2, h3")?.textContent ?? id;
        bar.append(saveButton(page, panel, id === "culprits" ? "the answer" : name));
    }
}
