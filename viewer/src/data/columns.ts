// Reads columns as analyzer/report/page_columns.h writes them: base64, gzip, byte planes,
// optionally differences. Widths up to 4 bytes become Uint32Array, wider ones Float64Array (exact
// up to 2^53).
import type { PackDescription } from "./header";

export type Column = Uint8Array | Uint32Array | Float64Array;
export type Columns = Record<string, Column>;

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
    const modern = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
    if (modern) return modern.call(Uint8Array, text);
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
    return bytes;
}

/** gunzip into a buffer of the length announced; gzip's own checksum is verified on the way. */
export async function gunzip(packed: Uint8Array<ArrayBuffer>, length: number): Promise<Uint8Array> {
    const raw = new Uint8Array(length);
    const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
    let filled = 0;
    for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        if (filled + value.length > length) throw new Error("more data than announced");
        raw.set(value, filled);
        filled += value.length;
    }
    if (filled !== length) throw new Error(`${filled} of ${length} bytes`);
    return raw;
}

function narrow(raw: Uint8Array, begin: number, rows: number, width: number, difference: boolean): Column {
    if (width === 1) {
        const column = raw.slice(begin, begin + rows);
        if (difference) for (let i = 1; i < rows; ++i) column[i] += column[i - 1];
        return column;
    }
    const column = new Uint32Array(rows);
    for (let plane = 0; plane < width; ++plane) {
        const shift = 8 * plane;
        const from = begin + plane * rows;
        for (let i = 0; i < rows; ++i) column[i] |= raw[from + i] << shift;
    }
    if (difference) for (let i = 1; i < rows; ++i) column[i] += column[i - 1];
    return column;
}

function wide(raw: Uint8Array, begin: number, rows: number, width: number, difference: boolean): Column {
    const column = new Float64Array(rows);
    const high = width - 4;
    const modulus = 2 ** (8 * width);
    let previous = 0;
    for (let i = 0; i < rows; ++i) {
        let low = 0;
        for (let plane = 3; plane >= 0; --plane) low = low * 256 + raw[begin + plane * rows + i];
        let value = 0;
        for (let plane = high - 1; plane >= 0; --plane) value = value * 256 + raw[begin + (4 + plane) * rows + i];
        value = value * 4294967296 + low;
        if (difference) {
            value += previous;
            if (value >= modulus) value -= modulus;
            previous = value;
        }
        column[i] = value;
    }
    return column;
}

export function unpack(raw: Uint8Array, description: PackDescription): Columns {
    const columns: Columns = {};
    let begin = 0;
    for (const [name, width, difference] of description.columns) {
        const read = width <= 4 ? narrow : wide;
        columns[name] = read(raw, begin, description.rows, width, difference === 1);
        begin += width * description.rows;
    }
    if (begin !== raw.length) throw new Error("columns do not fill the data");
    return columns;
}

/** Throws one plain sentence whatever is wrong with the element's text. */
export async function readPack(text: string | null | undefined, description: PackDescription): Promise<Columns> {
    if (!text) throw new Error(`the file is cut off: ${description.id} is missing`);
    try {
        return unpack(await gunzip(fromBase64(text.trim()), description.bytes), description);
    } catch (error) {
        throw new Error(`the file is cut off or damaged at ${description.id} (${(error as Error).message})`);
    }
}
