// A comment that a person adds. The link keeps it, so that whoever opens the link reads it.
import { withEscapes } from "../data/escapes";
import { longestComment } from "../state/hash";
import { byId } from "./dom";
import type { PageView } from "./view";

const field = (): HTMLTextAreaElement => byId<HTMLTextAreaElement>("comment-text");

export function connectComment(page: PageView): void {
    field().maxLength = longestComment;
    field().addEventListener("input", () => page.change({ comment: field().value }));
    field().addEventListener("blur", () => {
        byId("comment").hidden = page.view.comment === "";
    });
    byId("to-comment").addEventListener("click", writeComment);
}

/** Opens the comment to be written. */
export function writeComment(): void {
    byId("comment").hidden = false;
    field().focus();
}

export function showComment({ view }: PageView): void {
    const { comment } = view;
    if (field().value !== comment) field().value = comment;
    if (document.activeElement !== field()) byId("comment").hidden = comment === "";
    field().rows = Math.min(8, comment.split("\n").length);
    byId("comment-print").textContent = withEscapes(comment); // a printed field would be cut off
}
