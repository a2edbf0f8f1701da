// Memory of all processes of a job over time. A click, or Enter, shows the process of a row.
import { formatBytes, formatCounted, formatMoment, formatTime } from "../data/format";
import {
    heatBytes,
    heatCertainty,
    type HeatMeasure,
    type HeatOrder,
    heatMeasures,
    type HeatRow,
    heatRows,
    heatUnknown,
    unknownParts,
} from "../data/heat";
import { rankLabel } from "../data/ranks";
import { drawHeat, heatLayout, heatRowAt, heatTop, namesWidth } from "../draw/heat";
import { byId, el, hideTip, showTip } from "./dom";
import { openRank } from "./ranks";
import type { PageView, Picture } from "./view";

const sharpness = (): number => Math.min(devicePixelRatio, 2);

export class HeatPanel implements Picture {
    private readonly canvas = byId<HTMLCanvasElement>("heat");
    private readonly box = byId("heat-box");
    private readonly measure = byId<HTMLSelectElement>("heat-measure");
    private readonly order = byId<HTMLSelectElement>("heat-order");
    private rows: HeatRow[] = [];
    private sorted = ""; // the order of `rows`
    private focused = -1; // marked by the keyboard
    private last = -1; // the last one that was marked
    private width = 0; // of the last picture

    constructor(private readonly page: PageView) {
        byId("heat-panel").hidden = false;
        byId("main").classList.add("with-heat");
        this.measure.append(...heatMeasures.map((name) => el("option", { value: name }, name)));
        this.measure.addEventListener("change", () =>
            page.change({ heat: heatMeasures.indexOf(this.chosen) }),
        );
        this.order.addEventListener("change", () =>
            page.change({ rows: this.order.value as HeatOrder }),
        );
        const { canvas } = this;
        canvas.addEventListener("pointermove", (event) =>
            showTip(() => this.textAt(event), event.clientX, event.clientY),
        );
        canvas.addEventListener("pointerleave", hideTip);
        canvas.addEventListener("click", (event) => this.open(this.at(event)));
        canvas.addEventListener("keydown", (event) => this.key(event));
        canvas.addEventListener("blur", () => this.focus(-1));
        new ResizeObserver(() => {
            if (this.box.clientWidth !== this.width) this.draw();
        }).observe(this.box);
    }

    /** The whole map, also the rows that the panel scrolls to. */
    get surface(): Picture["surface"] {
        const { canvas } = this;
        const ratio = sharpness();
        const [width, height] = [canvas.width / ratio, canvas.height / ratio];
        return { base: { canvas, context: canvas.getContext("2d")!, width, height, ratio } };
    }

    // What the strongest colour means.
    private get strongest(): string {
        return this.chosen === "free on the card"
            ? "nothing free"
            : formatBytes(this.page.header.heat.full_bytes);
    }

    private get chosen(): HeatMeasure {
        return this.measure.value as HeatMeasure;
    }

    // Takes measure and order from the view.
    private choose(): void {
        const { heat, rows } = this.page.view;
        if (this.sorted !== rows) {
            this.sorted = this.order.value = rows;
            this.rows = heatRows(this.page.header, rows === "rank");
            this.last = -1;
        }
        const known = this.rows.some(({ reserved }) => reserved) ? "reserved" : "allocated";
        this.measure.value = heatMeasures[heat] ?? known;
    }

    draw(): void {
        this.choose();
        const { canvas, box, rows, page } = this;
        const { header } = page;
        this.width = box.clientWidth;
        const width = Math.max(240, this.width);
        const { height } = heatLayout(rows.length);
        const sharp = sharpness();
        canvas.width = width * sharp;
        canvas.height = height * sharp;
        canvas.style.width = `${width}px`;
        canvas.style.height = `${height}px`;
        const context = canvas.getContext("2d")!;
        context.scale(sharp, sharp);
        drawHeat(context, width, header, rows, this.chosen, page.colours, {
            shown: rows.findIndex(({ rank }) => rank.device === page.view.device),
            focused: this.focused,
        });
        byId("heat-said").textContent =
            `${formatCounted(rows.length, "row", "rows")}; ${formatTime(header.heat.columns * header.heat.column_ns)}, the ` +
            `most of each part; strongest colour: ${this.strongest}` +
            "; grey: not running" +
            (rows.some((row) => unknownParts(row, header.heat.columns).length > 0)
                ? "; hatched: not known"
                : "") +
            (rows.some(({ rank }) => rank.first_oom_ns !== null && rank.start_after_ns !== null)
                ? "; vertical line: first out-of-memory"
                : "");
    }

    private at(event: MouseEvent): number {
        const top = this.canvas.getBoundingClientRect().top;
        return heatRowAt(heatLayout(this.rows.length), event.clientY - top);
    }

    private textAt(event: MouseEvent): string {
        const { header } = this.page;
        const row = this.rows[this.at(event)] as HeatRow | undefined;
        const area = this.canvas.getBoundingClientRect();
        const { columns, column_ns } = header.heat;
        const column = Math.floor(
            ((event.clientX - area.left - namesWidth) / (area.width - namesWidth)) * columns,
        );
        const inside = row && column >= 0 && column < columns;
        const value = inside ? this.valueText(row, column) : "";
        const time = value ? ` at ${formatMoment(column * column_ns, column_ns)}` : "";
        return row ? rankLabel(row.rank) + value + time : "";
    }

    private valueText(row: HeatRow, column: number): string {
        if (heatUnknown(row, column)) return ": not known";
        if (!row.allocated[column]) return ": not running";
        const bytes = heatBytes(this.page.header, row, this.chosen, column);
        if (bytes === null) return `: ${this.chosen}: not known`;
        return `: ${heatCertainty(this.chosen)} ${formatBytes(Math.round(bytes))} ${this.chosen}`;
    }

    private open(row: number): void {
        if (row >= 0 && row < this.rows.length) openRank(this.page, this.rows[row].rank);
    }

    private key(event: KeyboardEvent): void {
        const last = this.rows.length - 1;
        const from = this.last;
        const to: Record<string, number> = {
            ArrowUp: from - 1,
            ArrowDown: from + 1,
            Home: 0,
            End: last,
        };
        if (event.key in to) this.focus(Math.max(0, Math.min(last, to[event.key])));
        else if (event.key === "Enter" || event.key === " ") this.open(from);
        else return;
        event.preventDefault();
        event.stopPropagation();
    }

    private focus(row: number): void {
        if (row === this.focused) return;
        this.focused = row;
        this.draw();
        if (row < 0) return;
        this.last = row;
        const layout = heatLayout(this.rows.length);
        const [top, bottom] = [heatTop(layout, row), heatTop(layout, row + 1)];
        const { box } = this;
        const visible = Math.max(bottom - box.clientHeight, Math.min(top, box.scrollTop));
        if (visible !== box.scrollTop) box.scrollTop = visible;
        const { rank } = this.rows[row];
        const most = rank.peak_reserved ?? rank.peak_allocated;
        this.page.say(
            `${rankLabel(rank)}: peak ${rank.peak_reserved === null ? "allocated" : "reserved"} ${formatBytes(most)}; ${rank.ended}`,
        );
    }
}
