// Expressions that cannot hang, against the browser's own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Expression } from "../src/data/expression";
import { findNames } from "../src/data/search";

function randomNumbers(seed: number): (below: number) => number {
    let state = seed;
    return (below) => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return Math.floor((state / 2 ** 32) * below);
    };
}

const texts = [
    "",
    "a",
    "b",
    "ab",
    "aab",
    "abc",
    "ba",
    "aaa",
    "b a",
    " ab",
    "ab.",
    "A-b_1",
    "1",
    "ab12 c",
    "\n",
    "a\nb",
    "train.py:33 keep",
    "Layer12.forward",
    "éa",
];

test("known expressions find what the browser's find", () => {
    for (const source of [
        "a",
        "^a",
        "a$",
        "^a$",
        "^$",
        "",
        "a|b",
        "(a|b)c",
        "(?:ab)+c",
        "a*b",
        "a+?b",
        "a??b",
        "[ab]c",
        "[^ab]",
        "[a-c]+$",
        "[A-C]",
        "[\\d.]",
        "[-a]",
        "[a-]",
        "\\d+",
        "\\w+\\s",
        "\\bab",
        "b\\b",
        "\\Bb",
        "a{2}",
        "a{2,}",
        "a{1,2}b",
        "a{0}b",
        "(a{0,2}){2}b",
        ".",
        "a.b",
        "\\.",
        "\\x61",
        "\\u0062",
        "{",
        "a{x}",
        "^(a|b)*$",
        "(a*)*b",
        "(|a)b",
        "()",
        "(?<name>a)b",
        "]",
        "é",
        "^.*:\\d+ keep$",
        "layer1[0-9]\\.",
        "[\\s\\S]",
        "[^\\n]b",
        "^|b",
    ]) {
        const own = new Expression(source);
        const browser = new RegExp(source, "i");
        for (const text of texts) {
            assert.equal(own.test(text), browser.test(text), `/${source}/ in "${text}"`);
        }
    }
});

test("random expressions find what the browser's find", () => {
    const random = randomNumbers(4);
    const some = (depth: number): string => {
        const atoms = [
            "a",
            "b",
            "c",
            ".",
            "[ab]",
            "[^a]",
            "\\w",
            "\\d",
            "^",
            "$",
            "\\b",
            "\\B",
            " ",
        ];
        if (depth === 0 || random(3) === 0) return atoms[random(atoms.length)];
        switch (random(6)) {
            case 0:
                return `(${some(depth - 1)}|${some(depth - 1)})`;
            case 1:
                return `(?:${some(depth - 1)})${["*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}"][random(7)]}`;
            case 2:
                return `(${some(depth - 1)})${["*", "+?", "??"][random(3)]}`;
            default:
                return some(depth - 1) + some(depth - 1);
        }
    };
    let found = 0;
    for (let trial = 0; trial < 3000; ++trial) {
        const source = some(4);
        const own = new Expression(source);
        const browser = new RegExp(source, "i");
        for (let i = 0; i < 8; ++i) {
            const text = Array.from({ length: random(9) }, () => "ab1 c"[random(5)]).join("");
            const expected = browser.test(text);
            assert.equal(own.test(text), expected, `/${source}/ in "${text}"`);
            if (expected) ++found;
        }
    }
    assert.ok(found > 4000 && found < 22000, `${found}`);
});

test("what makes others hang is over in no time, and found right", () => {
    const long = "a".repeat(1999);
    for (const [source, hit] of [
        ["(a+)+$", true],
        ["^(a+)+b$", false],
        ["^(a|aa)+b", false],
        ["^(([a-z])+.)+[A-Z]([a-z])+9$", false],
        ["(a?){60}a{60}", true],
        ["(.*)*(.*)*(.*)*(.*)*x", false],
        ["((a|a)|(a|a))*b", false],
        ["(a+b?)+c", false],
        ["([a-z]+ ?)+!", false],
        [".*.*.*.*.*.*=.*", false],
        ["^(\\w+\\s?)*$", true],
        ["(x+x+)+y", false],
    ] as const) {
        const expression = new Expression(source);
        const before = expression.effort;
        for (let i = 0; i < 50; ++i) {
            assert.equal(
                expression.test(long + (hit ? "" : "!")),
                source.includes("!") ? true : hit,
                source,
            );
        }
        assert.ok(
            before - expression.effort < 50 * 2000 * 2 + 5_000_000,
            `${source}: ${before - expression.effort}`,
        );
    }
});

test("one search ends, whatever it is held against, and says so", () => {
    const expression = new Expression(
        `^(?:${Array.from({ length: 30 }, (_, i) => `.{${i}}[a-m].{9}`).join("|")})zzz`,
    );
    const random = randomNumbers(8);
    let texts = 0;
    for (; expression.effort >= 0 && texts < 100_000; ++texts) {
        expression.test(
            Array.from({ length: 1500 }, () => String.fromCharCode(97 + random(26))).join(""),
        );
    }
    assert.ok(texts < 100_000);
    const limited = new Expression("a(b|c)*d");
    limited.effort = 100;
    assert.equal(limited.test("x".repeat(200) + "abd"), false);
    assert.ok(limited.effort < 0);
});

test("what cannot be used is refused in a few words", () => {
    for (const [source, words] of [
        ["(a", /\) is missing/],
        ["a)", /too many/],
        ["[a", /\] is missing/],
        ["*a", /nothing to repeat/],
        ["a**", /nothing to repeat/],
        ["a\\", /ends in/],
        ["(?=a)", /ahead or behind/],
        ["(?<!a)b", /ahead or behind/],
        ["(a)\\1", /references/],
        ["a{3,2}", /out of order/],
        ["a{1000}", /too often/],
        ["[z-a]", /out of order/],
        ["(((a{99}){99}){99}){99}", /too large/],
        ["(".repeat(60) + "a" + ")".repeat(60), /too deep/],
    ] as const) {
        assert.throws(() => new Expression(source), words, source);
        assert.match(findNames([], `/${source}/`)!.problem!, words);
    }
});
