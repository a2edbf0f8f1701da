// Colours of both themes. Colours never differ in hue alone: free memory is hatched, blocks that
// prevent its release have a halo, and the three main colours also differ in lightness.

import { hatchName } from "./svg";

export interface Colours {
    paper: string;
    ground: string; // nothing reserved
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
    mark: string; // search and selection
    onMark: string; // text on `mark`
    onHole: string;
    oom: string;
    retry: string;
    phases: string[];
    good: string; // a replayed curve
    kinds: string[]; // blocks by age, phase, stream, pool, stack
    otherKind: string;
    freeKind: string; // free memory, where blocks are coloured by kind
    runs: [a: string, b: string]; // two compared runs; also text
    heat: [number, number, number][]; // memory over time, from none to the most
    stroke: number; // widths of lines are multiplied by it
}

export const light: Colours = {
    paper: "#ffffff",
    ground: "#dde1e8",
    ink: "#1b1f27",
    faint: "#5b6372",
    line: "#d0d5dd",
    use: "#8faac8",
    useLong: "#6585ac",
    internal: "#b9a3cf",
    pending: "#6aaea4",
    hole: "#f28c1c",
    hatch: "#c65d00",
    cached: "#f3ead0",
    other: "#c3c7cf",
    pin: "#4a0633",
    halo: "#ffffff",
    mark: "#00857a",
    onMark: "#ffffff",
    onHole: "#1b1f27",
    oom: "#b3001b",
    retry: "#6b3fc0",
    phases: ["#9db8d6", "#c9dcec", "#e6cf9a", "#b5d2b0", "#d2c0e0", "#e3bcc1"],
    good: "#1a7f37",
    kinds: ["#332288", "#88ccee", "#117733", "#ddcc77", "#cc6677", "#44aa99", "#882255", "#999933"],
    otherKind: "#c3c7ce",
    freeKind: "#f7f4ec",
    runs: ["#1f5fae", "#b34700"],
    heat: [
        [246, 244, 238],
        [253, 208, 126],
        [236, 112, 44],
        [150, 20, 40],
    ],
    stroke: 1,
};

export const dark: Colours = {
    paper: "#14171c",
    ground: "#20242b",
    ink: "#e8eaee",
    faint: "#a2a9b6",
    line: "#3a404b",
    use: "#4b6784",
    useLong: "#6f92b8",
    internal: "#806a9c",
    pending: "#3f8a80",
    hole: "#d4780f",
    hatch: "#8a4300",
    cached: "#57503a",
    other: "#4b515c",
    pin: "#ffffff",
    halo: "#5c0f42",
    mark: "#2fd3c2",
    onMark: "#14171c",
    onHole: "#1b1f27",
    oom: "#ff5c6f",
    retry: "#b394ff",
    phases: ["#34567f", "#2a4560", "#6b5220", "#37573a", "#54406a", "#673d45"],
    good: "#5ccf7b",
    kinds: ["#7d72d8", "#88ccee", "#2f9a4f", "#ddcc77", "#cc6677", "#44aa99", "#b04a82", "#a5a53a"],
    otherKind: "#50545c",
    freeKind: "#2a2b2e",
    runs: ["#86b6ff", "#ff9d4d"],
    heat: [
        [44, 49, 58],
        [116, 52, 34],
        [226, 112, 40],
        [255, 222, 150],
    ],
    stroke: 1,
};

/** Stronger colours and lines, if the system asks for more contrast. */
const strong = (colours: Colours, stronger: Partial<Colours>): Colours => ({
    ...colours,
    faint: colours.ink,
    line: colours.ink,
    stroke: 2,
    ...stronger,
});
const strongLight = strong(light, {
    ink: "#000000",
    use: "#5577a3",
    useLong: "#2c4a75",
    hole: "#ff8400",
    hatch: "#5c2500",
    pending: "#20776a",
    other: "#7d8492",
});
const strongDark = strong(dark, {
    ink: "#ffffff",
    paper: "#000000",
    use: "#6b95c4",
    useLong: "#a8cdf5",
    hole: "#ff9a1f",
    hatch: "#5c2500",
    pending: "#57c7b7",
    other: "#868e9c",
});

export function coloursOf(isDark: boolean, moreContrast: boolean): Colours {
    return moreContrast ? (isDark ? strongDark : strongLight) : isDark ? dark : light;
}

export function rgb(colour: string): [number, number, number] {
    const value = parseInt(colour.slice(1), 16);
    return [value >> 16, (value >> 8) & 255, value & 255];
}

const patterns = new Map<string, CanvasPattern>();

/** The hatching of free memory, in device pixels. */
export function hatched(
    context: CanvasRenderingContext2D,
    colours: Colours,
): CanvasPattern | string {
    if (!("createPattern" in context)) return hatchName; // SVG
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
