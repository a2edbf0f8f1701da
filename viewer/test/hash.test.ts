// The view in the link of the page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readHash, unsaid, writeHash } from "../src/state/hash";
import { clampView, type View } from "../src/state/store";

const view: View = {
    device: 0,
    t0: 0,
    t1: 1000,
    a0: 0,
    a1: 1 << 20,
    cursor: 77,
    mark: 60,
    r0: 10,
    r1: 20,
    s0: 30,
    s1: 40,
    line: 7,
    by: "allocated",
    drag: "range",
    card: 1,
    culprit: -1,
    selected: 5,
    hole: 4096,
    stack: -1,
    query: "a b&c=d",
    comment: "look here:\n50 % & more",
    theme: "dark",
    stacks: "growth",
    shape: "flame",
    zoom: 12,
    frame: 4,
    only: true,
    fold: false,
    hidden: "3,12",
    colour: "phase",
    whatif: 3,
    order: "address",
    axis: "time",
    heat: 2,
    rows: "rank",
};

test("the URL fragment keeps the view and ignores invalid values", () => {
    const back = readHash(writeHash(view));
    for (const key of Object.keys(view) as (keyof View)[]) {
        if (view[key] !== -1) assert.equal(back[key], view[key], key);
    }
    // Numbers that are not an index: a link must not name half a card, nor card -1.
    for (const number of [
        "0.5",
        "-1",
        "-0",
        "1e3",
        "1e300",
        "0x10",
        "+1",
        " 1",
        "%31",
        "9999999999999999",
        "NaN",
        "Infinity",
        "",
    ]) {
        for (const key of [
            "device",
            "card",
            "culprit",
            "selected",
            "stack",
            "whatif",
            "cursor",
            "mark",
            "r0",
            "s1",
            "line",
            "zoom",
            "frame",
            "t0",
            "a1",
        ]) {
            assert.deepEqual(readHash(`#${key}=${number}`), {}, `${key}=${number}`);
        }
    }
    // Values that a link leaves out are those that writeHash leaves out.
    const plain = { ...view, ...unsaid };
    assert.deepEqual(
        { ...unsaid, ...readHash(writeHash(plain)) },
        { ...readHash(writeHash(plain)), ...unsaid },
    );
    assert.deepEqual(
        readHash(
            "#t0=NaN&t1=&cursor=1e999&theme=pink&colour=constructor&stacks=__proto__&shape=&hidden=1,-2&hidden=x&q=%E0%A4%A&=&x",
        ),
        {},
    );
});

test("windows stay inside the data", () => {
    const clamped = clampView(
        { ...view, t0: -50, t1: 1e9, a0: 500, a1: 400, cursor: 1e12 },
        1000,
        1 << 20,
    );
    assert.deepEqual([clamped.t0, clamped.t1, clamped.cursor], [0, 1000, 1000]);
    assert.ok(clamped.a1 > clamped.a0);
});
