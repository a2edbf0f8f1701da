// Marks every panel that can scroll further down. Otherwise a row that is cut in half would look
// like the last one. The style sheet shows the attribute `data-more`; a click on it scrolls.
import { byId, onResize } from "./dom";

const slack = 3; // pixels; too few to hide a letter
const hintHeight = 24; // pixels of the word "more", as in the style sheet

function watch(place: HTMLElement): void {
    const look = (): void => {
        const more = String(place.scrollHeight - place.clientHeight - place.scrollTop > slack);
        if (more !== place.dataset.more) place.dataset.more = more;
    };
    const sizes = onResize(look);
    const observe = (): void => {
        sizes.disconnect();
        sizes.observe(place);
        for (const child of place.children) sizes.observe(child);
    };
    observe();
    new MutationObserver(() => {
        observe();
        look();
    }).observe(place, { childList: true });
    place.addEventListener("scroll", look, { passive: true });
    place.addEventListener("click", (event) => {
        const fromBottom = place.getBoundingClientRect().bottom - event.clientY;
        if (event.target === place && place.dataset.more === "true" && fromBottom < hintHeight) {
            place.scrollBy({ top: place.clientHeight * 0.8 });
        }
    });
}

export function connectScrollHints(): void {
    for (const id of [
        "main",
        "culprits-list",
        "range",
        "side",
        "dialog",
        "chart-legend",
        "map-legend",
    ]) {
        watch(byId(id));
    }
    watch(byId("icicle").parentElement!.parentElement!);
}
