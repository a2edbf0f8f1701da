// Draws events above the memory over time. Out of memory and retries have a sign, a line and, if
// there is room, a word. Other events have small signs in the row below, which never cover these.
import type { Marker } from "../data/header";
import type { DeviceModel } from "../data/model";
import type { Colours } from "./colours";
import { type Layer, font } from "./surface";
import { plotLeft, timeX, type Window } from "./timeaxis";

export const signsHeight = 13; // the row of signs and words
export const markersHeight = 24; // with the row of small signs
const reach = 6; // half the width of a sign
const near = 13; // signs closer than this share a word

export function markerColour(colours: Colours, marker: Marker): string {
    return marker.kind === "oom"
        ? colours.oom
        : marker.kind === "retry"
          ? colours.retry
          : colours.faint;
}

const isMain = (marker: Marker): boolean => marker.kind === "oom" || marker.kind === "retry";

export interface MarkerGroup {
    from: number;
    to: number;
    ooms: number;
    retries: number;
}

/** Groups neighbours of `signs` (ascending) that are too close for a word each. */
export function groupMarkers(signs: { x: number; oom: boolean }[]): MarkerGroup[] {
    const groups: MarkerGroup[] = [];
    for (const { x, oom } of signs) {
        const last = groups[groups.length - 1];
        if (last && x - last.to < near) last.to = x;
        else groups.push({ from: x, to: x, ooms: 0, retries: 0 });
        ++groups[groups.length - 1][oom ? "ooms" : "retries"];
    }
    return groups;
}

/** The word of a group: its most important event. */
export function groupWord({ ooms, retries }: MarkerGroup): string {
    if (ooms > 0) return ooms > 1 ? `${ooms} OOMs` : "OOM";
    return retries > 1 ? `${retries} retries` : "retry";
}

/**
 * Where the groups' words go: right of their signs, otherwise left, never over a sign or another
 * word. null = no room.
 */
export function placeWords(
    groups: MarkerGroup[],
    widths: number[],
    left: number,
    right: number,
): (number | null)[] {
    const places: (number | null)[] = groups.map(() => null);
    const taken: [from: number, to: number][] = groups.map(({ from, to }) => [
        from - reach,
        to + reach,
    ]);
    // Out of memory first, then in order of time.
    const order = groups
        .map((_, i) => i)
        .sort((a, b) => Number(groups[b].ooms > 0) - Number(groups[a].ooms > 0) || a - b);
    for (const i of order) {
        for (const begin of [groups[i].to + reach + 3, groups[i].from - reach - 3 - widths[i]]) {
            const end = begin + widths[i];
            if (
                begin < left ||
                end > right ||
                taken.some(([from, to]) => begin < to + 2 && end > from - 2)
            ) {
                continue;
            }
            places[i] = begin;
            taken.push([begin, end]);
            break;
        }
    }
    return places;
}

const sorted = new WeakMap<Marker[], Marker[]>();

function inTime(markers: Marker[]): Marker[] {
    let order = sorted.get(markers);
    if (!order) sorted.set(markers, (order = [...markers].sort((a, b) => a.time_ns - b.time_ns)));
    return order;
}

export function drawMarkers(
    layer: Layer,
    model: DeviceModel,
    window: Window,
    bottom: number,
    colours: Colours,
): void {
    const { context, width } = layer;
    const { markers, tick_ns } = model.head;
    const [first, last] = [window.t0 * tick_ns, window.t1 * tick_ns];
    const shown = inTime(markers)
        .filter((marker) => marker.time_ns >= first && marker.time_ns <= last)
        .map((marker) => ({ marker, x: timeX(layer, window, marker.time_ns / tick_ns) }));
    let lastX = -Infinity;
    let lastKind = "";
    for (const { marker, x } of shown) {
        if (isMain(marker) || (marker.kind === lastKind && x - lastX < 1)) continue;
        lastKind = marker.kind;
        lastX = x;
        drawSmall(context, marker, x, colours);
    }
    const main = shown.filter(({ marker }) => isMain(marker));
    for (const oom of [false, true]) {
        // drawn last, so that out of memory is on top
        lastX = -Infinity;
        for (const { marker, x } of main) {
            if ((marker.kind === "oom") !== oom || x - lastX < 1) continue;
            lastX = x;
            drawSign(context, marker, x, bottom, colours);
        }
    }
    context.font = font(11, "bold");
    context.textAlign = "left";
    const groups = groupMarkers(main.map(({ marker, x }) => ({ x, oom: marker.kind === "oom" })));
    const widths = groups.map((group) => context.measureText(groupWord(group)).width);
    placeWords(groups, widths, plotLeft, width).forEach((place, i) => {
        if (place === null) return;
        context.fillStyle = groups[i].ooms > 0 ? colours.oom : colours.retry;
        context.fillText(groupWord(groups[i]), place, signsHeight - 2);
    });
}

function drawSign(
    context: CanvasRenderingContext2D,
    marker: Marker,
    x: number,
    bottom: number,
    colours: Colours,
): void {
    context.strokeStyle = context.fillStyle = markerColour(colours, marker);
    context.beginPath();
    context.moveTo(x, signsHeight - 2);
    context.lineTo(x, bottom);
    context.stroke();
    context.beginPath();
    if (marker.kind === "oom") {
        context.moveTo(x - reach, 1);
        context.lineTo(x + reach, 1);
        context.lineTo(x, signsHeight - 1);
    } else {
        context.arc(x, signsHeight - 6, 4, 0, 7);
    }
    context.fill();
}

function drawSmall(
    context: CanvasRenderingContext2D,
    marker: Marker,
    x: number,
    colours: Colours,
): void {
    context.strokeStyle = context.fillStyle = markerColour(colours, marker);
    context.globalAlpha = 0.8;
    context.beginPath();
    if (marker.kind === "empty_cache") {
        // an open square: the cache was emptied
        context.rect(x - 3, signsHeight + 2, 6, 6);
        context.stroke();
    } else {
        if (marker.kind === "burst") {
            // a small tower: several cudaMallocs in a row
            context.rect(x - 1, signsHeight + 1, 3, 8);
        } else {
            context.arc(x, signsHeight + 5, 2.5, 0, 7);
        }
        context.fill();
    }
    context.globalAlpha = 1;
}

/** The marker with a sign at a place of the chart. Each row prefers its own markers. */
export function markerAt(
    layer: Layer,
    model: DeviceModel,
    window: Window,
    x: number,
    y: number,
): Marker | null {
    if (y > markersHeight) return null;
    let best: Marker | null = null;
    let least = Infinity;
    for (const marker of model.head.markers) {
        const distance = Math.abs(timeX(layer, window, marker.time_ns / model.head.tick_ns) - x);
        if (distance > reach) continue;
        const cost =
            distance +
            (isMain(marker) === y < signsHeight ? 0 : 100) -
            (marker.kind === "oom" ? 1 : 0);
        if (cost >= least) continue;
        least = cost;
        best = marker;
    }
    return best;
}
