// Steps and phases below the chart, a lane each; what is under the pointer there.
import type { DeviceModel } from "../data/model";
import { upperBound } from "../data/model";
import { phaseInLane } from "../data/phases";
import type { Colours } from "./colours";
import { type Layer, fitText, font } from "./surface";

export const laneHeight = 13;
const lanesLeft = 64;

interface Window { t0: number; t1: number }

export function lanesHeight(model: DeviceModel): number {
    return model.head.phase_lanes.length * laneHeight;
}

export function drawLanes(layer: Layer, model: DeviceModel, window: Window, top: number, colours: Colours): void {
    const { context, width } = layer;
    const { phases, head, lastTick } = model;
    context.font = font(10);
    context.textAlign = "right";
    context.fillStyle = colours.faint;
    head.phase_lanes.forEach((name, lane) => {
        if (name !== head.phase_lanes[lane - 1]) context.fillText(fitText(context, name, lanesLeft - 8), lanesLeft - 6, top + lane * laneHeight + 10);
    });
    context.textAlign = "left";
    const scale = (width - lanesLeft) / (window.t1 - window.t0);
    const reached = head.phase_lanes.map(() => -Infinity);  // what ends within a drawn pixel is part of it
    const last = upperBound(phases.start, window.t1);
    for (let i = 0; i < last; ++i) {
        const end = Math.min(phases.end[i], lastTick);
        if (end < window.t0) continue;
        const lane = phases.lane[i];
        const left = Math.max(lanesLeft, lanesLeft + (phases.start[i] - window.t0) * scale);
        const right = Math.min(width, lanesLeft + (end - window.t0) * scale);
        if (right - reached[lane] < 0.5) continue;
        reached[lane] = Math.max(right, left + 0.5);
        const y = top + lane * laneHeight;
        context.fillStyle = colours.phases[phases.name[i] % colours.phases.length];
        context.fillRect(left, y, Math.max(0.5, right - left - (right - left > 3 ? 1 : 0)), laneHeight - 2);
        if (right - left > 24) {
            context.fillStyle = colours.ink;
            context.fillText(fitText(context, head.phase_names[phases.name[i]], right - left - 6), left + 3, y + 9);
        }
    }
}

/** The phase at a tick of a lane; -1 = none. */
export function hitLane(model: DeviceModel, lane: number, tick: number): number {
    return phaseInLane(model.phases, lane, tick);
}
