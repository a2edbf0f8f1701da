// What the colours mean, beside each picture.
import { kindColour } from "../draw/kinds";
import { layerColour, layers } from "../draw/chart";
import { byId, el } from "./dom";
import type { Page } from "./page";

function entry(colour: string | null, text: string): HTMLElement {
    const box = el("i", colour === null ? { class: "hatch" } : {});
    if (colour !== null) box.style.background = colour;
    return el("span", {}, box, text);
}

export function fillLegends(page: Page): void {
    const { colours, model } = page;
    const { bins } = page.model;
    const some = (values: Float64Array): boolean => values.some((value) => value > 0);
    const chart = layers.filter(([name]) => name === "requested" || name === "held" || some(bins[name] as Float64Array))
        .map(([name, label]) => entry(name === "held" ? null : layerColour(colours, name), label));
    if (some(bins.other)) chart.push(entry(colours.other, "used by others"));
    byId("chart-legend").replaceChildren(...chart);
    const { kinds } = page;
    byId("kinds-legend").hidden = !kinds;
    if (kinds) {  // names can be long: a row of their own
        byId("kinds-legend").replaceChildren(...kinds.names.map((name, kind) => entry(kindColour(colours, kind), name)), entry(colours.freeKind, "free"));
        byId("map-legend").replaceChildren();
        return;
    }
    const pins = model.head.cards.some((card) => card.culprits.length > 0);
    byId("map-legend").replaceChildren(entry(colours.use, "in use"), entry(null, "hole held open"), entry(colours.cached, "cached"),
        ...(pins ? [entry(colours.pin, "block that pins")] : []));
}
