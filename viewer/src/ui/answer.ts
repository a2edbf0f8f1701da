// The panel beside the verdict. It answers the question of the first screen, with the most
// important section first. The analysis chooses the screen; this table orders the sections.
import { asksForBlockers, type Card, type Screen } from "../data/header";
import {
    blockedSection,
    growthSection,
    holdersSection,
    holesSection,
    nearMissSection,
    outsideSection,
    savingSection,
    type Section,
} from "./answersections";
import { choosableRows } from "./cards";
import { byId, el, keepFocus } from "./dom";
import type { PageView } from "./view";

type SectionMaker = (page: PageView, card: Card) => Section | null;

const orders: Record<Screen, SectionMaker[]> = {
    blocked: [blockedSection, holdersSection, growthSection, savingSection, outsideSection],
    // The verdict has the savings.
    shortage: [holdersSection, growthSection, outsideSection, blockedSection],
    growth: [growthSection, holdersSection, savingSection, outsideSection, blockedSection],
    others: [outsideSection, holdersSection, savingSection, growthSection, blockedSection],
    retry: [blockedSection, holdersSection, growthSection, savingSection, outsideSection],
    near_miss: [
        nearMissSection,
        holdersSection,
        growthSection,
        savingSection,
        outsideSection,
        blockedSection,
    ],
    peak: [
        holdersSection,
        growthSection,
        savingSection,
        outsideSection,
        nearMissSection,
        blockedSection,
    ],
    state: [holdersSection, holesSection, outsideSection, blockedSection],
};

/** Shows the sections that have content. Without any, the panel itself is not shown. */
export function showAnswer(page: PageView, card: Card | undefined): void {
    const panel = byId("culprits-list");
    const makers = card ? orders[card.screen] : [];
    const sections = makers.map((make) => make(page, card!));
    byId("culprits").hidden = sections.every((section) => section === null);
    byId("culprits-title").textContent = card?.question ?? "";
    byId("culprits-hint").textContent = asksForBlockers(card) ? "click to mark blocks" : "";
    byId("culprits-table").hidden = !card || card.culprits.length + card.holders.length === 0;
    keepFocus(panel, choosableRows, () =>
        panel.replaceChildren(
            ...sections.flatMap((section, at) =>
                section === null
                    ? []
                    : [
                          // The question is the heading of the section that answers it.
                          ...(at > 0 || section.always ? [el("h3", {}, section.heading)] : []),
                          ...section.content,
                      ],
            ),
        ),
    );
}
