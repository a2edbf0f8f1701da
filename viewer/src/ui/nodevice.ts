// A page of processes without a device. It has no pictures: it shows what the report says.
import type { Header, Process } from "../data/header";
import { lineList } from "./cards";
import { byId, el, withCode } from "./dom";

function processText({ title, process, lines, notes }: Process): HTMLElement[] {
    return [
        el("h2", {}, [title, process].filter(Boolean).join(" · ")),
        ...lineList(lines),
        el("ul", {}, ...notes.map((note) => el("li", {}, ...withCode(note)))),
    ];
}

export function showWithoutDevice({ processes }: Header): void {
    byId("plain").replaceWith(
        el("section", { id: "plain", class: "no-device" }, ...processes.flatMap(processText)),
    );
}
