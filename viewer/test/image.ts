// The browser's ImageData, which Node.js lacks.
export class Image {
    readonly data: Uint8ClampedArray;
    constructor(
        readonly width: number,
        readonly height: number,
    ) {
        this.data = new Uint8ClampedArray(4 * width * height);
    }
}
(globalThis as { ImageData?: unknown }).ImageData = Image;
