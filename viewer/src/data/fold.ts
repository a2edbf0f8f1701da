// Shortens the call tree. A run of library frames becomes one node: the tree then shows the user's
// own code and where it calls a library. Hidden functions are left out: their callees follow their
// callers.
import type { StackTables } from "./header";

export interface FoldedStacks {
    tables: StackTables;
    to: Uint32Array; // node of the folded tree for each node of the full tree
}

/** What is left out of the tree. */
export interface Folding {
    fold: boolean; // library frames are drawn as one
    hidden: string; // "3,12": frames whose functions are left out; empty = none
}

/** The frames of `hidden`. Others than those of the tables are ignored. */
export function hiddenFrames({ frames }: StackTables, hidden: string): number[] {
    return hidden === ""
        ? []
        : hidden
              .split(",")
              .map(Number)
              .filter((frame) => frame < frames.function.length);
}

/** Per frame: whether its function is hidden. All lines of a function are. */
function hiddenBy(whole: StackTables, hidden: string): (frame: number) => boolean {
    const { function: of, file } = whole.frames;
    const key = (frame: number): string => `${of[frame]},${file[frame]}`;
    const functions = new Set(hiddenFrames(whole, hidden).map(key));
    return (frame) => functions.size > 0 && functions.has(key(frame));
}

export function foldStacks(whole: StackTables, { fold, hidden }: Folding): FoldedStacks {
    const { parent, frame } = whole.stacks;
    const isHidden = hiddenBy(whole, hidden);
    const strings = whole.strings.slice();
    const frames = {
        function: whole.frames.function.slice(),
        file: whole.frames.file.slice(),
        line: whole.frames.line.slice(),
        python: whole.frames.python.slice(),
        label: whole.frames.label.slice(),
        library: whole.frames.library.slice(),
    };
    const noFile = strings.push("") - 1;
    const packageFrames = new Map<string, number>();
    const packageFrame = (name: string): number => {
        const known = packageFrames.get(name);
        if (known !== undefined) return known;
        frames.function.push(strings.push(`${name} …`) - 1);
        frames.label.push(strings.length - 1);
        frames.library.push(strings.push(name) - 1);
        frames.file.push(noFile);
        frames.line.push(0);
        const made = frames.python.push(0) - 1;
        packageFrames.set(name, made);
        return made;
    };
    const libraryOf = (at: number): string => whole.strings[whole.frames.library[at]];
    const stacks = { parent: [0], frame: [frame[0] ?? 0], telling: [0] };
    const folded = [false]; // per new node: whether it stands for library frames
    const known = new Map<string, number>();
    const to = new Uint32Array(parent.length);
    const tellingOf = (node: number): number => {
        let at = node;
        for (let up = whole.stacks.telling[node] ?? 0; up > 0; --up) at = parent[at];
        return at;
    };
    // Counts the callers from the new node up to the frame that names the stack. 0 if that frame is
    // not on the path.
    const upTo = (made: number, node: number): number => {
        let up = 0;
        if (node === 0) return 0;
        for (let at = made; at > 0; at = stacks.parent[at], ++up) if (at === to[node]) return up;
        return 0;
    };
    // Stacks that are all of libraries would be one box.
    const folds = fold && frame.some((of, node) => node > 0 && libraryOf(of) === "");
    for (let node = 1; node < parent.length; ++node) {
        const above = to[parent[node]];
        const isLibrary = folds && libraryOf(frame[node]) !== "";
        if (isHidden(frame[node]) || (isLibrary && folded[above])) {
            to[node] = above;
            continue;
        }
        const of = isLibrary ? packageFrame(libraryOf(frame[node])) : frame[node];
        const key = `${above},${of}`;
        let made = known.get(key);
        if (made === undefined) {
            stacks.parent.push(above);
            made = stacks.frame.push(of) - 1;
            folded.push(isLibrary);
            known.set(key, made);
            stacks.telling.push(upTo(made, tellingOf(node)));
        }
        to[node] = made;
    }
    return { tables: { strings, frames, stacks }, to };
}
