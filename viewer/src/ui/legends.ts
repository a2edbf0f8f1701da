// The legends of colours.
import { kindColour } from "../draw/kinds";
import { layerColour, layers } from "../draw/chart";
import { asksForBlockers, requestedKnown, segmentsKnown } from "../data/header";
import { byId, el } from "./dom";
import type { PageView } from "./view";

/** `colour` may also be "hatch" (free memory), "line", "burst" or "emptied" (markers). */
export interface LegendEntry {
    colour: string;
    text: string;
}

function some(values: Float64Array): boolean {
    return values.some((value) => value > 0);
}

export function chartLegend({ colours, model }: PageView): LegendEntry[] {
    const { bins } = model;
    const entries = layers
        .filter(([name]) => name === "requested" || some(bins[name] as Float64Array))
        .map(([name, text]) => ({
            colour: name === "held" ? "hatch" : layerColour(colours, name),
            text:
                name === "requested" && !requestedKnown(model.head)
                    ? "requested (of some blocks unknown: their size)"
                    : text,
        }));
    entries.push({ colour: "line", text: "highest allocated" });
    if (model.head.markers.some((marker) => marker.kind === "burst")) {
        entries.push({ colour: "burst", text: "many cudaMallocs" });
    }
    if (model.head.markers.some((marker) => marker.kind === "empty_cache")) {
        entries.push({ colour: "emptied", text: "empty_cache" });
    }
    if (some(bins.other)) {
        entries.push({
            colour: colours.other,
            text: "outside the pool, others as last reported (from above)",
        });
    }
    return entries;
}

/** The colours of the map, of the column at the cursor, and of the segments. */
export function mapLegend({ colours, kinds, model, view }: PageView): LegendEntry[] {
    const named =
        view.culprit >= 0 || asksForBlockers(model.head.cards[view.card])
            ? [{ colour: colours.pin, text: "blocks free memory" }]
            : [];
    if (kinds) {
        return [
            ...kinds.names.map((text, kind) => ({ colour: kindColour(colours, kind), text })),
            { colour: colours.freeKind, text: "free" },
            ...named,
        ];
    }
    const inUse = { colour: colours.use, text: "in use" };
    if (!segmentsKnown(model.head)) return [inUse];
    return [
        inUse,
        ...(some(model.bins.held) ? [{ colour: "hatch", text: "hole" }] : []),
        { colour: colours.cached, text: "cached" },
        ...named,
    ];
}

function element({ colour, text }: LegendEntry): HTMLElement {
    const named = ["hatch", "line", "burst", "emptied"].includes(colour);
    const box = el("i", named ? { class: colour } : {});
    if (!named) box.style.background = colour;
    return el("span", {}, box, text);
}

export function fillLegends(page: PageView): void {
    byId("chart-legend").replaceChildren(...chartLegend(page).map(element));
    byId("map-legend").replaceChildren(...mapLegend(page).map(element));
}
