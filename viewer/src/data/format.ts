// Formats sizes and times exactly as the program prints them (analyzer/support/units.cpp).
// tests/unit/support/formats.tsv lists the expected texts for both.

// Rounds as C++ does: a value halfway between two numbers goes to the even digit. toFixed() would
// take the larger number.
function rounded(value: number, digits: number): string {
    // exact: with few decimals, halfway values are multiples of an eighth
    const middle = (value * 2 ** (digits + 1)) % 2 === 1;
    if (!middle) return value.toFixed(digits);
    const below = Math.floor(value * 10 ** digits);
    return ((below % 2 === 0 ? below : below + 1) / 10 ** digits).toFixed(digits);
}

function trimmed(value: number): string {
    if (value >= 99.95) return rounded(value, 0);
    return String(Number(value >= 9.995 ? rounded(value, 1) : rounded(value, 2)));
}

const sizeUnits = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function formatBytes(bytes: number): string {
    let unit = 0;
    while (bytes >= 1023.5 && unit + 1 < sizeUnits.length) {
        bytes /= 1024;
        ++unit;
    }
    return `${trimmed(bytes)} ${sizeUnits[unit]}`;
}

/** A difference of sizes: "+20 MiB", "-3 KiB", "0 B". */
export function formatChange(bytes: number): string {
    if (bytes === 0) return "0 B";
    return (bytes < 0 ? "-" : "+") + formatBytes(Math.abs(bytes));
}

export function formatCount(count: number): string {
    // toLocaleString() is not used: it loads the browser's language tables, which takes longer than
    // a frame.
    const [whole, rest] = String(
        Number.isInteger(count) ? count : Math.round(count * 1000) / 1000,
    ).split(".");
    return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? "." + rest : "");
}

/** A text of at most so many characters, the last one an ellipsis if some are missing. */
export function shortened(text: string, most: number): string {
    return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/**
 * A size as whole numbers of all its units, the largest first: "80 GiB", "1 MiB", "4 KiB". It
 * differs from every other size.
 */
export function formatWhole(bytes: number): string[] {
    const parts: string[] = [];
    for (let unit = sizeUnits.length - 1; unit >= 0; --unit) {
        const size = 1024 ** unit;
        const count = Math.floor(bytes / size);
        if (count > 0) parts.push(`${count} ${sizeUnits[unit]}`);
        bytes -= count * size;
    }
    return parts.length > 0 ? parts : ["0 B"];
}

/** "1 block", "2 blocks" */
export function formatCounted(count: number, one: string, many: string): string {
    return `${formatCount(count)} ${count === 1 ? one : many}`;
}

export function formatBlocks(count: number): string {
    return formatCounted(count, "block", "blocks");
}

export function formatTime(ns: number): string {
    if (ns < 1e3) return `${Math.round(ns)} ns`;
    if (ns < 1e6) return `${trimmed(ns / 1e3)} us`;
    if (ns < 1e9) return `${trimmed(ns / 1e6)} ms`;
    if (ns < 120e9) return `${trimmed(ns / 1e9)} s`;
    const seconds = (ns - (ns % 1e9)) / 1e9;
    const minutes = Math.floor(seconds / 60);
    const pad = (value: number): string => String(value).padStart(2, "0");
    if (minutes < 60) return `${minutes} min ${pad(seconds % 60)} s`;
    return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} min`;
}

/** A time with enough digits to differ from the times `step` before and after it. */
export function formatMoment(ns: number, stepNs: number): string {
    const [scale, unit] =
        stepNs >= 1e8 || ns >= 1e9
            ? [1e9, "s"]
            : stepNs >= 1e5 || ns >= 1e6
              ? [1e6, "ms"]
              : stepNs >= 1e2 || ns >= 1e3
                ? [1e3, "us"]
                : [1, "ns"];
    const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(scale / Math.max(1, stepNs)))));
    return `${(ns / scale).toFixed(digits)} ${unit}`;
}

/** Writes moments, with more digits than formatTime() if some of `shown` would look alike. */
export function momentsApart(shown: readonly number[]): (ns: number) => string {
    const different = [...new Set(shown)].sort((a, b) => a - b);
    if (new Set(different.map(formatTime)).size === different.length) return formatTime;
    const gaps = different.slice(1).map((ns, at) => ns - different[at]);
    const least = Math.min(...gaps);
    return (ns) => formatMoment(ns, least);
}

/**
 * At most about `count` round values in [from, to]. They are multiples of 1, 2 or 5 times a power
 * of ten, or of a power of two if `binary`. Decimal values are whole, because there is no time
 * between two nanoseconds.
 */
export function ticks(from: number, to: number, count: number, binary = false): number[] {
    if (!(to > from)) return [from];
    const rough = Math.max(binary ? 0 : 1, (to - from) / Math.max(1, count));
    const base = binary ? 2 : 10;
    let step = base ** Math.floor(Math.log(rough) / Math.log(base));
    if (binary) {
        if (step < rough) step *= 2;
    } else {
        for (const factor of [1, 2, 5, 10]) {
            if (step * factor >= rough) {
                step *= factor;
                break;
            }
        }
    }
    const result: number[] = [];
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) result.push(at);
    return result;
}
