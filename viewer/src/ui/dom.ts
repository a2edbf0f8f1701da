// Elements from plain values. Text is always set as text, so nothing from a trace becomes markup.

type Child = Node | string | null | false;

// These elements can hold the names of files, functions and settings.
const naming = new Set(["td", "th", "dt", "dd", "li", "p", "span", "code", "summary"]);

const longName = /\S{13,}/;
const betweenParts =
    /(?<=[/\\_=:,.-])(?=[\p{L}"'])|(?<=[/_=:])(?=\d)|(?<=\p{Ll}{2})(?=\p{Lu}\p{Ll})|(?<=[\p{L}\p{N}]{24})/u;

/**
 * A text whose long names may break after separators. The breaks are elements, because a character
 * of width zero would be copied with the name.
 */
export function breakable(text: string): (Node | string)[] {
    return text
        .split(/(\s+)/)
        .flatMap((word) =>
            longName.test(word)
                ? word
                      .split(betweenParts)
                      .flatMap((part, at) => (at > 0 ? [el("wbr"), part] : [part]))
                : [word],
        );
}

// Only our own commands: a name from a trace keeps its backticks.
const command = /`((?:fraganalyze|fragtrace|nsys) [^`]+)`/;

/** A sentence of the report, with the commands between its backticks as code. */
export function withCode(text: string): (Node | string)[] {
    return text.split(command).map((part, at) => (at % 2 === 1 ? el("code", {}, part) : part));
}

export function el(
    tag: string,
    attributes: Record<string, string> = {},
    ...children: Child[]
): HTMLElement {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    for (const child of children) {
        if (typeof child === "string" && naming.has(tag) && longName.test(child)) {
            element.append(...breakable(child));
        } else if (child) {
            element.append(child);
        }
    }
    return element;
}

/** `title` says what a click does. It is also the name of a button whose text is a symbol. */
export function button(text: string, title: string, click: () => void): HTMLElement {
    const name: Record<string, string> = /[\p{L}\p{N}]/u.test(text) ? {} : { "aria-label": title };
    const element = el("button", { type: "button", title, ...name }, text);
    element.addEventListener("click", click);
    return element;
}

/** Draws a panel anew. The element with the keyboard focus keeps it, by its place in the list. */
export function keepFocus(panel: HTMLElement, selector: string, draw: () => void): void {
    const places = (): HTMLElement[] => [...panel.querySelectorAll<HTMLElement>(selector)];
    const focused = places().indexOf(document.activeElement as HTMLElement);
    draw();
    places()[focused]?.focus();
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
    const element = document.getElementById(id);
    if (!element) throw new Error(`the page has no #${id}`);
    return element as T;
}

// Sizes, counts and times stay on one line.
const isFigure = (cell: Child): boolean =>
    typeof cell === "string" && /^[-+~<\d].{0,15}$/.test(cell);

/** Two figures of one cell, one below the other. */
export function stacked(above: Child, below: Child): HTMLElement {
    return el("div", { class: "stacked" }, el("div", {}, above), el("div", {}, below));
}

export function table(heads: string[], rows: Child[][], caption = ""): HTMLElement {
    return el(
        "table",
        {},
        caption ? el("caption", {}, caption) : null,
        el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))),
        el(
            "tbody",
            {},
            ...rows.map((row) =>
                el(
                    "tr",
                    {},
                    ...row.map((cell) => el("td", isFigure(cell) ? {} : { class: "wrap" }, cell)),
                ),
            ),
        ),
    );
}

export function showDialog(...content: Child[]): void {
    const dialog = byId<HTMLDialogElement>("dialog");
    byId("dialog-body").replaceChildren(
        ...content.filter((child): child is Node | string => Boolean(child)),
    );
    if (!dialog.open) dialog.showModal();
}

/**
 * Calls `act` in the frame after a change of size. An observer that changes sizes itself would be
 * called in a loop, which browsers report as an error.
 */
export function onResize(act: () => void): ResizeObserver {
    return new ResizeObserver(() => requestAnimationFrame(act));
}

interface Tip {
    text: () => string;
    x: number; // of the pointer
    y: number;
}

let tip: Tip | null = null;

/** Shows a text beside the pointer until `hideTip()`. `text` is asked again by `refreshTip()`. */
export function showTip(text: () => string, x: number, y: number): void {
    tip = { text, x, y };
    refreshTip();
}

export function hideTip(): void {
    tip = null;
    byId("tip").hidden = true;
}

/** What is under the pointer can change while the pointer rests. */
export function refreshTip(): void {
    if (!tip) return;
    const { x, y } = tip;
    const text = tip.text();
    const shown = byId("tip");
    shown.hidden = text === "";
    if (!text) return;
    shown.textContent = text;
    const box = shown.getBoundingClientRect();
    shown.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 6))}px`;
    shown.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 8 : y + 18}px`;
}
