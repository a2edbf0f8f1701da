// Folds each run of library frames in the call tree into one node. The folded tree shows the user's
// own code and where it calls a library.
import type { StackTables } from "./header";

export interface FoldedStacks {
    tables: StackTables;
    to: Uint32Array; // node of the folded tree for each node of the full tree
}

export function foldStacks(whole: StackTables): FoldedStacks {
    const { parent, frame } = whole.stacks;
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
    for (let node = 1; node < parent.length; ++node) {
        const above = to[parent[node]];
        const isLibrary = libraryOf(frame[node]) !== "";
        if (isLibrary && folded[above]) {
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
