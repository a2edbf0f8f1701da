// Reads columns in the format of analyzer/report/page/page_columns.h: base64, gzip, byte planes,
// optionally differences. A column becomes the smallest array type for its width. Columns wider
// than 4 bytes become a Float64Array (exact up to 2^53). Differences of 1 byte add up in 8 bits,
// differences of 2 to 4 bytes in 32.
import type { PackDescription } from "./header";

export type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array;
export type Columns = Record<string, Column>;

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
    const modern = (
        Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }
    ).fromBase64;
    if (modern) return modern.call(Uint8Array, text);
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
    return bytes;
}

/**
 * Decompresses gzip into a buffer of the announced length. The browser verifies gzip's checksum.
 */
export async function gunzip(packed: Uint8Array<ArrayBuffer>, length: number): Promise<Uint8Array> {
    const raw = new Uint8Array(length);
    const { readable, writable } = new DecompressionStream("gzip");
    const writer = writable.getWriter();
    // Errors of the writer are ignored: the reader reports the same errors.
    void writer
        .write(packed)
        .then(() => writer.close())
        .catch(() => undefined);
    const reader = readable.getReader();
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

function narrow(raw: Uint8Array, begin: number, rows: number, width: number): Column {
    if (width === 0) return new Uint8Array(rows);
    if (width === 1) return raw.slice(begin, begin + rows);
    const second = begin + rows;
    const third = second + rows;
    const fourth = third + rows;
    const column = width === 2 ? new Uint16Array(rows) : new Uint32Array(rows);
    if (width === 2) {
        for (let i = 0; i < rows; ++i) column[i] = raw[begin + i] | (raw[second + i] << 8);
    } else if (width === 3) {
        for (let i = 0; i < rows; ++i) {
            column[i] = raw[begin + i] | (raw[second + i] << 8) | (raw[third + i] << 16);
        }
    } else {
        for (let i = 0; i < rows; ++i) {
            column[i] =
                raw[begin + i] |
                (raw[second + i] << 8) |
                (raw[third + i] << 16) |
                (raw[fourth + i] << 24);
        }
    }
    return column;
}

function wide(raw: Uint8Array, begin: number, rows: number, width: number): Float64Array {
    const column = new Float64Array(rows);
    for (let i = 0; i < rows; ++i) {
        let value = 0;
        for (let plane = width - 1; plane >= 0; --plane) {
            value = value * 256 + raw[begin + plane * rows + i];
        }
        column[i] = value;
    }
    return column;
}

function added(column: Column, width: number): Column {
    if (width > 4) {
        const modulus = 2 ** (8 * width);
        for (let i = 1; i < column.length; ++i) {
            const sum = column[i] + column[i - 1];
            column[i] = sum >= modulus ? sum - modulus : sum;
        }
        return column;
    }
    const sums = width <= 1 || width === 4 ? column : new Uint32Array(column.length);
    if (sums !== column && column.length > 0) sums[0] = column[0];
    for (let i = 1; i < column.length; ++i) sums[i] = column[i] + sums[i - 1];
    return sums;
}

export function unpack(raw: Uint8Array, description: PackDescription): Columns {
    const columns: Columns = {};
    let begin = 0;
    for (const [name, width, difference] of description.columns) {
        const column =
            width <= 4
                ? narrow(raw, begin, description.rows, width)
                : wide(raw, begin, description.rows, width);
        columns[name] = difference === 1 ? added(column, width) : column;
        begin += width * description.rows;
    }
    if (begin !== raw.length) throw new Error("the columns and the data differ in length");
    return columns;
}

/** Decodes one element. Throws one plain sentence if anything is wrong with its text. */
export async function readPack(
    text: string | null | undefined,
    description: PackDescription,
): Promise<Columns> {
    if (!text) throw new Error(`the file is cut off: ${description.id} is missing`);
    try {
        return unpack(await gunzip(fromBase64(text), description.bytes), description);
    } catch (error) {
        throw new Error(
            `the file is cut off or damaged at ${description.id} (${(error as Error).message})`,
        );
    }
}
