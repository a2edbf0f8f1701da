// The worker: decodes packs of blocks or runs regular expressions. It runs the same script as the
// page, because the page's security policy allows no other script.
import { type BlockLayout, type Blocks, blocksOf } from "../data/blocks";
import { type Arrays, readPack, reusedArrays } from "../data/columns";
import type { PackDescription } from "../data/header";
import { findExpression, type SearchAnswer } from "../data/search";

export interface Setting {
    unitOffset: Float64Array;
    layout: BlockLayout;
}
export interface BlockOrder {
    setting?: Setting;
    number: number;
    packed: Uint8Array<ArrayBuffer>;
    pack: PackDescription;
    spare?: Blocks; // an earlier answer of this worker, whose memory is used again
}
export type Answer = { number: number; blocks: Blocks } | { number: number; problem: string };

export interface SearchOrder {
    names?: readonly string[]; // only if they changed
    source: string;
}
export type SearchReply = "begun" | SearchAnswer;

interface WorkerScope {
    onmessage: ((event: MessageEvent<BlockOrder | SearchOrder>) => void) | null;
    postMessage(answer: Answer | SearchReply, transfer?: Transferable[]): void;
}

/** The memory of blocks that moves with a message, not as a copy. */
export function movedWith(blocks: Blocks | undefined): ArrayBuffer[] {
    const columns = Object.values(blocks ?? {}).filter((column) => ArrayBuffer.isView(column));
    return [...new Set(columns.map(({ buffer }) => buffer as ArrayBuffer))];
}

export function serve(scope: WorkerScope): void {
    let setting: Setting | undefined;
    const arrays = reusedArrays();
    let names: readonly string[] = [];
    scope.onmessage = ({ data }) => {
        if ("source" in data) {
            names = data.names ?? names;
            scope.postMessage("begun"); // the time limit starts here
            scope.postMessage(findExpression(names, data.source));
            return;
        }
        setting = data.setting ?? setting;
        void answer(setting!, data, arrays).then((reply) =>
            scope.postMessage(reply, "blocks" in reply ? movedWith(reply.blocks) : []),
        );
    };
}

async function answer(
    { unitOffset, layout }: Setting,
    { number, packed, pack, spare }: BlockOrder,
    arrays: Arrays,
): Promise<Answer> {
    try {
        const columns = await readPack(packed, pack, arrays);
        return { number, blocks: blocksOf(columns, unitOffset, layout, spare) };
    } catch (error) {
        return { number, problem: (error as Error).message };
    }
}
