// Debian's Firefox for the tests of the page, driven by WebDriver BiDi, which Firefox supports
// itself.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const places = [process.env.FRAGTRACE_FIREFOX, "/usr/bin/firefox-esr", "/usr/bin/firefox"];

/** Why the tests cannot run here, as a line that says what to install. null if they can. */
export async function missing() {
    if (!places.some((path) => path && existsSync(path))) {
        return "Firefox is missing: apt-get install firefox-esr (or set FRAGTRACE_FIREFOX)";
    }
    try {
        await import("playwright-core/lib/utilsBundle");
    } catch {
        return "playwright-core is missing: run npm ci in tests/browser";
    }
    return null;
}

function limited(promise, ms, what) {
    return Promise.race([
        promise,
        new Promise((_, fail) =>
            setTimeout(() => fail(new Error(`${what} took over ${ms} ms`)), ms).unref(),
        ),
    ]);
}

export async function launch() {
    const { ws: WebSocket } = await import("playwright-core/lib/utilsBundle");
    const profile = mkdtempSync(join(tmpdir(), "fragtrace-firefox-"));
    const child = spawn(
        places.find((path) => path && existsSync(path)),
        ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port=0"],
        { stdio: ["ignore", "ignore", "pipe"] },
    );
    const ended = new Promise((resolve) => child.once("exit", resolve));
    const address = await limited(
        new Promise((resolve) => {
            let said = "";
            child.stderr.on("data", (text) => {
                said += text;
                const found = /WebDriver BiDi listening on (ws:\S+)/.exec(said);
                if (found) resolve(found[1]);
            });
        }),
        60_000,
        "starting Firefox",
    );
    const socket = new WebSocket(`${address}/session`);
    await limited(
        new Promise((resolve, fail) => {
            socket.on("open", resolve);
            socket.on("error", fail);
        }),
        20_000,
        "connecting",
    );
    const waiting = new Map();
    const events = [];
    let last = 0;
    socket.on("message", (text) => {
        const message = JSON.parse(text);
        if (message.type === "event") events.push(message);
        const answer = waiting.get(message.id);
        if (!answer) return;
        waiting.delete(message.id);
        if (message.type === "error") {
            answer.fail(new Error(`${message.error}: ${message.message}`));
        } else {
            answer.resolve(message.result);
        }
    });
    const send = (method, params) =>
        limited(
            new Promise((resolve, fail) => {
                const id = ++last;
                waiting.set(id, { resolve, fail });
                socket.send(JSON.stringify({ id, method, params }));
            }),
            60_000,
            method,
        );
    await send("session.new", { capabilities: {} });
    await send("session.subscribe", { events: ["log.entryAdded", "network.beforeRequestSent"] });
    return {
        send,
        events,
        async close() {
            socket.close();
            child.kill();
            await ended;
            rmSync(profile, { recursive: true, force: true });
        },
    };
}

/** Opens a file and waits until the page is usable. */
export async function open(firefox, path, { width = 1440, height = 960, hash = "" } = {}) {
    const { context } = await firefox.send("browsingContext.create", { type: "tab" });
    await firefox.send("browsingContext.setViewport", { context, viewport: { width, height } });
    const begin = firefox.events.length;
    await firefox.send("browsingContext.navigate", {
        context,
        url: `file://${path}${hash}`,
        wait: "complete",
    });
    /** Runs an expression in the page. Its value must be a text, a number or a boolean. */
    const evaluate = async (expression) => {
        const { result, exceptionDetails } = await firefox.send("script.evaluate", {
            expression,
            target: { context },
            awaitPromise: true,
        });
        if (exceptionDetails) throw new Error(exceptionDetails.text);
        return result.value;
    };
    await evaluate(
        `new Promise((done) => {
            const { dataset } = document.documentElement;
            const look = () => (dataset.ready || dataset.failed ? done(true) : setTimeout(look, 30));
            look();
        })`,
    );
    const press = (...keys) =>
        firefox.send("input.performActions", {
            context,
            actions: [
                {
                    type: "key",
                    id: "keys",
                    actions: keys.flatMap((value) => [
                        { type: "keyDown", value },
                        { type: "keyUp", value },
                    ]),
                },
            ],
        });
    const rest = () => evaluate("new Promise((done) => setTimeout(() => done(true), 500))");
    const problems = () =>
        firefox.events
            .slice(begin)
            .filter(
                (event) =>
                    event.method === "log.entryAdded" &&
                    ["error", "warn"].includes(event.params.level),
            )
            .map((event) => event.params.text);
    const requests = () =>
        firefox.events
            .slice(begin)
            .filter((event) => event.method === "network.beforeRequestSent")
            .map((event) => event.params.request.url);
    const close = () => firefox.send("browsingContext.close", { context });
    return { evaluate, press, rest, problems, requests, close, context };
}
