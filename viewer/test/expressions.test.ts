// Expressions in a worker: the time limit, and how a search ends.
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import type { SearchAnswer } from "../src/data/search";
import { WorkerSearch } from "../src/load/expressions";
import { type BlockOrder, type SearchOrder, type SearchReply, serve } from "../src/load/worker";

class MadeWorker {
    static made: MadeWorker[] = [];
    static refused = false;
    ended = false;
    orders: SearchOrder[] = [];
    onmessage: ((event: { data: SearchReply }) => void) | null = null;
    onerror: ((event: { preventDefault: () => void }) => void) | null = null;

    constructor() {
        if (MadeWorker.refused) throw new Error("refused");
        MadeWorker.made.push(this);
    }

    postMessage(order: SearchOrder): void {
        this.orders.push(order);
    }

    terminate(): void {
        this.ended = true;
    }

    reply(data: SearchReply): void {
        this.onmessage?.({ data });
    }
}

// Node's own mock timers have a different interface in each release.
const { setTimeout, clearTimeout, Worker } = globalThis;
const waiting = new Map<number, { call: () => void; ms: number }>();
let given = 0;

beforeEach(() => {
    MadeWorker.made = [];
    MadeWorker.refused = false;
    waiting.clear();
    globalThis.setTimeout = ((call: () => void, ms: number) =>
        waiting.set(++given, { call, ms }) && given) as unknown as typeof setTimeout;
    globalThis.clearTimeout = ((id: number) =>
        void waiting.delete(id)) as unknown as typeof clearTimeout;
    globalThis.Worker = MadeWorker as unknown as typeof Worker;
});
afterEach(() => Object.assign(globalThis, { setTimeout, clearTimeout, Worker }));

const names = ["keep", "forward"];
const found: SearchAnswer = { hits: Uint8Array.of(1, 0) };

function searched(): { search: WorkerSearch; answers: SearchAnswer[]; find: (at: string) => void } {
    const search = new WorkerSearch("script");
    const answers: SearchAnswer[] = [];
    return {
        search,
        answers,
        find: (source) => search.find(names, source, (answer) => void answers.push(answer)),
    };
}

test("a worker that answers is kept and gets the names only once", () => {
    const { search, answers, find } = searched();
    find("k");
    const [worker] = MadeWorker.made;
    worker.reply("begun");
    worker.reply(found);
    search.stop();
    find("e");
    worker.reply("begun");
    worker.reply(found);
    assert.deepEqual(answers, [found, found]);
    assert.deepEqual(worker.orders, [{ source: "k", names }, { source: "e" }]);
    assert.equal(MadeWorker.made.length, 1);
    assert.equal(worker.ended, false);
    assert.equal(waiting.size, 0, "no limit is left");
    search.find(["other"], "k", () => undefined);
    assert.deepEqual(worker.orders[2], { source: "k", names: ["other"] });
});

test("an expression beyond the time limit ends its worker with a message", () => {
    const { answers, find } = searched();
    find("(a+)+$");
    const [worker] = MadeWorker.made;
    assert.equal(waiting.size, 0, "the time until the worker runs does not count");
    worker.reply("begun");
    const [{ call, ms }] = [...waiting.values()];
    assert.equal(ms, 2000);
    call();
    assert.equal(worker.ended, true);
    assert.deepEqual(answers, [{ problem: "stopped after 2 s, the expression is too slow" }]);
    worker.reply(found);
    assert.equal(answers.length, 1, "an answer that was on its way is dropped");
    find("k");
    assert.deepEqual(
        MadeWorker.made[1].orders,
        [{ source: "k", names }],
        "the next one starts anew",
    );
});

test("a new search ends the running one", () => {
    const { answers, find } = searched();
    find("(a+)+$");
    const [first] = MadeWorker.made;
    first.reply("begun");
    find("k");
    assert.equal(first.ended, true);
    assert.equal(waiting.size, 0, "with its limit");
    first.reply(found);
    assert.deepEqual(answers, []);
    MadeWorker.made[1].reply(found);
    assert.deepEqual(answers, [found]);
});

test("a browser without workers is reported, at once or later", () => {
    const { answers, find } = searched();
    const problem = "this browser refuses the worker that looks for expressions; search for text";
    MadeWorker.refused = true;
    find("k");
    assert.deepEqual(answers.slice(), [{ problem }]);
    MadeWorker.refused = false;
    find("k");
    MadeWorker.made[0].onerror!({ preventDefault: () => undefined });
    assert.deepEqual(answers.slice(1), [{ problem }]);
    new WorkerSearch("").find(names, "k", (answer) => void answers.push(answer));
    assert.deepEqual(answers.slice(2), [{ problem }]);
});

test("the worker keeps the names between searches and reports its start", () => {
    const replies: unknown[] = [];
    const scope = {
        onmessage: null as ((event: MessageEvent<BlockOrder | SearchOrder>) => void) | null,
        postMessage: (reply: unknown) => void replies.push(reply),
    };
    serve(scope);
    const order = (data: SearchOrder): void =>
        scope.onmessage!({ data } as MessageEvent<SearchOrder>);
    order({ names, source: "^K" });
    order({ source: "r" });
    assert.deepEqual(replies, ["begun", found, "begun", { hits: Uint8Array.of(0, 1) }]);
});
