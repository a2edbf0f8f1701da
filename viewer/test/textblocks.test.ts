// Panels of text in saved pictures: columns, line breaks, and escapes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { light } from "../src/draw/colours";
import { columnWidths, layoutBlocks, type TextBlock } from "../src/draw/textblocks";

// Every letter is 10 pixels wide.
const measuring = {
    font: "",
    measureText: (text: string) => ({ width: 10 * [...text].length }),
} as unknown as CanvasRenderingContext2D;

const textsOf = (blocks: TextBlock[], width: number): string[] =>
    layoutBlocks(measuring, blocks, width, light).placed.flatMap((part) =>
        part.kind === "text" ? part.text : [],
    );

const plain = (text: string): TextBlock => ({ kind: "text", cell: { text } });

test("narrow columns get what they need, wide ones share the rest", () => {
    assert.deepEqual(columnWidths([30, 40, 20], 200), [30, 40, 20]);
    assert.deepEqual(columnWidths([300, 40, 200], 240), [100, 40, 100]);
    assert.deepEqual(columnWidths([], 240), []);
});

test("texts wrap between words, and a word that is too long is broken", () => {
    assert.deepEqual(textsOf([plain("to be\nor not")], 60), ["to be", "or not"]);
    assert.deepEqual(textsOf([plain("a abcdefgh b")], 40), ["a", "abcd", "efgh", "b"]);
    assert.deepEqual(textsOf([plain("")], 40), []);
});

test("characters that change the writing direction become escapes", () => {
    assert.deepEqual(textsOf([plain("<a> & \u202eb\0")], 400), ["<a> & \\u202eb\\u0000"]);
});

test("no text leaves the width, and rows do not overlap", () => {
    const row = (text: string): { cells: { text: string }[] } => ({
        cells: [{ text: "name" }, { text }, { text: "one two three four" }],
    });
    const rows = [row("a b c d e f g h i j k l m n o p"), row("short")];
    const { placed, height } = layoutBlocks(
        measuring,
        [{ kind: "table", rows, lines: true }],
        200,
        light,
    );
    const texts = placed.filter((part) => part.kind === "text");
    for (const { x, text, y } of texts) {
        assert.ok(x + 10 * text.length <= 200, text);
        assert.ok(y < height);
    }
    const below = (name: string, from: number): number =>
        texts.find(({ text, y }) => text === name && y > from)!.y;
    const second = below("name", below("name", 0));
    const first = texts.filter(({ y }) => y < second);
    assert.ok(Math.max(...first.map(({ y }) => y)) < below("short", 0));
});
