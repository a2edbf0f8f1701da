// Decodes packs of blocks in workers, on as many processors as useful. If the browser refuses
// workers, the page decodes them itself.
import { type Blocks, blocksOf } from "../data/blocks";
import { readPack } from "../data/columns";
import type { PackDescription } from "../data/header";
import { type Answer, movedWith, type Setting } from "./worker";

const mostReaders = 4;
const ownLimit = 40_000; // this many blocks are read faster than a worker starts

interface Job {
    number: number;
    packed: Uint8Array<ArrayBuffer>;
    pack: PackDescription;
    done: (blocks: Blocks) => void;
    failed: (error: Error) => void;
}
interface Reader {
    worker: Worker;
    job: Job | null;
    told: boolean;
    spare?: Blocks; // memory of its last answer
}

export class BlockReaders {
    private readonly readers: Reader[] = [];
    private readonly queue: Job[] = [];
    private address = "";

    constructor(
        script: string,
        private readonly setting: Setting,
        packs: PackDescription[],
    ) {
        const blocks = packs.reduce((sum, pack) => sum + pack.rows, 0);
        if (blocks <= ownLimit || !script) return;
        const count = Math.min(
            mostReaders,
            packs.length,
            Math.max(1, navigator.hardwareConcurrency || 1),
        );
        this.address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
        for (let i = 0; i < count; ++i) this.start();
    }

    /** Calls `place` with the blocks of the pack. Their memory is used again when it returns. */
    read(
        number: number,
        packed: Uint8Array<ArrayBuffer>,
        pack: PackDescription,
        place: (blocks: Blocks) => void,
    ): Promise<void> {
        return new Promise((done, failed) => {
            const placed = (blocks: Blocks): void => {
                try {
                    place(blocks);
                    done();
                } catch (error) {
                    failed(error as Error);
                }
            };
            this.queue.push({ number, packed, pack, done: placed, failed });
            this.next();
        });
    }

    close(): void {
        for (const reader of this.readers) reader.worker.terminate();
        this.readers.length = 0;
        if (this.address) URL.revokeObjectURL(this.address);
    }

    private start(): void {
        try {
            const reader: Reader = { worker: new Worker(this.address), job: null, told: false };
            reader.worker.onmessage = (event: MessageEvent<Answer>) =>
                this.answered(reader, event.data);
            reader.worker.onerror = (event) => {
                event.preventDefault();
                this.lost(reader);
            };
            this.readers.push(reader);
        } catch {
            // The worker was refused: the remaining readers, or the page, do its work.
        }
    }

    private next(): void {
        if (this.readers.length === 0) {
            for (const job of this.queue.splice(0)) void this.readHere(job);
            return;
        }
        for (const reader of this.readers) {
            if (reader.job) continue;
            const job = this.queue.shift();
            if (!job) return;
            reader.job = job;
            const { number, packed, pack } = job;
            const { spare } = reader;
            const order = { number, packed, pack, spare };
            reader.worker.postMessage(
                reader.told ? order : { ...order, setting: this.setting },
                movedWith(spare),
            );
            reader.told = true;
        }
    }

    private answered(reader: Reader, answer: Answer): void {
        const { job } = reader;
        reader.job = null;
        reader.spare = undefined;
        if (job && "blocks" in answer) {
            job.done(answer.blocks);
            reader.spare = answer.blocks;
        } else if (job) {
            job.failed(new Error((answer as { problem: string }).problem));
        }
        this.next();
    }

    private lost(reader: Reader): void {
        this.readers.splice(this.readers.indexOf(reader), 1);
        if (reader.job) this.queue.unshift(reader.job);
        this.next();
    }

    private async readHere({ packed, pack, done, failed }: Job): Promise<void> {
        try {
            done(
                blocksOf(
                    await readPack(packed, pack),
                    this.setting.unitOffset,
                    this.setting.layout,
                ),
            );
        } catch (error) {
            failed(error as Error);
        }
    }
}
