// Reads columns in the format of analyzer/report/page/page_columns.h: base64, gzip, byte planes,
// optionally differences. A column becomes the smallest array type for its width. Columns wider
// than 4 bytes become a Float64Array (exact up to 2^53). Differences of 1 byte add up in 8 bits,
// differences of 2 to 4 bytes in 32.
import type { PackDescription } from "./header";

export type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array;
export type Columns = Record<string, Column>;

type ArrayType<Kind> = new (length: number) => Kind;

/** Where columns are decoded to. The array of a name may have values of an earlier call. */
export type Arrays = <Kind extends Column>(
    name: string,
    type: ArrayType<Kind>,
    length: number,
) => Kind;

const newArrays: Arrays = (_, type, length) => new type(length);

/**
 * Arrays for one pack after another: the columns of a pack are valid until the next pack is
 * decoded. Memory that is written for the first time costs more than decoding.
 */
export function reusedArrays(): Arrays {
    const kept = new Map<string, Column>();
    return <Kind extends Column>(name: string, type: ArrayType<Kind>, length: number): Kind => {
        const before = kept.get(name);
        if (before instanceof type && before.length >= length) {
            return before.subarray(0, length) as Kind;
        }
        const array = new type(length);
        kept.set(name, array);
        return array;
    };
}

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

/** Decompresses gzip into `raw`, which it must fill. The browser verifies gzip's checksum. */
async function gunzip(packed: Uint8Array<ArrayBuffer>, raw: Uint8Array): Promise<void> {
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
        if (filled + value.length > raw.length) throw new Error("more data than announced");
        raw.set(value, filled);
        filled += value.length;
    }
    if (filled !== raw.length) throw new Error(`${filled} of ${raw.length} bytes`);
}

function narrow(column: Exclude<Column, Float64Array>, raw: Uint8Array, width: number): void {
    const rows = column.length;
    const second = rows;
    const third = second + rows;
    const fourth = third + rows;
    if (width === 0) {
        column.fill(0);
    } else if (width === 1) {
        column.set(raw.subarray(0, rows));
    } else if (width === 2) {
        for (let i = 0; i < rows; ++i) column[i] = raw[i] | (raw[second + i] << 8);
    } else if (width === 3) {
        for (let i = 0; i < rows; ++i) {
            column[i] = raw[i] | (raw[second + i] << 8) | (raw[third + i] << 16);
        }
    } else {
        for (let i = 0; i < rows; ++i) {
            column[i] =
                raw[i] | (raw[second + i] << 8) | (raw[third + i] << 16) | (raw[fourth + i] << 24);
        }
    }
}

function wide(column: Float64Array, raw: Uint8Array, width: number): void {
    const rows = column.length;
    for (let i = 0; i < rows; ++i) {
        let value = 0;
        for (let plane = width - 1; plane >= 0; --plane) {
            value = value * 256 + raw[plane * rows + i];
        }
        column[i] = value;
    }
}

function addUp(column: Column, width: number): void {
    if (width > 4) {
        const modulus = 2 ** (8 * width);
        for (let i = 1; i < column.length; ++i) {
            const sum = column[i] + column[i - 1];
            column[i] = sum >= modulus ? sum - modulus : sum;
        }
    } else {
        for (let i = 1; i < column.length; ++i) column[i] += column[i - 1];
    }
}

function typeOf(width: number, difference: boolean) {
    if (width > 4) return Float64Array;
    if (width <= 1) return Uint8Array;
    return width === 2 && !difference ? Uint16Array : Uint32Array;
}

export function unpack(
    raw: Uint8Array,
    { rows, columns: descriptions }: PackDescription,
    arrays = newArrays,
): Columns {
    const columns: Columns = {};
    let begin = 0;
    for (const [name, width, difference] of descriptions) {
        const planes = raw.subarray(begin, begin + width * rows);
        const column = arrays<Column>(name, typeOf(width, difference === 1), rows);
        if (column instanceof Float64Array) wide(column, planes, width);
        else narrow(column, planes, width);
        if (difference === 1) addUp(column, width);
        columns[name] = column;
        begin += width * rows;
    }
    if (begin !== raw.length) throw new Error("the columns and the data differ in length");
    return columns;
}

// One plain sentence for whatever is wrong with an element.
const damaged = (id: string, error: unknown): Error =>
    new Error(`the file is cut off or damaged at ${id} (${(error as Error).message})`);

/** The compressed bytes of an element. Throws one plain sentence if it is missing or damaged. */
export function packedBytes(
    text: string | null | undefined,
    { id }: PackDescription,
): Uint8Array<ArrayBuffer> {
    if (!text) throw new Error(`the file is cut off: ${id} is missing`);
    try {
        return fromBase64(text);
    } catch (error) {
        throw damaged(id, error);
    }
}

/** Decodes the bytes of one element. Throws one plain sentence if anything is wrong with them. */
export async function readPack(
    packed: Uint8Array<ArrayBuffer>,
    description: PackDescription,
    arrays = newArrays,
): Promise<Columns> {
    try {
        const raw = arrays("raw bytes", Uint8Array, description.bytes);
        await gunzip(packed, raw);
        return unpack(raw, description, arrays);
    } catch (error) {
        throw damaged(description.id, error);
    }
}
