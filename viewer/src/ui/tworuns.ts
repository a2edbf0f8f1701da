// The first screen of a page that compares two runs: what `fraganalyze compare` says, both runs'
// memory on one axis, and the lines that differ. Everything here leads to its place in a run.
import { formatBytes, formatMoment } from "../data/format";
import {
    type ComparedDevice,
    type ComparedPlace,
    type Pair,
    segmentsKnown,
    type TimeSpanNs,
    type TwoRuns,
} from "../data/header";
import type { DeviceModel } from "../data/model";
import {
    type AxisUnit,
    bytesAt,
    chosenAxis,
    type CommonAxis,
    commonAxes,
    comparedDevice,
    counterpart,
    lineIn,
    otherSide,
    runNames,
    type Side,
    sideOf,
    sides,
    spanView,
    switchedTimes,
} from "../data/tworuns";
import { drawOpenPlace, type DrawnRuns, drawTwoRuns, positionAt } from "../draw/tworuns";
import { type Layer, Surface } from "../draw/surface";
import { jumpTo } from "./actions";
import { button, byId, el, hideTip, keepFocus, showTip } from "./dom";
import { saveButton } from "./image";
import { comparedFigures, comparedLines, comparedPhases, comparedSettings } from "./tworunstables";
import type { PageView, Picture } from "./view";

export class TwoRunsPanel implements Picture {
    readonly surface = new Surface(byId("runs-chart").parentElement!);
    private models: Pair<DeviceModel> | null = null; // null: not read yet, or one run has none
    private axes: CommonAxis[] = [];
    private row: ComparedDevice | null = null;

    constructor(
        private readonly page: PageView,
        private readonly said: TwoRuns,
    ) {
        byId("comparison").hidden = false;
        const canvas = byId("runs-chart");
        const select = byId<HTMLSelectElement>("runs-axis");
        select.addEventListener("change", () => page.change({ axis: select.value as AxisUnit }));
        canvas.addEventListener("pointermove", (event) => {
            const text = (): string => {
                const at = this.positionOf(event);
                return at === null ? "" : this.textAt(at);
            };
            showTip(text, event.clientX, event.clientY);
        });
        canvas.addEventListener("pointerleave", hideTip);
        canvas.addEventListener("click", (event) => {
            const at = this.positionOf(event);
            if (at !== null) jumpTo(page, this.axis.tick(this.side, at));
        });
        byId("switch-run").hidden = false;
        byId("switch-run").addEventListener("click", () => this.switchRun());
        new ResizeObserver(() => this.draw()).observe(this.surface.box);
    }

    private get side(): Side {
        return sideOf(this.page.header, this.page.view.device)!;
    }

    private get axis(): CommonAxis {
        return chosenAxis(this.axes, this.page.view.axis);
    }

    private get drawn(): DrawnRuns | null {
        const { models, axis } = this;
        if (!models) return null;
        const [a, b] = models;
        return { models, axis, reserved: [segmentsKnown(a.head), segmentsKnown(b.head)] };
    }

    private positionOf(event: MouseEvent): number | null {
        const { surface } = this;
        const left = surface.box.getBoundingClientRect().left;
        return this.models ? positionAt(surface.base, this.axis, event.clientX - left) : null;
    }

    // ---- what is open ---------------------------------------------------------------------------

    /** Reads the pictures of the device in both runs, when another device was opened. */
    async open(): Promise<void> {
        const { page } = this;
        const row = comparedDevice(page.header, page.view.device);
        if (row === this.row) return;
        this.row = row;
        this.models = null;
        const [a, b] = row?.devices ?? [null, null];
        if (row && a !== null && b !== null && !row.state) {
            const models: Pair<DeviceModel> = [await page.overviewOf(a), await page.overviewOf(b)];
            if (row !== this.row) return; // another device was opened since
            this.models = models;
            this.axes = commonAxes(models);
        }
        this.show();
        this.draw();
    }

    /** Opens the same device in the other run, at the same place of the common axis. */
    switchRun(): void {
        const { page, side } = this;
        const other = counterpart(page.header, page.view.device);
        if (other === null) {
            page.say(`Run ${runNames[otherSide(side)]} has no memory on this device.`);
            return;
        }
        const { view } = page;
        const line = this.row!.lines.find((one) => lineIn(page.header, one, side) === view.line);
        page.goTo(other, {
            ...(this.models ? switchedTimes(this.axis, side, view) : {}),
            line: line ? lineIn(page.header, line, otherSide(side)) : view.line,
            stack: view.shape === "bottom-up" ? -1 : view.stack,
            stacks: view.stacks,
        });
    }

    // Shows a place of a run, and moves the keyboard there. `gpu` null: of the open device.
    private goToPlace(side: Side, gpu: number | null, span: TimeSpanNs): void {
        const { page } = this;
        const row = gpu === null ? this.row : this.said.devices.find((one) => one.gpu === gpu);
        const device = row?.devices[side] ?? null;
        if (device === null) return;
        const place = spanView(page.header.devices[device].tick_ns, span);
        if (device === page.view.device) page.change(place);
        else page.goTo(device, place);
        byId("own").scrollIntoView();
        byId("own-title").focus({ preventScroll: true });
    }

    // ---- the panel ------------------------------------------------------------------------------

    show(): void {
        const { page, said, row, side } = this;
        byId("switch-run").textContent = `show ${runNames[otherSide(side)]}`;
        byId("runs-box").hidden = this.models === null;
        this.showAxes();
        const panel = byId("comparison");
        keepFocus(panel, "button, summary, tr[tabindex]", () => {
            byId("runs-said").replaceChildren(...this.headlines());
            byId("runs-lines").replaceChildren(...(row ? comparedLines(page, row, side) : []));
            byId("runs-right").replaceChildren(
                ...(row ? comparedFigures(page, said, row) : []),
                ...this.places(),
                ...comparedPhases(said, (at, span) => this.goToPlace(at, null, span)),
                ...comparedSettings(said),
            );
        });
    }

    private headlines(): HTMLElement[] {
        const { page, row } = this;
        const others = this.said.devices.filter((one) => one !== row);
        const several = this.said.devices.length > 1;
        const name = (one: ComparedDevice): string => (several ? `GPU ${one.gpu}: ` : "");
        const device = (one: ComparedDevice): number => (one.devices[1] ?? one.devices[0])!;
        return [
            el(
                "div",
                { class: "headline" },
                el("h2", { id: "comparison-title" }, row ? name(row) + row.headline : "Two runs"),
                el("span", { class: "grow" }),
                saveButton(page, byId("comparison"), "the comparison"),
            ),
            ...(row?.note ? [el("p", {}, `${row.note}.`)] : []),
            ...others.map((one) => {
                const show = (): void => page.goTo(device(one));
                const gpu = button(`GPU ${one.gpu}`, "show this device", show);
                gpu.className = "name";
                return el("p", {}, gpu, `: ${one.headline}`);
            }),
        ];
    }

    private showAxes(): void {
        const select = byId<HTMLSelectElement>("runs-axis");
        select.hidden = this.axes.length < 2;
        if (this.axes.length > 0) select.value = this.axis.unit;
        byId("runs-axis-said").textContent =
            this.axes.length > 1 ? "" : "over time since the start of each run";
    }

    private places(): HTMLElement[] {
        const { places, phases_equal } = this.said;
        if (places.length === 0 && !phases_equal) return [];
        return [
            el("h3", {}, "Where they differ first"),
            el(
                "ul",
                { class: "places" },
                ...places.map((place) => el("li", {}, `${place.text} `, ...this.buttons(place))),
                phases_equal && el("li", {}, "Phases: equal in both"),
            ),
        ];
    }

    private buttons({ gpu, times_ns }: ComparedPlace): (Node | string)[] {
        return sides.flatMap((side) => {
            const span = times_ns[side];
            const name = runNames[side];
            return span
                ? [
                      button(name, `show this place in run ${name}`, () =>
                          this.goToPlace(side, gpu, span),
                      ),
                      " ",
                  ]
                : [];
        });
    }

    // ---- the chart ------------------------------------------------------------------------------

    private positionText(at: number): string {
        const { axis } = this;
        if (axis.unit === "time") return formatMoment(at, (axis.to - axis.from) / 1000);
        return at < 0 ? "before step 1" : `step ${Math.min(axis.to, Math.floor(at) + 1)}`;
    }

    private textAt(at: number): string {
        const { models, axis } = this;
        const parts = sides.map((side) => {
            const model = models![side];
            const allocated = bytesAt(model, side, axis, at, "allocated_max");
            if (allocated === null) return `${runNames[side]}: has ended`;
            const reserved = bytesAt(model, side, axis, at, "reserved_max")!;
            const known = segmentsKnown(model.head);
            return (
                `${runNames[side]}: at most ${formatBytes(allocated)} allocated` +
                (known ? `, ${formatBytes(reserved)} reserved` : "")
            );
        });
        return `${this.positionText(at)}. ${parts.join("; ")}`;
    }

    draw(): void {
        const { drawn } = this;
        if (!drawn || !this.surface.fit()) return;
        this.showAxes();
        drawTwoRuns(this.surface.base, drawn, this.page.colours);
        this.drawOver();
    }

    drawOver(): void {
        const { drawn, side, page } = this;
        if (!drawn) return;
        const { view, colours } = page;
        drawOpenPlace(this.surface.base, this.surface.clearOver(), drawn, side, view, colours);
        byId("runs-at").textContent = `Cursor: ${this.textAt(this.axis.at(side, view.cursor))}`;
    }

    paint(layer: Layer): void {
        if (this.drawn) drawTwoRuns(layer, this.drawn, this.page.colours);
    }
}
