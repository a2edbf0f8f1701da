// Starts the page. It reads the embedded data while the browser is still loading the file: first
// the pictures that need no blocks, then the blocks. If something is wrong, the page says so in one
// sentence. Workers run the same script.
import { type Header, parseHeader } from "./data/header";
import type { DeviceModel } from "./data/model";
import { readBlocks, readOverview } from "./load/device";
import { FileElements } from "./load/elements";
import { WorkerSearch } from "./load/expressions";
import { serve } from "./load/worker";
import { byId } from "./ui/dom";
import { showWithoutDevice } from "./ui/nodevice";
import { type DeviceSource, Page } from "./ui/page";

async function start(script: string): Promise<void> {
    const root = document.documentElement;
    const file = new FileElements();
    const text = await file.take("ft-header");
    if (!text) throw new Error("the file is cut off: its header is missing");
    const header: Header = parseHeader(text);
    if (header.devices.length === 0) {
        showWithoutDevice(header);
        root.dataset.ready = "true";
        return;
    }
    const page = new Page(
        header,
        deviceSource(file, header, script),
        new WorkerSearch(script),
        fail,
    );
    await page.open();
    root.dataset.overviewMs = performance.now().toFixed(0); // drawn, since navigation
    requestAnimationFrame(() =>
        setTimeout(() => (root.dataset.paintMs = performance.now().toFixed(0)), 0),
    ); // and visible on the screen
    const end = file.take("ft-end");
    await page.complete;
    if ((await end) !== "complete") throw new Error("the file is cut off: its end is missing");
    root.dataset.blocks = String(header.devices.reduce((sum, device) => sum + device.blocks, 0));
    root.dataset.interactiveMs = performance.now().toFixed(0);
    root.dataset.ready = "true";
}

// Each part of a device is in the file once, so it is read only once.
function deviceSource(file: FileElements, header: Header, script: string): DeviceSource {
    const overviews = new Map<number, Promise<DeviceModel>>();
    const wholes = new Map<number, Promise<DeviceModel>>();
    const once = (
        models: Map<number, Promise<DeviceModel>>,
        index: number,
        read: () => Promise<DeviceModel>,
    ): Promise<DeviceModel> => {
        const model = models.get(index) ?? read();
        models.set(index, model);
        return model;
    };
    const progressOf = new Map<number, (blocks: number) => void>();
    const whole = (index: number, overview: DeviceModel): Promise<DeviceModel> =>
        once(wholes, index, async () => {
            const model = await readBlocks(file, overview, script, (blocks) =>
                progressOf.get(index)?.(blocks),
            );
            overviews.set(index, Promise.resolve(model));
            return model;
        });
    const overview = (index: number): Promise<DeviceModel> =>
        once(overviews, index, async () => {
            return readOverview(file, header.devices[index]);
        });
    const blocks = async (
        index: number,
        progress: (blocks: number) => void,
    ): Promise<DeviceModel> => {
        progressOf.set(index, progress);
        return whole(index, await overview(index));
    };
    return { overview, blocks };
}

function fail(error: unknown): void {
    const plain = byId("plain");
    plain.hidden = false;
    plain.textContent = `This page cannot be shown: ${(error as Error).message}. Write the page again with fraganalyze.`;
    byId("main").hidden = true;
    document.documentElement.dataset.failed = "true";
}

if (typeof document === "undefined") {
    serve(self as unknown as Parameters<typeof serve>[0]);
} else {
    byId("plain").textContent = "Reading the data ...";
    void start(document.currentScript?.textContent ?? "").catch(fail);
}
