// Saves the pictures and the panels that go with them as on the page, each with its title, below
// the verdict's sentence, as PNG or SVG. The maps are images even in the SVG, because they can have
// a million rectangles.
import { withEscapes } from "../data/escapes";
import { processTitle } from "../data/ranks";
import { hatched } from "../draw/colours";
import { hatchPattern, SvgContext, svgFile } from "../draw/svg";
import { fitText, font } from "../draw/surface";
import { drawBlocks, layoutBlocks, type TextLayout } from "../draw/textblocks";
import { button, el, showDialog } from "./dom";
import { saveBlob, saveText } from "./save";
import type { PageView, Picture, TextPanel } from "./view";

const border = 12;
const columnGap = 14;
const titleHeight = 22;

interface Place {
    picture: Picture;
    x: number;
    y: number;
}
interface TextPlace {
    panel: TextPanel;
    layout: TextLayout;
    x: number;
    y: number;
}
interface Sheet {
    width: number;
    height: number;
    places: Place[];
    texts: TextPlace[];
}

const narrowest = 360; // of a column that has texts, but no picture
const narrowestAlone = 700; // room for the verdict above one picture

/** Where the pictures and the texts go, in CSS pixels. With `only` it is that picture alone. */
function sheetOf({ pictures: all, colours }: PageView, only?: Picture): Sheet {
    const pictures = only ? [only] : all;
    const places: Place[] = [];
    const texts: TextPlace[] = [];
    const measuring = document.createElement("canvas").getContext("2d")!;
    const column = (
        place: Picture["place"],
        x: number,
        top: number,
    ): [right: number, down: number] => {
        const parts = pictures.filter((part) => part.place === place);
        const widths = parts.map((part) => ("surface" in part ? part.surface.base.width : 0));
        const widest = Math.max(0, ...widths);
        let y = top;
        let right = x + widest;
        for (const part of parts) {
            if ("surface" in part) {
                const { width, height } = part.surface.base;
                if (width === 0 || height === 0) continue; // not on the page
                places.push({ picture: part, x, y: y + titleHeight });
                y += titleHeight + height;
            } else {
                const width = widest || narrowest;
                const layout = layoutBlocks(measuring, part.blocks, width, colours);
                texts.push({ panel: part, layout, x, y: y + titleHeight });
                y += titleHeight + layout.height;
                right = x + width;
            }
        }
        return [right, y];
    };
    const [wide, top] = column("top", border, border + 2 * titleHeight);
    const [left, down] = column("left", border, top);
    const [right, lower] = column("right", left > border ? left + columnGap : border, top);
    return {
        width: Math.max(wide, right, only ? narrowestAlone : 0) + border,
        height: Math.max(down, lower) + border,
        places,
        texts,
    };
}

/** Draws everything except the pictures: the verdict, titles, legends, and panels of text. */
function drawTexts(context: CanvasRenderingContext2D, page: PageView, sheet: Sheet): void {
    const { colours, header, model, view } = page;
    const room = sheet.width - 2 * border;
    const card = model.head.cards[view.card];
    context.textAlign = "left";
    context.fillStyle = colours.ink;
    context.font = font(14, "bold");
    context.fillText(
        fitText(
            context,
            [card?.heading, processTitle(header, model.head), model.head.name]
                .filter((part) => part)
                .join(" · "),
            room,
        ),
        border,
        border + 13,
    );
    context.font = font(12);
    context.fillText(
        fitText(context, card?.sentence ?? "", room),
        border,
        border + titleHeight + 11,
    );
    for (const { picture, x, y } of sheet.places) {
        const { title, legend, surface } = picture;
        context.font = font(12, "bold");
        context.fillStyle = colours.ink;
        context.fillText(title, x, y - 7);
        let at = x + context.measureText(title).width + 14;
        context.font = font(11);
        for (const { colour, text } of legend) {
            const size = context.measureText(text).width;
            if (at + 15 + size > x + surface.base.width) break;
            context.strokeStyle = colours.faint;
            context.fillStyle =
                colour === "hatch"
                    ? hatched(context, colours)
                    : colour === "line" || colour === "burst"
                      ? colours.faint
                      : colour;
            if (colour === "line") context.fillRect(at, y - 12, 11, 1.5);
            else if (colour === "burst") context.fillRect(at + 4, y - 15, 3, 8);
            else if (colour === "emptied") context.strokeRect(at + 2, y - 14, 7, 7);
            else context.fillRect(at, y - 16, 11, 11);
            context.fillStyle = colours.faint;
            context.fillText(text, at + 15, y - 7);
            at += 15 + size + 12;
        }
    }
    for (const { panel, layout, x, y } of sheet.texts) {
        context.font = font(12, "bold");
        context.fillStyle = colours.ink;
        context.fillText(withEscapes(panel.title), x, y - 7);
        drawBlocks(context, layout, x, y);
    }
}

function drawnOver(
    context: CanvasRenderingContext2D,
    surface: Picture["surface"],
    x: number,
    y: number,
): void {
    const { width, height } = surface.base;
    for (const layer of [surface.base, surface.over]) {
        if (!layer || layer.canvas.width === 0 || layer.canvas.height === 0) continue;
        context.drawImage(layer.canvas, x, y, width, height);
    }
}

// "fragtrace-memory-over-time"
function fileName(only?: Picture): string {
    const name =
        only?.title
            .replace(/:.*/, "")
            .toLowerCase()
            .match(/[a-z]+/g) ?? [];
    return ["fragtrace", ...name].join("-");
}

export function savePng(page: PageView, only?: Picture): void {
    const sheet = sheetOf(page, only);
    const ratio = devicePixelRatio || 1;
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(sheet.width * ratio);
    canvas.height = Math.ceil(sheet.height * ratio);
    const context = canvas.getContext("2d")!;
    context.scale(ratio, ratio);
    context.fillStyle = page.colours.paper;
    context.fillRect(0, 0, sheet.width, sheet.height);
    for (const { picture, x, y } of sheet.places) drawnOver(context, picture.surface, x, y);
    drawTexts(context, page, sheet);
    canvas.toBlob((blob) => {
        if (blob) saveBlob(blob, `${fileName(only)}.png`);
    });
}

function asImage({ surface }: Picture): string {
    const { width, height, canvas: drawn } = surface.base;
    const canvas = document.createElement("canvas");
    canvas.width = drawn.width;
    canvas.height = drawn.height;
    const context = canvas.getContext("2d")!;
    context.scale(surface.base.ratio, surface.base.ratio);
    drawnOver(context, surface, 0, 0);
    return `<image width="${width}" height="${height}" href="${canvas.toDataURL("image/png")}"/>`;
}

export function saveSvg(page: PageView, only?: Picture): void {
    const { colours } = page;
    const sheet = sheetOf(page, only);
    const vectors = (picture: Picture, name: string): string => {
        if (!picture.paint) return asImage(picture);
        const context = new SvgContext(name);
        const canvas = context as unknown as CanvasRenderingContext2D;
        picture.paint({ ...picture.surface.base, context: canvas });
        return context.text;
    };
    const texts = new SvgContext("texts");
    drawTexts(texts as unknown as CanvasRenderingContext2D, page, sheet);
    const parts = sheet.places.map(({ picture, x, y }, at) => ({
        x,
        y,
        content: vectors(picture, `picture${at}`),
    }));
    const file = svgFile(
        sheet.width,
        sheet.height,
        `${page.header.title} - fragtrace`,
        colours.paper,
        hatchPattern(colours.hole, colours.hatch),
        [...parts, { x: 0, y: 0, content: texts.text }],
    );
    saveText(file, "image/svg+xml", `${fileName(only)}.svg`);
}

/** Offers each picture alone, in the bar of its panel. */
export function connectSaving(page: PageView): void {
    for (const section of [
        "time",
        "addresses",
        "stacks-panel",
        "segments-panel",
        "heat-panel",
        "runs-box",
        "ranks",
    ]) {
        const offer = (): void => {
            const picture = page.pictures.find(
                (part): part is Picture => "section" in part && part.section === section,
            );
            if (!picture) return;
            const save = (name: string, act: typeof savePng): HTMLElement =>
                button(name, `save this picture as ${name}`, () => act(page, picture));
            showDialog(
                el("h2", {}, picture.title),
                el("p", {}, save("PNG", savePng), " ", save("SVG", saveSvg)),
            );
        };
        const save = button("save", "save this picture as PNG or SVG", offer);
        const bar = document.querySelector(`#${section} :is(.bar, .buttons)`);
        save.setAttribute("aria-label", `save ${bar?.querySelector("h2")?.textContent ?? section}`);
        bar?.append(save);
    }
}
