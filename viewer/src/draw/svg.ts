// The part of a canvas context that the pictures use, writing SVG instead of pixels. Text from a
// trace is escaped. Nothing else from a trace reaches the file.

function escaped(text: string): string {
    return text
        .replace(
            // eslint-disable-next-line no-control-regex -- XML has no way to write these
            /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
            "\ufffd",
        )
        .replace(/&/g, "&amp;")
        .replace(/</g, "&lt;")
        .replace(/>/g, "&gt;")
        .replace(/"/g, "&quot;");
}

const short = (value: number): string => String(Math.round(value * 100) / 100);

/** The attributes that place a rectangle. */
function box(x: number, y: number, width: number, height: number): string {
    const size = [width, height].map((length) => short(Math.max(0, length)));
    return ` x="${short(x)}" y="${short(y)}" width="${size[0]}" height="${size[1]}"`;
}

interface State {
    fillStyle: string;
    strokeStyle: string;
    globalAlpha: number;
    lineWidth: number;
    font: string;
    textAlign: string;
    dash: number[];
    clips: number;
}

let measuring: CanvasRenderingContext2D | null = null;

export class SvgContext {
    fillStyle = "#000";
    strokeStyle = "#000";
    globalAlpha = 1;
    lineWidth = 1;
    font = "10px sans-serif";
    textAlign = "left";
    private dash: number[] = [];
    private path = "";
    private clips = 0; // open groups with a clip path
    private made = 0;
    private readonly saved: State[] = [];
    private readonly parts: string[] = [];

    constructor(private readonly prefix: string) {}

    get text(): string {
        return this.parts.join("\n") + "</g>".repeat(this.clips);
    }

    private paint(): string {
        return this.globalAlpha < 1 ? ` opacity="${short(this.globalAlpha)}"` : "";
    }

    private stroking(): string {
        const dash = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
        const line = ` stroke="${escaped(this.strokeStyle)}" stroke-width="${short(this.lineWidth)}"`;
        return ` fill="none"${line}${dash}${this.paint()}`;
    }

    fillRect(x: number, y: number, width: number, height: number): void {
        this.parts.push(
            `<rect${box(x, y, width, height)} fill="${escaped(this.fillStyle)}"${this.paint()}/>`,
        );
    }

    strokeRect(x: number, y: number, width: number, height: number): void {
        this.parts.push(`<rect${box(x, y, width, height)}${this.stroking()}/>`);
    }

    beginPath(): void {
        this.path = "";
    }

    moveTo(x: number, y: number): void {
        this.path += `M${short(x)} ${short(y)}`;
    }

    lineTo(x: number, y: number): void {
        this.path += `${this.path === "" ? "M" : "L"}${short(x)} ${short(y)}`;
    }

    rect(x: number, y: number, width: number, height: number): void {
        this.path += `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`;
    }

    /** Draws whole circles only: the pictures use no other arcs. */
    arc(x: number, y: number, radius: number): void {
        const r = short(radius);
        this.path += `M${short(x - radius)} ${short(y)}a${r} ${r} 0 1 0 ${short(2 * radius)} 0a${r} ${r} 0 1 0 ${short(-2 * radius)} 0z`;
    }

    roundRect(x: number, y: number, width: number, height: number, radius: number): void {
        const r = Math.max(0, Math.min(radius, width / 2, height / 2));
        const [across, down] = [short(width - 2 * r), short(height - 2 * r)];
        const corner = (right: number, below: number): string =>
            `a${short(r)} ${short(r)} 0 0 1 ${short(right)} ${short(below)}`;
        this.path +=
            `M${short(x + r)} ${short(y)}h${across}${corner(r, r)}v${down}${corner(-r, r)}` +
            `h-${across}${corner(-r, -r)}v-${down}${corner(r, -r)}z`;
    }

    fill(): void {
        this.parts.push(
            `<path d="${this.path}" fill="${escaped(this.fillStyle)}"${this.paint()}/>`,
        );
    }

    stroke(): void {
        this.parts.push(`<path d="${this.path}"${this.stroking()}/>`);
    }

    clip(): void {
        const id = `${this.prefix}-clip-${++this.made}`;
        this.parts.push(
            `<clipPath id="${id}"><path d="${this.path}"/></clipPath><g clip-path="url(#${id})">`,
        );
        ++this.clips;
    }

    save(): void {
        const { fillStyle, strokeStyle, globalAlpha, lineWidth, font, textAlign, dash, clips } =
            this;
        this.saved.push({
            fillStyle,
            strokeStyle,
            globalAlpha,
            lineWidth,
            font,
            textAlign,
            dash,
            clips,
        });
    }

    restore(): void {
        const state = this.saved.pop();
        if (!state) return;
        this.parts.push("</g>".repeat(this.clips - state.clips));
        Object.assign(this, state);
    }

    setLineDash(dash: number[]): void {
        this.dash = dash;
    }

    measureText(text: string): TextMetrics {
        measuring ??= document.createElement("canvas").getContext("2d")!;
        measuring.font = this.font;
        return measuring.measureText(text);
    }

    fillText(text: string, x: number, y: number): void {
        const [, weight, size, family] = /^(?:(\w+) )?([\d.]+)px (.*)$/.exec(this.font) ?? [
            "",
            "",
            "10",
            "sans-serif",
        ];
        const anchor =
            this.textAlign === "right" ? "end" : this.textAlign === "center" ? "middle" : "start";
        this.parts.push(
            `<text x="${short(x)}" y="${short(y)}" font-family="${escaped(family)}"` +
                ` font-size="${size}"${weight ? ` font-weight="${weight}"` : ""}` +
                ` text-anchor="${anchor}" fill="${escaped(this.fillStyle)}"${this.paint()}` +
                `${/\s\s/.test(text) ? ' xml:space="preserve"' : ""}>` +
                `${escaped(text)}</text>`,
        );
    }
}

/**
 * The pattern for free memory. It is defined once in the file, and contexts refer to it by this
 * name.
 */
export const hatchName = "url(#fragtrace-hatch)";

export function hatchPattern(hole: string, hatch: string): string {
    return (
        `<pattern id="fragtrace-hatch" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8" fill="${hole}"/>` +
        `<path d="M-1 1L1 -1M-1 9L9 -1M7 9L9 7" stroke="${hatch}" stroke-width="1.5"/></pattern>`
    );
}

export interface SvgPart {
    x: number;
    y: number;
    content: string;
}

export function svgFile(
    width: number,
    height: number,
    title: string,
    background: string,
    definitions: string,
    parts: SvgPart[],
): string {
    const [w, h] = [Math.ceil(width), Math.ceil(height)];
    return (
        `<?xml version="1.0" encoding="UTF-8"?>\n` +
        `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" ` +
        `viewBox="0 0 ${w} ${h}">\n` +
        `<title>${escaped(title)}</title><defs>${definitions}</defs>\n` +
        `<rect width="${w}" height="${h}" fill="${background}"/>\n` +
        parts
            .map(
                (part) =>
                    `<g transform="translate(${Math.round(part.x)} ${Math.round(part.y)})">\n${part.content}\n</g>`,
            )
            .join("\n") +
        "\n</svg>\n"
    );
}
