// The worker's side: reads packs of blocks. It runs the same script as the page, which is the only
// text that the page's policy lets run.
import { type BlockLayout, type Blocks, blocksOf } from "../data/blocks";
import { readPack } from "../data/columns";
import type { PackDescription } from "../data/header";

export interface Setting {
    unitOffset: Float64Array;
    layout: BlockLayout;
}
export interface Order {
    setting?: Setting;
    number: number;
    text: string;
    pack: PackDescription;
}
export type Answer = { number: number; blocks: Blocks } | { number: number; problem: string };

interface WorkerScope {
    onmessage: ((event: MessageEvent<Order>) => void) | null;
    postMessage(answer: Answer, transfer: Transferable[]): void;
}

export function serveBlocks(scope: WorkerScope): void {
    let setting: Setting | undefined;
    scope.onmessage = (event) => {
        const { number, text, pack } = event.data;
        setting = event.data.setting ?? setting;
        void answer(setting!, number, text, pack).then((reply) => {
            const buffers =
                "blocks" in reply
                    ? Object.values(reply.blocks)
                          .filter((column) => ArrayBuffer.isView(column))
                          .map((column) => column.buffer as ArrayBuffer)
                    : [];
            scope.postMessage(reply, [...new Set(buffers)]);
        });
    };
}

async function answer(
    setting: Setting,
    number: number,
    text: string,
    pack: PackDescription,
): Promise<Answer> {
    try {
        return {
            number,
            blocks: blocksOf(await readPack(text, pack), setting.unitOffset, setting.layout),
        };
    } catch (error) {
        return { number, problem: (error as Error).message };
    }
}
