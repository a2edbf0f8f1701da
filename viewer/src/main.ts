// Starts the page: reads what the writer embedded, first the pictures that need no block, then the
// blocks, and says plainly what is wrong when something is.
import { type Columns, readPack } from "./data/columns";
import { type DeviceHeader, type Header, parseHeader } from "./data/header";
import { type DeviceModel, makeModel } from "./data/model";
import { Page } from "./ui/page";
import { byId } from "./ui/dom";

function textOf(id: string): string | null {
    return document.getElementById(id)?.textContent ?? null;
}

async function readDevice(head: DeviceHeader): Promise<DeviceModel> {
    const packs = new Map<string, Columns>();
    for (const description of head.packs) {
        const element = document.getElementById(description.id);
        packs.set(description.id, await readPack(element?.textContent, description));
        element?.remove();  // the text is not needed again; megabytes of it are
    }
    return makeModel(head, packs);
}

async function start(): Promise<void> {
    const began = performance.now();
    const text = textOf("ft-header");
    if (!text) throw new Error("the file is cut off: its header is missing");
    const header: Header = parseHeader(text);
    if (header.devices.length === 0) throw new Error("the trace has no device");
    if (textOf("ft-end") !== "complete") throw new Error("the file is cut off: its end is missing");
    const models = new Map<number, DeviceModel>();
    const page = new Page(header, async (index) => {
        const known = models.get(index);
        if (known) return known;
        const model = await readDevice(header.devices[index]);
        models.set(index, model);
        return model;
    });
    await page.open();
    const root = document.documentElement;
    root.dataset.blocks = String(header.devices.reduce((sum, device) => sum + device.blocks, 0));
    root.dataset.loadMs = (performance.now() - began).toFixed(0);
    root.dataset.interactiveMs = performance.now().toFixed(0);  // since navigation
    root.dataset.ready = "true";
}

function fail(error: unknown): void {
    const plain = byId("plain");
    plain.hidden = false;
    plain.textContent = `This page cannot be shown: ${(error as Error).message}. Write it again with fraganalyze.`;
    byId("main").hidden = true;
    document.documentElement.dataset.failed = "true";
}

const plain = document.getElementById("plain");
if (plain) plain.textContent = "Reading the data ...";
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => void start().catch(fail));
else void start().catch(fail);
