// The view with which a device opens: the first failure in a window without the start-up, changed
// by what a link asks for. Parts that the device does not have are ignored.
import { activeWindow } from "../data/firstwindow";
import { asksForBlockers, openingCard } from "../data/header";
import { cardTick, type DeviceModel } from "../data/model";
import { peakTick } from "../data/sweep";
import { clampView, nothingChosen, type View } from "./store";

export function openedView(
    model: DeviceModel,
    device: number,
    current: View,
    wanted: Partial<View>,
    stackCount: number,
): View {
    const { head, lastTick } = model;
    const card =
        wanted.card !== undefined && wanted.card < head.cards.length
            ? wanted.card
            : openingCard(head);
    const cursor = card >= 0 ? cardTick(head, head.cards[card]) : peakTick(model);
    const [t0, t1] = activeWindow(model);
    const view: View = {
        ...current,
        ...nothingChosen,
        t0,
        t1,
        a0: 0,
        a1: Math.max(1, head.axis_bytes),
        card,
        cursor,
        stacks: asksForBlockers(head.cards[card]) ? "holes" : "live",
        ...wanted,
        device,
    };
    view.card = card;
    if (view.whatif >= head.whatif.length) view.whatif = -1;
    if (view.culprit >= (head.cards[card]?.culprits.length ?? 0)) view.culprit = -1;
    if (view.selected >= head.blocks) view.selected = -1;
    // A bottom-up tree has nodes of its own.
    if (view.shape !== "bottom-up" && view.stack >= stackCount) view.stack = -1;
    return clampView(view, lastTick, head.axis_bytes);
}
