// The worker: decodes packs of blocks or runs regular expressions. It runs the same script as the
// page, because the page's security policy allows no other script.
import { type BlockLayout, type Blocks, blocksOf } from "../data/blocks";
import { readPack } from "../data/columns";
import type { PackDescription } from "../data/header";
import { findExpression, type SearchAnswer } from "../data/search";

export interface Setting {
    unitOffset: Float64Array;
    layout: BlockLayout;
}
export interface BlockOrder {
    setting?: Setting;
    number: number;
    text: string;
    pack: PackDescription;
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

export function serve(scope: WorkerScope): void {
    let setting: Setting | undefined;
    let names: readonly string[] = [];
    scope.onmessage = ({ data }) => {
        if ("source" in data) {
            names = data.names ?? names;
            scope.postMessage("begun"); // the time limit starts here
            scope.postMessage(findExpression(names, data.source));
            return;
        }
        const { number, text, pack } = data;
        setting = data.setting ?? setting;
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
