// Regular expressions that cannot hang, whatever they are and whatever they are held against: each
// is made into a small machine that reads a text once, character by character, in all of its states
// at the same time. (The browser's own try one way after another, which can take for ever, and a
// link can carry an expression.) What such a machine cannot do is refused: back references and
// looking ahead or behind. Case does not matter.

type Test = (code: number) => boolean;

// What a state does: take a character, go on to one or two others, ask where in the text it is, or
// end.
interface State {
    take: Test | null;
    next: number;
    other: number;
    where: Where | null;
    end: boolean;
}
type Where = "begin" | "finish" | "border" | "inside";

const mostStates = 1500;
const mostRepeats = 200;
const mostDepth = 40;

export const isWord = (code: number): boolean =>
    (code >= 48 && code <= 57) ||
    (code >= 97 && code <= 122) ||
    (code >= 65 && code <= 90) ||
    code === 95;
const isDigit: Test = (code) => code >= 48 && code <= 57;
const isSpace: Test = (code) =>
    (code >= 9 && code <= 13) ||
    code === 32 ||
    code === 160 ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0xfeff;
const classes: Record<string, Test> = {
    d: isDigit,
    D: (code) => !isDigit(code),
    w: isWord,
    W: (code) => !isWord(code),
    s: isSpace,
    S: (code) => !isSpace(code),
};
const characters: Record<string, string> = { n: "\n", t: "\t", r: "\r", f: "\f", v: "\v", 0: "\0" };

// A part of the machine: where it begins, and the states whose `next` is still open.
interface Part {
    begin: number;
    open: [state: number, which: "next" | "other"][];
}

class Maker {
    readonly states: State[] = [];
    private at = 0;
    private depth = 0;

    constructor(private readonly text: string) {}

    make(): number {
        const whole = this.choice();
        if (this.at < this.text.length) throw new Error("there is a ) too many");
        this.join(whole, this.state({ end: true }));
        return whole.begin;
    }

    private state(made: Partial<State>): number {
        if (this.states.length >= mostStates) throw new Error("it is too large");
        return (
            this.states.push({
                take: null,
                next: -1,
                other: -1,
                where: null,
                end: false,
                ...made,
            }) - 1
        );
    }

    private join(part: Part, to: number): void {
        for (const [state, which] of part.open) this.states[state][which] = to;
    }

    private single(made: Partial<State>): Part {
        const begin = this.state(made);
        return { begin, open: [[begin, "next"]] };
    }

    private fork(first: number): number {
        return this.state({ next: first, other: -2 }); // -2: a second way, yet to be told
    }

    private choice(): Part {
        if (++this.depth > mostDepth) throw new Error("its groups are too deep");
        let part = this.sequence();
        while (this.text[this.at] === "|") {
            ++this.at;
            const second = this.sequence();
            const begin = this.state({ next: part.begin, other: second.begin });
            part = { begin, open: [...part.open, ...second.open] };
        }
        --this.depth;
        return part;
    }

    private sequence(): Part {
        let part = this.single({}); // takes nothing
        while (
            this.at < this.text.length &&
            this.text[this.at] !== "|" &&
            this.text[this.at] !== ")"
        ) {
            const next = this.repeated();
            this.join(part, next.begin);
            part = { begin: part.begin, open: next.open };
        }
        return part;
    }

    private repeated(): Part {
        const from = this.at;
        let part = this.atom();
        const until = this.at;
        const range = this.range();
        if (!range) return part;
        if (this.range()) throw new Error("nothing to repeat");
        const after = this.at;
        // Copies: the atom is read again for each.
        const copy = (): Part => {
            this.at = from;
            const made = this.atom();
            this.at = after;
            return made;
        };
        const [least, most] = range;
        const parts: Part[] = [];
        for (let i = 0; i < least; ++i) parts.push(i === 0 ? part : copy());
        if (most === Infinity) {
            const last = least > 0 ? parts[least - 1] : part;
            const fork = this.fork(last.begin);
            this.join(last, fork);
            parts[Math.max(0, least - 1)] = {
                begin: least > 0 ? last.begin : fork,
                open: [[fork, "other"]],
            };
        }
        const skips: Part["open"] = [];
        for (let i = least; most !== Infinity && i < most; ++i) {
            const once = i === 0 ? part : copy();
            const fork = this.fork(once.begin);
            skips.push([fork, "other"]);
            parts.push({ begin: fork, open: once.open });
        }
        if (parts.length === 0) {
            part = this.single({});
        } else {
            for (let i = 0; i + 1 < parts.length; ++i) this.join(parts[i], parts[i + 1].begin);
            part = { begin: parts[0].begin, open: [...parts[parts.length - 1].open, ...skips] };
        }
        this.at = Math.max(after, until);
        return part;
    }

    private range(): [least: number, most: number] | null {
        const sign = this.text[this.at];
        let range: [number, number] | null =
            sign === "*"
                ? [0, Infinity]
                : sign === "+"
                  ? [1, Infinity]
                  : sign === "?"
                    ? [0, 1]
                    : null;
        if (range) {
            ++this.at;
        } else {
            const counted = /^\{(\d+)(,(\d*))?\}/.exec(this.text.slice(this.at, this.at + 20));
            if (!counted) return null;
            const least = Number(counted[1]);
            range = [
                least,
                counted[2] === undefined
                    ? least
                    : counted[3] === ""
                      ? Infinity
                      : Number(counted[3]),
            ];
            if (range[1] < least) throw new Error("numbers out of order in {}");
            if (least > mostRepeats || (range[1] !== Infinity && range[1] > mostRepeats)) {
                throw new Error("it repeats too often");
            }
            this.at += counted[0].length;
        }
        if (this.text[this.at] === "?") ++this.at; // as few as possible: the same, where only whether counts
        return range;
    }

    private atom(): Part {
        const sign = this.text[this.at++];
        switch (sign) {
            case "(": {
                if (this.text[this.at] === "?") {
                    const kind = /^\?(?::|<(\w+)>)/.exec(this.text.slice(this.at, this.at + 100));
                    if (!kind) throw new Error("looking ahead or behind is refused");
                    this.at += kind[0].length;
                }
                const part = this.choice();
                if (this.text[this.at++] !== ")") throw new Error("a ) is missing");
                return part;
            }
            case "[":
                return this.single({ take: this.set() });
            case ".":
                return this.single({ take: (code) => code !== 10 && code !== 13 });
            case "^":
                return this.single({ where: "begin" });
            case "$":
                return this.single({ where: "finish" });
            case "*":
            case "+":
            case "?":
                throw new Error("nothing to repeat");
            case "\\": {
                const escaped = this.text[this.at++];
                if (escaped === "b") return this.single({ where: "border" });
                if (escaped === "B") return this.single({ where: "inside" });
                if (escaped && /[1-9k]/.test(escaped)) {
                    throw new Error("references to groups are refused");
                }
                return this.single({ take: this.escaped(escaped) });
            }
            default:
                return this.single({ take: this.literal(sign.toLowerCase()) });
        }
    }

    private literal(text: string): Test {
        const wanted = text.charCodeAt(0);
        return (code) => code === wanted;
    }

    private escaped(sign: string | undefined): Test {
        if (sign === undefined) throw new Error("it ends in a \\");
        return classes[sign] ?? this.literal(this.character(sign));
    }

    private character(sign: string): string {
        if (sign === "x" || sign === "u") {
            const digits = new RegExp(`^[0-9a-fA-F]{${sign === "x" ? 2 : 4}}`).exec(
                this.text.slice(this.at, this.at + 4),
            );
            if (digits) {
                this.at += digits[0].length;
                return String.fromCharCode(parseInt(digits[0], 16)).toLowerCase();
            }
        }
        return (characters[sign] ?? sign).toLowerCase();
    }

    private set(): Test {
        const tests: Test[] = [];
        const not = this.text[this.at] === "^";
        if (not) ++this.at;
        const one = (): Test | string => {
            const sign = this.text[this.at++];
            if (sign === undefined) throw new Error("a ] is missing");
            if (sign !== "\\") return sign;
            const escaped = this.text[this.at++];
            if (escaped === undefined) throw new Error("a ] is missing");
            return classes[escaped] ?? (escaped === "b" ? "\b" : this.character(escaped));
        };
        while (this.text[this.at] !== "]") {
            const low = one();
            if (
                typeof low === "string" &&
                this.text[this.at] === "-" &&
                this.text[this.at + 1] !== "]"
            ) {
                ++this.at;
                const high = one();
                if (typeof high !== "string" || high < low) {
                    throw new Error("a range in [] is out of order");
                }
                // The text is in small letters: a range matches what either of its cases does.
                const [from, to] = [low.charCodeAt(0), high.charCodeAt(0)];
                tests.push(
                    (code) =>
                        (code >= from && code <= to) ||
                        (code >= 97 && code <= 122 && code - 32 >= from && code - 32 <= to),
                );
            } else if (typeof low === "string") {
                tests.push(this.literal(low.toLowerCase()));
            } else {
                tests.push(low);
            }
        }
        ++this.at;
        return (code) => tests.some((test) => test(code)) !== not;
    }
}

// Before the next character is known: the states, and what came last (begin of the text, word,
// other).
interface Step {
    states: number[];
    last: number;
    next: Map<number, Step | null>;
} // null = found

const mostSteps = 2000; // kept; then they are forgotten and made anew
const atEnd = -1;
const costOfState = 8;

export class Expression {
    /**
     * Below 0 nothing is found any more. About one a character that was met before in the same
     * states, more for others.
     */
    effort = 30_000_000;
    private readonly states: State[];
    private readonly first: number;
    private steps = new Map<string, Step>();

    /** Throws with a few words about what cannot be used. */
    constructor(text: string) {
        const maker = new Maker(text);
        this.first = maker.make();
        this.states = maker.states;
    }

    /** Whether it is found anywhere in the text. */
    test(text: string): boolean {
        const small = text.toLowerCase();
        let step = this.step([this.first], 0);
        for (let i = 0; i <= small.length; ++i) {
            if (--this.effort < 0) return false;
            const code = i < small.length ? small.charCodeAt(i) : atEnd;
            let next = step.next.get(code);
            if (next === undefined) {
                next = this.advance(step, code);
                step.next.set(code, next);
            }
            if (next === null) return true;
            step = next;
        }
        return false;
    }

    private step(states: number[], last: number): Step {
        const name = `${last}:${states.join()}`;
        let step = this.steps.get(name);
        if (!step) {
            if (this.steps.size >= mostSteps) this.steps = new Map();
            step = { states, last, next: new Map() };
            this.steps.set(name, step);
        }
        return step;
    }

    // All that can be reached without taking a character, then what takes this one.
    private advance({ states, last }: Step, code: number): Step | null {
        const seen = new Uint8Array(this.states.length);
        const work = [...states];
        const taken = new Set<number>([this.first]); // it may begin anywhere
        const word = code !== atEnd && isWord(code);
        const border = (last === 1) !== word;
        while (work.length > 0) {
            const at = work.pop()!;
            if (at < 0 || seen[at]) continue;
            seen[at] = 1;
            this.effort -= costOfState;
            const { take, next, other, where, end } = this.states[at];
            if (end) return null;
            if (take) {
                if (code !== atEnd && take(code)) taken.add(next);
                continue;
            }
            if (
                where === "begin"
                    ? last !== 0
                    : where === "finish"
                      ? code !== atEnd
                      : where === "border"
                        ? !border
                        : where === "inside" && border
            ) {
                continue;
            }
            work.push(next, other);
        }
        this.effort -= costOfState * taken.size;
        return this.step(
            [...taken].sort((a, b) => a - b),
            word ? 1 : 2,
        );
    }
}
