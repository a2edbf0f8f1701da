// Boxes and texts of saved panels: colours, joined texts, escapes, and what an SVG has.
import assert from "node:assert/strict";
import { test } from "node:test";
import { light } from "../src/draw/colours";
import { addText, drawPieces, extentOf, paintOf, type Piece } from "../src/draw/pieces";
import { SvgContext } from "../src/draw/svg";

const paint = { colour: "#1b1f27", alpha: 1 };
const word = (text: string, x: number, right: number, y = 20): Piece & { kind: "text" } => ({
    kind: "text",
    text,
    x,
    right,
    y,
    font: "400 12px sans-serif",
    ...paint,
});

function svgOf(pieces: Piece[]): string {
    const context = new SvgContext("a");
    drawPieces(context as unknown as CanvasRenderingContext2D, pieces, light);
    return context.text;
}

test("a computed colour becomes a colour and its opacity", () => {
    assert.deepEqual(paintOf("rgb(0, 133, 122)"), { colour: "#00857a", alpha: 1 });
    assert.deepEqual(paintOf("rgba(255, 0, 9, 0.25)"), { colour: "#ff0009", alpha: 0.25 });
    assert.deepEqual(paintOf("color(srgb 0 0.521569 0.478431 / 0.22)"), {
        colour: "#00857a",
        alpha: 0.22,
    });
    assert.deepEqual(paintOf("color(srgb 1e-7 1 0)"), { colour: "#00ff00", alpha: 1 });
    for (const none of ["rgba(0, 0, 0, 0)", "transparent", "", "none"]) {
        assert.equal(paintOf(none), null, none);
    }
});

test("texts without a space between them are one text, others are not", () => {
    const pieces: Piece[] = [];
    addText(pieces, word("expandable_", 10, 80));
    addText(pieces, word("segments", 80.2, 130));
    addText(pieces, word("True", 134, 160)); // a space before it
    addText(pieces, word("below", 10, 40, 36));
    addText(pieces, { ...word("bold", 40, 60, 36), font: "700 12px sans-serif" });
    assert.deepEqual(
        pieces.map((piece) => piece.kind === "text" && [piece.text, piece.right]),
        [
            ["expandable_segments", 130],
            ["True", 160],
            ["below", 40],
            ["bold", 60],
        ],
    );
});

test("characters that change the writing direction become escapes, and markup is text", () => {
    const pieces: Piece[] = [];
    addText(pieces, word("<a> & \u202eb\0", 10, 90));
    assert.match(svgOf(pieces), />&lt;a&gt; &amp; \\u202eb\\u0000<\/text>/);
});

test("an SVG keeps the spaces of source code", () => {
    assert.match(svgOf([word("12    return x", 10, 90)]), / xml:space="preserve">12 {4}return x</);
    assert.doesNotMatch(svgOf([word("return x", 10, 90)]), /xml:space/);
});

test("the extent has every box and text", () => {
    const box: Piece = { kind: "box", x: 5, y: 5, width: 40, height: 90, radius: 0, ...paint };
    assert.deepEqual(extentOf([box, word("a", 10, 120, 30)]), { width: 120, height: 95 });
    assert.deepEqual(extentOf([]), { width: 0, height: 0 });
});

test("rounded boxes, frames, dashed lines and hatched bars are vectors", () => {
    const area = { x: 10, y: 20, width: 30, height: 10 };
    const svg = svgOf([
        { kind: "box", ...area, radius: 3, ...paint },
        { kind: "frame", ...area, radius: 0, stroke: 2, ...paint },
        { kind: "dashes", ...area, height: 0, stroke: 1, ...paint },
        { kind: "box", ...area, radius: 0, colour: "hatch", alpha: 0.5 },
    ]);
    assert.match(svg, /<path d="M13 20h24a3 3 0 0 1 3 3v4a3 3 0 0 1 -3 3h-24a.*" fill="#1b1f27"/);
    assert.match(svg, /<path d="M11 21h28.*" fill="none" stroke="#1b1f27" stroke-width="2"\/>/);
    assert.match(svg, /<path d="M10 20L40 20" .* stroke-dasharray="3 2"\/>/);
    assert.match(svg, /<rect x="10" .* fill="url\(#fragtrace-hatch\)" opacity="0.5"\/>/);
});
