// Runs regular expressions in a worker with a time limit. Some expressions would run for ever, and
// a link can contain one. The worker is then terminated, so the page stays usable.
import type { ExpressionSearch, SearchAnswer } from "../data/search";
import type { SearchReply } from "./worker";

const limitMs = 2000;

export class WorkerSearch implements ExpressionSearch {
    private worker: Worker | null = null;
    private names: readonly string[] | null = null; // names that the worker already has
    private busy = false;
    private timer: ReturnType<typeof setTimeout> | undefined;
    private address = "";

    /** `script` is the page's own script, which the worker runs too. */
    constructor(private readonly script: string) {}

    find(names: readonly string[], source: string, done: (answer: SearchAnswer) => void): void {
        this.stop();
        const refused = (): void => {
            this.end();
            done({
                problem:
                    "this browser refuses the worker that looks for expressions; search for text",
            });
        };
        try {
            this.worker ??= this.start();
        } catch {
            refused();
            return;
        }
        this.busy = true;
        this.worker.onerror = (event) => {
            event.preventDefault();
            refused();
        };
        this.worker.onmessage = ({ data }: MessageEvent<SearchReply>) => {
            clearTimeout(this.timer);
            if (data === "begun") {
                this.timer = setTimeout(() => {
                    this.end();
                    done({
                        problem: `stopped after ${limitMs / 1000} s, the expression is too slow`,
                    });
                }, limitMs);
                return;
            }
            this.busy = false;
            done(data);
        };
        this.worker.postMessage({ source, ...(this.names === names ? {} : { names }) });
        this.names = names;
    }

    stop(): void {
        if (this.busy) this.end();
    }

    private start(): Worker {
        if (!this.script) throw new Error("no script");
        this.address ||= URL.createObjectURL(new Blob([this.script], { type: "text/javascript" }));
        return new Worker(this.address);
    }

    private end(): void {
        clearTimeout(this.timer);
        if (this.worker) {
            this.worker.onmessage = this.worker.onerror = null; // an answer may still arrive
            this.worker.terminate();
        }
        this.worker = null;
        this.names = null;
        this.busy = false;
    }
}
