// Contrast of text, and distances of colours that must be distinguished, for full colour vision and
// three kinds of colour blindness.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { type Colours, dark, light, rgb } from "../src/draw/colours";

type Triple = [number, number, number];

const linear = (colour: string): Triple =>
    rgb(colour).map((value) => {
        const share = value / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    }) as Triple;

const luminance = ([r, g, b]: Triple): number => 0.2126 * r + 0.7152 * g + 0.0722 * b;

// The formula of WCAG 2.
function contrast(a: string, b: string): number {
    const [one, other] = [luminance(linear(a)), luminance(linear(b))];
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}

// Severity 1 from Machado, Oliveira and Fernandes (2009), on linear RGB.
const visions: Record<string, number[]> = {
    full: [1, 0, 0, 0, 1, 0, 0, 0, 1],
    protanopia: [
        0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998,
    ],
    deuteranopia: [
        0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881,
    ],
    tritanopia: [
        1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039,
    ],
};

function seen(colour: string, vision: string): Triple {
    const [r, g, b] = linear(colour);
    const m = visions[vision];
    return [0, 1, 2].map((row) =>
        Math.max(0, Math.min(1, m[3 * row] * r + m[3 * row + 1] * g + m[3 * row + 2] * b)),
    ) as Triple;
}

// Distances in Oklab match human vision. About 0.02 is the smallest difference visible side by
// side.
function oklab([r, g, b]: Triple): Triple {
    const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
    const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
    const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
    return [
        0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
        1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
        0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
    ];
}

function distance(a: string, b: string, vision: string): number {
    const [one, other] = [oklab(seen(a, vision)), oklab(seen(b, vision))];
    return Math.hypot(one[0] - other[0], one[1] - other[1], one[2] - other[2]);
}

const themes: [string, Colours][] = [
    ["light", light],
    ["dark", dark],
];

for (const [theme, colours] of themes) {
    test(`${theme}: text is readable on its background`, () => {
        const pairs: [string, string, string][] = [
            ["ink on paper", colours.ink, colours.paper],
            ["faint text", colours.faint, colours.paper],
            ["OOM label", colours.oom, colours.paper],
            ["retry label", colours.retry, colours.paper],
            ["name of a curve", colours.good, colours.paper],
            ["box of the user's code", colours.ink, colours.use],
            ["box of a library", colours.ink, colours.ground],
            ["box of holes", colours.onHole, colours.hole],
            ["library's box of holes", colours.ink, colours.cached],
            ["marked box", colours.onMark, colours.mark],
            ["outermost box", colours.ink, colours.other],
            ["band of a lane", colours.ink, colours.line],
            ...colours.phases.map((phase, i): [string, string, string] => [
                `phase ${i}`,
                colours.ink,
                phase,
            ]),
        ];
        for (const [name, text, ground] of pairs) {
            assert.ok(
                contrast(text, ground) >= 4.5,
                `${name}: ${contrast(text, ground).toFixed(2)}`,
            );
        }
    });

    test(`${theme}: blocking blocks and holes stand out from their surroundings`, () => {
        for (const [name, a, b] of [
            ["pin on a hole", colours.pin, colours.hole],
            ["pin beside what is in use", colours.pin, colours.use],
            ["mark on paper", colours.mark, colours.paper],
        ]) {
            assert.ok(contrast(a, b) >= 3, `${name}: ${contrast(a, b).toFixed(2)}`);
        }
    });

    for (const vision of Object.keys(visions)) {
        test(`${theme}, ${vision}: states and kinds can be distinguished`, () => {
            const states: [string, string][] = [
                ["use", colours.use],
                ["hole", colours.hole],
                ["cached", colours.cached],
                ["pin", colours.pin],
                ["ground", colours.ground],
                ["mark", colours.mark],
            ];
            const near: string[] = [];
            states.forEach(([name, colour], i) =>
                states.slice(i + 1).forEach(([other, second]) => {
                    if (distance(colour, second, vision) < 0.04) {
                        near.push(
                            `${name} and ${other}: ${distance(colour, second, vision).toFixed(3)}`,
                        );
                    }
                }),
            );
            const kinds = [...colours.kinds, colours.otherKind, colours.freeKind];
            kinds.forEach((colour, i) =>
                kinds.slice(i + 1).forEach((second, j) => {
                    if (distance(colour, second, vision) < 0.04) {
                        near.push(
                            `kinds ${i} and ${i + 1 + j}: ${distance(colour, second, vision).toFixed(3)}`,
                        );
                    }
                }),
            );
            assert.deepEqual(near, []);
        });
    }
}

test("the style sheet has the same colours, and its text is readable", () => {
    const css = readFileSync(process.env.FRAGTRACE_STYLE!, "utf8");
    const sheets = {
        light: /:root \{([^}]*)\}/.exec(css)![1],
        dark: /:root\[data-theme="dark"\] \{([^}]*)\}/.exec(css)![1],
    };
    for (const [theme, colours] of themes) {
        const sheet = sheets[theme as "light" | "dark"];
        const value = (name: string): string => {
            const found = new RegExp(`--${name}: (#[0-9a-f]+)`).exec(sheet)![1];
            return found.length === 4
                ? "#" + [...found.slice(1)].map((digit) => digit + digit).join("")
                : found;
        };
        for (const name of [
            "paper",
            "ink",
            "faint",
            "oom",
            "retry",
            "hole",
            "hatch",
            "mark",
            "pin",
            "good",
        ] as const) {
            assert.equal(value(name), colours[name], `${theme} ${name}`);
        }
        for (const name of ["ink", "faint", "oom", "good"]) {
            for (const ground of ["paper", "panel"]) {
                assert.ok(
                    contrast(value(name), value(ground)) >= 4.5,
                    `${theme}: ${name} on ${ground} ${contrast(value(name), value(ground)).toFixed(2)}`,
                );
            }
        }
        for (const badge of ["oom", "retry", "waste"]) {
            assert.ok(
                contrast(theme === "light" ? "#ffffff" : "#14171c", value(badge)) >= 4.5,
                `${theme}: badge ${badge}`,
            );
        }
        assert.ok(
            contrast(value("paper"), value("mark")) >= 4.5,
            `${theme}: a button that is pressed`,
        );
    }
});
