// The dialog with memory of all processes of a job over time.
import { formatBytes, formatTime } from "../data/format";
import {
    heatBytes,
    heatCertainty,
    type HeatMeasure,
    heatMeasures,
    type HeatRow,
    heatRows,
} from "../data/heat";
import type { Rank } from "../data/header";
import { rankLabel } from "../data/ranks";
import { drawHeat, heatLayout, heatRowAt, namesWidth } from "../draw/heat";
import { el, showDialog, showTip } from "./dom";
import type { PageView } from "./view";

/** `open` shows a process. */
export function showHeat(page: PageView, open: (rank: Rank) => void): void {
    const { header } = page;
    const measure = el(
        "select",
        { id: "heat-measure", "aria-label": "what the colours show" },
        ...heatMeasures.map((name) => el("option", { value: name }, name)),
    ) as HTMLSelectElement;
    const order = el(
        "select",
        { id: "heat-order", "aria-label": "order of the rows" },
        el("option", { value: "differs" }, "failed and different processes first"),
        el("option", { value: "rank" }, "by rank"),
    ) as HTMLSelectElement;
    const canvas = el("canvas", {
        id: "heat",
        tabindex: "0",
        role: "img",
        "aria-label":
            "memory of every process over time; the table of all processes has the figures",
    }) as HTMLCanvasElement;
    const scale = el("span", { class: "faint" });
    const box = el("div", { id: "heat-box" }, canvas);
    showDialog(
        el("h2", {}, "Memory of all processes over time"),
        el("p", {}, measure, " ", order, " ", scale),
        box,
    );
    let rows = heatRows(header, false);
    measure.value = rows.some(({ reserved }) => reserved) ? "reserved" : "allocated";
    const chosen = (): HeatMeasure => measure.value as HeatMeasure;
    const draw = (): void => {
        rows = heatRows(header, order.value === "rank");
        const width = Math.max(300, box.clientWidth - 18);
        const { height } = heatLayout(rows.length);
        const sharp = Math.min(devicePixelRatio, 2);
        canvas.width = width * sharp;
        canvas.height = height * sharp;
        canvas.style.width = `${width}px`;
        canvas.style.height = `${height}px`;
        const context = canvas.getContext("2d")!;
        context.scale(sharp, sharp);
        drawHeat(context, width, header, rows, chosen(), page.colours);
        const full = formatBytes(header.heat.full_bytes);
        scale.textContent =
            `${rows.length} rows; ${formatTime(header.heat.columns * header.heat.column_ns)}, the ` +
            "most of each part; " +
            (chosen() === "free on the card" ? `dark: nothing free` : `dark: ${full}`) +
            "; black: first out-of-memory";
    };
    measure.addEventListener("change", draw);
    order.addEventListener("change", draw);
    const at = (event: MouseEvent): HeatRow | undefined =>
        rows[
            heatRowAt(heatLayout(rows.length), event.clientY - canvas.getBoundingClientRect().top)
        ];
    canvas.addEventListener("pointermove", (event) => {
        const row = at(event);
        const area = canvas.getBoundingClientRect();
        const { columns, column_ns } = header.heat;
        const column = Math.floor(
            ((event.clientX - area.left - namesWidth) / (area.width - namesWidth)) * columns,
        );
        const bytes =
            row && column >= 0 && column < columns
                ? heatBytes(header, row, chosen(), column)
                : null;
        showTip(
            row
                ? rankLabel(row.rank) +
                      (bytes === null
                          ? ""
                          : `: ${heatCertainty(chosen())} ${formatBytes(Math.round(bytes))} ${chosen()} at ${formatTime(column * column_ns)}`)
                : "",
            event.clientX,
            event.clientY,
        );
    });
    canvas.addEventListener("pointerleave", () => showTip("", 0, 0));
    canvas.addEventListener("click", (event) => {
        const row = at(event);
        if (row) open(row.rank);
    });
    draw();
}
