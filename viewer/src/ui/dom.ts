// Elements from plain values. Text is always set as text, so nothing from a trace becomes markup.

type Child = Node | string | null | false;

export function el(
    tag: string,
    attributes: Record<string, string> = {},
    ...children: Child[]
): HTMLElement {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    for (const child of children) if (child) element.append(child);
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

export function table(heads: string[], rows: Child[][], caption = ""): HTMLElement {
    return el(
        "table",
        {},
        caption ? el("caption", {}, caption) : null,
        el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))),
        el(
            "tbody",
            {},
            ...rows.map((row) => el("tr", {}, ...row.map((cell) => el("td", {}, cell)))),
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

export function showTip(text: string, x: number, y: number): void {
    const tip = byId("tip");
    tip.hidden = text === "";
    if (!text) return;
    tip.textContent = text;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 6))}px`;
    tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 8 : y + 18}px`;
}
