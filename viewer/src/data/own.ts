// Which frames are the user's own and which belong to libraries: the rules of the analyzer's
// trace/user_frame.cpp, so that both point at the same line.
import type { StackTables } from "./header";

const libraryParts = [
    "/site-packages/", "/dist-packages/", "/lib/python3", "/torch/nn/", "/torch/optim/", "/torch/utils/", "/torch/autograd/",
    "/torch/cuda/", "/torch/distributed/", "/torch/amp/", "/torch/_", "/torch/functional.py",
];
const plumbing = [
    "libfragtrace", "libcuda.", "libcudart", "libcublas", "libcudnn", "libcufft", "libcurand", "libcusolver", "libcusparse", "libnccl",
    "libnv", "libc10", "libtorch", "libc.so", "libc-", "libpthread", "libstdc++", "libgcc_s", "ld-linux", "libdl", "libpython", "python",
];
const libraryNames = /^(at|c10|torch|caffe2|std|__gnu_cxx|pybind11)::|^_?Py[A-Z_]|^_start$|^__libc_start|^start_thread$|^(__)?clone3?$/;

function base(path: string): string {
    return path.slice(path.lastIndexOf("/") + 1);
}

/** Python code that no file of the user holds; what is typed at a prompt or in a cell is their own. */
function isGenerated(file: string): boolean {
    if (file.startsWith("<")) return !/^<(stdin|ipython-input|python-input)/.test(file);
    return file.includes("/torchinductor_") || file.includes("/torch_compile_debug/");
}

export function isLibraryFrame(tables: StackTables, frame: number): boolean {
    const file = tables.strings[tables.frames.file[frame]];
    if (tables.frames.python[frame] === 1) return isGenerated(file) || libraryParts.some((part) => file.includes(part));
    const name = base(file);
    return name === "" || plumbing.some((part) => name.startsWith(part)) || libraryNames.test(tables.strings[tables.frames.function[frame]]) ||
        libraryParts.some((part) => file.includes(part));
}

/** What a folded run of library frames is called: the package or the module. */
export function packageOf(tables: StackTables, frame: number): string {
    const file = tables.strings[tables.frames.file[frame]];
    const installed = /\/(?:site|dist)-packages\/([^/]+)/.exec(file);
    if (installed) return installed[1].replace(/\.py$/, "");
    if (tables.frames.python[frame] === 1) return file.includes("/torch/") ? "torch" : "Python's library";
    const module = base(file);
    if (module.startsWith("libtorch") || module.startsWith("libc10")) return "torch";
    return module.includes(".so") ? module : "native code";
}
