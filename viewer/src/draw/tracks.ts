// Draws pinned and managed memory below memory over time: one track each, on its own scale from 0
// to its peak. Such memory belongs to the process and not to the card, so it has no place in the
// chart. Each pixel shows the most memory within it.
import { formatBytes } from "../data/format";
import type { DeviceModel } from "../data/model";
import { type Track, bytesAt, mostIn } from "../data/overtime";
import type { Colours } from "./colours";
import { type Layer, fitText, font } from "./surface";
import { plotLeft, plotRight, stripWidth, type Window } from "./timeaxis";

const trackHeight = 28;
const gap = 4; // above each track

export function tracksHeight(model: DeviceModel): number {
    return model.tracks.length * (trackHeight + gap);
}

/** The track at a distance below the top of the first one. */
export function trackAt(model: DeviceModel, below: number): Track | undefined {
    return below < 0 ? undefined : model.tracks[Math.floor(below / (trackHeight + gap))];
}

const bottomOf = (top: number, at: number): number => top + (at + 1) * (trackHeight + gap);
const heightOf = (track: Track, bytes: number): number => (bytes / track.peak.bytes) * trackHeight;

export function drawTracks(
    layer: Layer,
    model: DeviceModel,
    window: Window,
    top: number,
    colours: Colours,
): void {
    const { context } = layer;
    const right = plotRight(layer);
    const columns = Math.max(1, Math.round(right - plotLeft));
    model.tracks.forEach((track, at) => {
        const bottom = bottomOf(top, at);
        context.fillStyle = colours.ground;
        context.fillRect(plotLeft, bottom - trackHeight, right - plotLeft, trackHeight);
        const most = mostIn(track, window.t0, window.t1, columns);
        context.beginPath();
        context.moveTo(plotLeft, bottom);
        most.forEach((bytes, column) => {
            const y = bottom - heightOf(track, bytes);
            context.lineTo(plotLeft + column, y);
            context.lineTo(plotLeft + column + 1, y);
        });
        context.lineTo(right, bottom);
        context.fillStyle = colours.use;
        context.fill();
        context.textAlign = "right";
        context.font = font(10);
        context.fillStyle = colours.faint;
        context.fillText(track.name, plotLeft - 6, bottom - trackHeight + 11);
        context.fillText(
            fitText(context, formatBytes(track.peak.bytes), plotLeft - 8),
            plotLeft - 6,
            bottom - trackHeight + 24,
        );
    });
    context.textAlign = "left";
}

/** At the right: the memory at the cursor. */
export function drawTracksAt(
    layer: Layer,
    context: CanvasRenderingContext2D,
    model: DeviceModel,
    tick: number,
    top: number,
    colours: Colours,
): void {
    const left = layer.width - stripWidth;
    model.tracks.forEach((track, at) => {
        const bottom = bottomOf(top, at);
        const height = heightOf(track, bytesAt(track, tick));
        context.fillStyle = colours.ground;
        context.fillRect(left, bottom - trackHeight, stripWidth, trackHeight);
        context.fillStyle = colours.use;
        context.fillRect(left, bottom - height, stripWidth, height);
    });
}
