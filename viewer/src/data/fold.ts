// The call tree with runs of library frames folded into one node each: what is left is the user's
// own code and where it enters a library.
import type { StackTables } from "./header";
import { isLibraryFrame, packageOf } from "./own";

export interface FoldedStacks {
    tables: StackTables;
    to: Uint32Array;  // node of the folded tree, per node of the whole one
}

export function foldStacks(whole: StackTables): FoldedStacks {
    const { parent, frame } = whole.stacks;
    const strings = whole.strings.slice();
    const frames = {
        function: whole.frames.function.slice(), file: whole.frames.file.slice(), line: whole.frames.line.slice(), python: whole.frames.python.slice(),
    };
    const noFile = strings.push("") - 1;
    const packageFrames = new Map<string, number>();
    const packageFrame = (name: string): number => {
        const known = packageFrames.get(name);
        if (known !== undefined) return known;
        frames.function.push(strings.push(`${name} …`) - 1);
        frames.file.push(noFile);
        frames.line.push(0);
        const made = frames.python.push(0) - 1;
        packageFrames.set(name, made);
        return made;
    };
    const library = Uint8Array.from(whole.frames.function, (_, at) => (isLibraryFrame(whole, at) ? 1 : 0));
    const stacks = { parent: [0], frame: [frame[0] ?? 0] };
    const folded = [false];  // per new node: stands for library frames
    const known = new Map<string, number>();
    const to = new Uint32Array(parent.length);
    for (let node = 1; node < parent.length; ++node) {
        const above = to[parent[node]];
        const isLibrary = library[frame[node]] === 1;
        if (isLibrary && folded[above]) {
            to[node] = above;
            continue;
        }
        const of = isLibrary ? packageFrame(packageOf(whole, frame[node])) : frame[node];
        const key = `${above},${of}`;
        let made = known.get(key);
        if (made === undefined) {
            stacks.parent.push(above);
            made = stacks.frame.push(of) - 1;
            folded.push(isLibrary);
            known.set(key, made);
        }
        to[node] = made;
    }
    return { tables: { strings, frames, stacks }, to };
}
