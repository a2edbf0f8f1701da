// Pictures made pixel by pixel. One image per canvas is reused while its size stays, so a frame
// allocates nothing. Colours are 32-bit pixels in the image's memory layout.
import { rgb } from "./colours";
import type { Layer } from "./surface";

export interface Picture {
    columns: number;
    rows: number;
    image: ImageData;
    pixels: Uint32Array;
}

const pictures = new WeakMap<HTMLCanvasElement, Picture>();

export function pictureOf(layer: Layer, columns: number, rows: number): Picture {
    const known = pictures.get(layer.canvas);
    const picture = sized(known, columns, rows);
    if (picture !== known) pictures.set(layer.canvas, picture);
    return picture;
}

/** `known` if it has this size, otherwise a new picture. */
export function sized(known: Picture | undefined, columns: number, rows: number): Picture {
    if (known?.columns === columns && known.rows === rows) return known;
    const image = new ImageData(columns, rows);
    return { columns, rows, image, pixels: new Uint32Array(image.data.buffer) };
}

/** An opaque pixel. Red is the lowest byte, as in memory. */
export function pixelOf(red: number, green: number, blue: number): number {
    return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

export function pixelOfColour(colour: string): number {
    return pixelOf(...rgb(colour));
}

/** Adds `share` of the colour `over` to a pixel and removes as much of `ground`. */
export function blended(pixel: number, over: number, ground: number, share: number): number {
    const channel = (shift: number): number => {
        const value =
            ((pixel >>> shift) & 255) +
            share * (((over >>> shift) & 255) - ((ground >>> shift) & 255));
        return Math.max(0, Math.min(255, Math.round(value)));
    };
    return pixelOf(channel(0), channel(8), channel(16));
}
