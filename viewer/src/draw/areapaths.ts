// The stacked areas of memory over time as paths, for SVG.
import type { AreaData, AreaFrame } from "./areas";
import { type Colours, hatched } from "./colours";
import type { Layer } from "./surface";
import type { Window } from "./timeaxis";

export function drawAreaPaths(
    layer: Layer,
    data: AreaData,
    { t0, t1 }: Window,
    frame: AreaFrame,
    areas: [values: Float64Array, colour: string][],
    colours: Colours,
): void {
    const { context } = layer;
    const { left, right } = frame;
    const { bins } = data;
    const step = (data.to - data.from) / bins.count;
    const first = Math.max(0, Math.floor((t0 - data.from) / step));
    const last = Math.min(bins.count - 1, Math.ceil((t1 - data.from) / step));
    const x = (bin: number): number =>
        Math.max(
            left,
            Math.min(right, left + ((data.from + bin * step - t0) / (t1 - t0)) * (right - left)),
        );
    const y = (bytes: number): number =>
        frame.bottom - (bytes / frame.most) * (frame.bottom - frame.top);
    context.fillStyle = colours.ground;
    context.fillRect(left, frame.top, right - left, frame.bottom - frame.top);
    const lower = new Float64Array(bins.count);
    const upper = new Float64Array(bins.count);
    for (const [values, colour] of areas) {
        for (let i = first; i <= last; ++i) upper[i] = lower[i] + values[i];
        context.beginPath();
        for (let i = first; i <= last; ++i) {
            context.lineTo(x(i), y(upper[i]));
            context.lineTo(x(i + 1), y(upper[i]));
        }
        for (let i = last; i >= first; --i) {
            context.lineTo(x(i + 1), y(lower[i]));
            context.lineTo(x(i), y(lower[i]));
        }
        context.fillStyle = colour || hatched(context, colours);
        context.fill();
        lower.set(upper);
    }
    if (frame.capacity !== null) {
        context.fillStyle = colours.other;
        for (let i = first; i <= last; ++i) {
            if (bins.other[i] > 0) {
                context.fillRect(
                    x(i),
                    y(frame.capacity),
                    x(i + 1) - x(i),
                    y(frame.capacity - bins.other[i]) - y(frame.capacity),
                );
            }
        }
    }
    context.strokeStyle = colours.ink;
    context.globalAlpha = 0.4;
    context.beginPath();
    for (let i = first; i <= last; ++i) {
        context.lineTo(x(i), y(bins.allocated_max[i]));
        context.lineTo(x(i + 1), y(bins.allocated_max[i]));
    }
    context.stroke();
    context.globalAlpha = 1;
}
