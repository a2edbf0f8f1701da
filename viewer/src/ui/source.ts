// Source code of the chosen line or stack, and of the frames of a block, if the page has it.
import { type SourceLines, sourceOf } from "../data/sources";
import { byId, el } from "./dom";
import { saveButton } from "./image";
import type { PageView } from "./view";

/** The lines with their numbers. The frame's own line is marked. */
export function sourceCode(source: SourceLines): HTMLElement {
    const width = String(source.first + source.lines.length - 1).length;
    const rows = source.lines.map((text, i) => {
        const number = source.first + i;
        const row = `${String(number).padStart(width)}  ${text}\n`;
        return number === source.line ? el("mark", {}, row) : row;
    });
    return el(
        "div",
        { class: "source" },
        source.changed && el("p", { class: "near" }, "this file changed after the recording began"),
        el("pre", { tabindex: "0", "aria-label": `source code of ${source.place}` }, ...rows),
    );
}

// The frame that the reader chose: of a line, or of a box in the stacks. A box without source
// code stands for the frame that names its stack.
function chosenSource(page: PageView): SourceLines | null {
    const { header, view } = page;
    if (view.line >= 0) return sourceOf(header, header.frames.label.indexOf(view.line));
    if (view.stack <= 0) return null;
    const tree = page.shownStacks.tree(view);
    const ofTelling = sourceOf(header, tree.frame(tree.telling(view.stack)));
    if (view.culprit >= 0) return ofTelling;
    return sourceOf(header, tree.frame(view.stack)) ?? ofTelling;
}

export function showSource(page: PageView): void {
    const panel = byId("source");
    const source = page.header.sources.length > 0 ? chosenSource(page) : null;
    panel.hidden = source === null;
    panel.replaceChildren(
        ...(source
            ? [
                  el(
                      "div",
                      { class: "headline" },
                      el("h2", { class: "place" }, source.place),
                      el("span", { class: "grow" }),
                      saveButton(page, panel, "the source code"),
                  ),
                  sourceCode(source),
              ]
            : []),
    );
}
