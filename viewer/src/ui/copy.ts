// Copies text. A file that is opened from a disk may not use the clipboard in every browser.
import type { Stacks } from "../data/stacks";
import { byId, el } from "./dom";
import type { PageView } from "./view";

/** Returns whether it was copied. */
export async function copy(text: string): Promise<boolean> {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        // Without clipboard permission: copy from a text field, which every browser allows after a
        // click.
        const field = document.createElement("textarea");
        field.value = text;
        const dialog = byId<HTMLDialogElement>("dialog");
        (dialog.open ? byId("dialog-body") : document.body).append(field);
        field.select();
        const done = document.execCommand("copy");
        field.remove();
        return done;
    }
}

/** Copies `text` and says so. `what` names it. */
export async function copyAndSay(page: PageView, what: string, text: string): Promise<void> {
    const done = await copy(text);
    page.say(done ? `${what} copied` : "the browser does not allow copying here");
}

/** A button that copies `text`. */
export function copyButton(page: PageView, what: string, text: string): HTMLElement {
    const title = `copy the ${what}`;
    const button = el(
        "button",
        { type: "button", class: "copy", "aria-label": title, title },
        "copy",
    );
    // A click on the button must not choose the row that it is in.
    button.addEventListener("click", (event) => {
        event.stopPropagation();
        void copyAndSay(page, what, text);
    });
    return button;
}

/** One line per frame, the innermost first: its name and its place. */
export function stackText(stacks: Stacks, nodes: number[]): string {
    return nodes.map((node) => `${stacks.label(node)}  (${stacks.place(node)})`).join("\n");
}

/** Copies the marked stack, otherwise that of the selected block. */
export async function copyStack(page: PageView): Promise<void> {
    const { model, shownStacks, stacks, view } = page;
    const tree = shownStacks.tree(view);
    if (view.stack > 0 && view.stack < tree.count) {
        const nodes = tree.frames(view.stack);
        if (view.shape === "bottom-up") nodes.reverse();
        await copyAndSay(page, "stack", stackText(tree, nodes));
    } else if (view.selected >= 0 && view.selected < model.blocks.count) {
        const nodes = stacks.frames(model.blocks.stack[view.selected]);
        await copyAndSay(page, "stack of the block", stackText(stacks, nodes));
    } else {
        page.say("mark a box of the stacks or select a block first");
    }
}
