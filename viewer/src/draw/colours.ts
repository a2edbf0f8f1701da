// Colours of both themes. Hue is never alone: holes are hatched, pins have a halo, and the three
// main colours differ in lightness as well.

export interface Colours {
    paper: string;
    ground: string;  // nothing reserved
    ink: string;
    faint: string;
    line: string;
    use: string;
    useLong: string;
    internal: string;
    pending: string;
    hole: string;
    hatch: string;
    cached: string;
    other: string;
    pin: string;
    halo: string;
    mark: string;  // search and selection
    oom: string;
    retry: string;
    phases: string[];
}

export const light: Colours = {
    paper: "#ffffff", ground: "#eef0f3", ink: "#1b1f27", faint: "#5b6372", line: "#d0d5dd",
    use: "#8faac8", useLong: "#6585ac", internal: "#b9a3cf", pending: "#6aaea4",
    hole: "#f28c1c", hatch: "#c65d00", cached: "#f3ead0", other: "#c3c7cf",
    pin: "#4a0633", halo: "#ffffff", mark: "#00857a", oom: "#b3001b", retry: "#6b3fc0",
    phases: ["#4f7fb5", "#8bb4d9", "#d1a24a", "#7aa874", "#a988c2", "#c27f88"],
};

export const dark: Colours = {
    paper: "#14171c", ground: "#20242b", ink: "#e8eaee", faint: "#a2a9b6", line: "#3a404b",
    use: "#54718f", useLong: "#6f92b8", internal: "#806a9c", pending: "#3f8a80",
    hole: "#f09a35", hatch: "#a85200", cached: "#57503a", other: "#4b515c",
    pin: "#ffffff", halo: "#5c0f42", mark: "#2fd3c2", oom: "#ff5c6f", retry: "#b394ff",
    phases: ["#4f7fb5", "#31587f", "#a17a2e", "#4f7d49", "#7a5c95", "#8f545d"],
};

export function rgb(colour: string): [number, number, number] {
    const value = parseInt(colour.slice(1), 16);
    return [value >> 16, (value >> 8) & 255, value & 255];
}

const patterns = new Map<string, CanvasPattern>();

/** The hatching of holes, in device pixels. */
export function hatched(context: CanvasRenderingContext2D, colours: Colours): CanvasPattern {
    const key = colours.hole + colours.hatch;
    const known = patterns.get(key);
    if (known) return known;
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const inner = tile.getContext("2d")!;
    inner.fillStyle = colours.hole;
    inner.fillRect(0, 0, 8, 8);
    inner.strokeStyle = colours.hatch;
    inner.lineWidth = 1.5;
    for (const shift of [-8, 0, 8]) {
        inner.beginPath();
        inner.moveTo(shift - 1, 9);
        inner.lineTo(shift + 9, -1);
        inner.stroke();
    }
    const pattern = context.createPattern(tile, "repeat")!;
    patterns.set(key, pattern);
    return pattern;
}
