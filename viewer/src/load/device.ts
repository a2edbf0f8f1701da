// Reads one device from the file: first what is needed to draw it without blocks, then its blocks.
import { blockLayout, emptyBlocks, placeBlocks } from "../data/blocks";
import { type Columns, packedBytes, readPack } from "../data/columns";
import type { DeviceHeader, PackDescription } from "../data/header";
import { type DeviceModel, makeOverview, overviewPacks, withBlocks } from "../data/model";
import type { FileElements } from "./elements";
import { BlockReaders } from "./readers";

const isBlocks = ({ id }: PackDescription): boolean => id.includes("-blocks-");

export async function readOverview(file: FileElements, head: DeviceHeader): Promise<DeviceModel> {
    const wanted = head.packs.filter(({ id }) =>
        overviewPacks.some((name) => id.endsWith("-" + name)),
    );
    const columns = await Promise.all(
        wanted.map(async (pack) => readPack(packedBytes(await file.take(pack.id), pack), pack)),
    );
    return makeOverview(
        head,
        new Map(wanted.map((pack, i): [string, Columns] => [pack.id, columns[i]])),
    );
}

/** `progress` is called with the number of blocks read so far. */
export async function readBlocks(
    file: FileElements,
    overview: DeviceModel,
    script: string,
    progress: (blocks: number) => void,
): Promise<DeviceModel> {
    const { head } = overview;
    const spansPack = head.packs.find(({ id }) => id.endsWith("-spans"));
    if (!spansPack) throw new Error("the file has no spans");
    const spans = await readPack(packedBytes(await file.take(spansPack.id), spansPack), spansPack);
    const packs = head.packs.filter(isBlocks);
    const layout = blockLayout(packs);
    const blocks = emptyBlocks(head.blocks, layout);
    const readers = new BlockReaders(script, { unitOffset: overview.units.offset, layout }, packs);
    let rows = 0;
    let placed = 0;
    try {
        const parts: Promise<void>[] = [];
        for (const [number, pack] of packs.entries()) {
            const packed = packedBytes(await file.take(pack.id), pack);
            const at = rows;
            rows += pack.rows;
            const part = readers.read(number, packed, pack, (read) => {
                placeBlocks(blocks, read, at);
                progress((placed += read.count));
            });
            part.catch(() => undefined); // the await below reports errors
            parts.push(part);
        }
        await Promise.all(parts);
    } finally {
        readers.close();
    }
    if (rows !== head.blocks) throw new Error("the file is cut off: blocks are missing");
    return withBlocks(overview, blocks, spans);
}
