// Chooses the device and, in a job, the process. The selector in the header lists all processes,
// the strip below it shows them side by side, and the table has all their figures.
import { formatBytes, formatCounted } from "../data/format";
import type { Rank } from "../data/header";
import { rankAt, rankLabel, ranksText, rankTables } from "../data/ranks";
import { counterpart, runLabel, sideOf } from "../data/tworuns";
import { drawRanks } from "../draw/ranks";
import { type Layer, Surface } from "../draw/surface";
import { dataTable, showTables } from "./datatable";
import { breakable, byId, el, hideTip, showDialog, showTip } from "./dom";
import type { PageView, Picture } from "./view";

/** Fills the selector in the header. For a job it also creates and returns the strip. */
export function connectRanks(page: PageView): RankStrip | null {
    const { header } = page;
    const select = byId<HTMLSelectElement>("device");
    if (header.comparison) byId("device-what").textContent = "run";
    if (header.ranks.length > 0) {
        byId("device-what").textContent = "process";
        select.append(
            ...header.ranks.map((row) =>
                row.device !== null
                    ? el("option", { value: String(row.device) }, rankLabel(row))
                    : el(
                          "option",
                          { value: "", disabled: "" },
                          `${rankLabel(row)} · one line only`,
                      ),
            ),
        );
    } else {
        select.append(
            ...header.devices.map((_, index) =>
                el("option", { value: String(index) }, runLabel(header, index)),
            ),
        );
    }
    byId("device-label").hidden = select.options.length < 2;
    select.addEventListener("change", () => {
        const device = Number(select.value);
        if (device === counterpart(header, page.view.device)) page.switchRun();
        else page.goTo(device);
        if (header.job.length > 0) byId("own").scrollIntoView();
    });
    const overview = header.comparison ? "comparison" : "job";
    byId("to-overview").textContent = `back to the ${overview}`;
    byId("to-overview").addEventListener("click", () => byId(overview).scrollIntoView());
    return header.ranks.length > 1 || header.unreadable.length > 0 ? new RankStrip(page) : null;
}

export function selectDevice(device: number): void {
    byId<HTMLSelectElement>("device").value = String(device);
}

function rankText(row: Rank): string {
    const counted = (count: number | null, one: string, many: string): string =>
        count !== null && count > 0 ? `, ${formatCounted(count, one, many)}` : "";
    return (
        `${rankLabel(row)}: ` +
        (row.peak_reserved === null
            ? `peak allocated ${formatBytes(row.peak_allocated)}`
            : `peak reserved ${formatBytes(row.peak_reserved)}`) +
        (row.capacity === null ? "" : ` of ${formatBytes(row.capacity)}`) +
        counted(row.ooms, "OOM", "OOMs") +
        counted(row.retries, "retry", "retries") +
        `; ${row.ended}; ${row.file}` +
        (row.device === null ? "; the file has only this line" : "")
    );
}

/**
 * Shows the page of a process. If the file has none, it says so, with the command that writes it.
 * `focus`: the keyboard goes there, too.
 */
export function openRank(page: PageView, row: Rank, focus = false): void {
    if (row.device !== null) {
        byId<HTMLDialogElement>("dialog").close();
        page.goTo(row.device);
        byId("own").scrollIntoView();
        if (focus) byId("own-title").focus({ preventScroll: true });
        return;
    }
    const [all] = rankTables(page.header);
    const alone = {
        ...all,
        title: "This process",
        rows: [all.rows[page.header.ranks.indexOf(row)]],
    };
    const next = row.trace
        ? "This command writes its page:"
        : "Only its summary was read. Where its trace is, this command writes its page:";
    showDialog(
        el("p", {}, `${rankText(row)}. ${next}`),
        el("p", {}, el("code", {}, row.command)),
        dataTable(page, alone),
    );
}

/** The heading of the page of one process, below the view of its job or of both runs. */
export function showOwnTitle(page: PageView): void {
    const { header, view } = page;
    const side = sideOf(header, view.device);
    if (side !== null) {
        byId("own").hidden = false;
        byId("own-title").textContent = `Run ${runLabel(header, view.device)}`;
        byId("own-text").replaceChildren(...breakable(header.comparison!.runs[side]));
        return;
    }
    const row = header.ranks.find(({ device }) => device === view.device);
    byId("own").hidden = header.job.length === 0;
    const hosts = new Set(header.ranks.map(({ host }) => host)).size;
    byId("own-title").textContent = row
        ? `This process: ${[rankLabel(row), hosts > 1 && row.host].filter(Boolean).join(" · ")}`
        : "This process";
    byId("own-text").replaceChildren(
        ...breakable(row ? `${row.program}; ${row.ended}; ${row.file}` : ""),
    );
}

/** All processes of a job in one picture. */
export class RankStrip implements Picture {
    readonly surface = new Surface(byId("ranks-strip").parentElement!);
    private focused = -1;

    constructor(private readonly page: PageView) {
        const { header } = page;
        const canvas = byId("ranks-strip");
        byId("ranks").hidden = false;
        byId("ranks-said").textContent = ranksText(header);
        byId("ranks-said").title = ranksText(header);
        byId("ranks-table").addEventListener("click", () =>
            showTables(page, ...rankTables(header)),
        );
        byId("ranks-heat").hidden = header.heat.columns === 0;
        byId("ranks-heat").addEventListener("click", () => {
            byId("heat-panel").scrollIntoView();
            byId("heat").focus({ preventScroll: true });
        });
        canvas.addEventListener("pointermove", (event) => {
            const row = this.at(event);
            showTip(() => (row ? rankText(row) : ""), event.clientX, event.clientY);
        });
        canvas.addEventListener("pointerleave", hideTip);
        canvas.addEventListener("click", (event) => this.open(this.at(event)));
        canvas.addEventListener("keydown", (event) => this.key(event));
        canvas.addEventListener("blur", () => this.focus(-1));
        new ResizeObserver(() => this.draw()).observe(this.surface.box);
    }

    private at(event: MouseEvent): Rank | undefined {
        const { ranks } = this.page.header;
        return ranks[
            rankAt(
                ranks,
                this.surface.base.width,
                event.clientX - this.surface.box.getBoundingClientRect().left,
            )
        ];
    }

    private open(row: Rank | undefined): void {
        if (row) openRank(this.page, row);
    }

    private key(event: KeyboardEvent): void {
        const { ranks } = this.page.header;
        const shown = ranks.findIndex((row) => row.device === this.page.view.device);
        const from = this.focused >= 0 ? this.focused : shown;
        const to: Record<string, number> = {
            ArrowLeft: from - 1,
            ArrowRight: from + 1,
            Home: 0,
            End: ranks.length - 1,
        };
        if (event.key in to) this.focus(Math.max(0, Math.min(ranks.length - 1, to[event.key])));
        else if (event.key === "Enter" || event.key === " ") this.open(ranks[from]);
        else return;
        event.preventDefault();
        event.stopPropagation();
    }

    private focus(row: number): void {
        this.focused = row;
        this.draw();
        if (row >= 0) this.page.say(rankText(this.page.header.ranks[row]));
    }

    draw(): void {
        if (this.surface.fit()) this.paint(this.surface.base);
    }

    paint(layer: Layer): void {
        const { header, view, colours } = this.page;
        drawRanks(
            layer,
            header.ranks,
            header.ranks.findIndex((row) => row.device === view.device),
            this.focused,
            colours,
        );
    }
}
