"""The table preload/hooks/hooks.def as callable functions, for programs on the virtual GPU.

It has their parameters with types and names, as ctypes, and the ways by which programs find CUDA's functions.
The programs run with and without the recorder.
"""

import ctypes
import pathlib
import re

TABLE = pathlib.Path(__file__).resolve().parents[3] / "preload" / "hooks" / "hooks.def"

PER_THREAD = 2  # CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM


class Extent(ctypes.Structure):
    _fields_ = [("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t)]


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class IpcMemoryHandle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


VALUES = {
    "size_t": ctypes.c_size_t,
    "unsigned int": ctypes.c_uint,
    "int": ctypes.c_int,
    "unsigned long long": ctypes.c_ulonglong,
    "uint64_t": ctypes.c_uint64,
    "CUdevice": ctypes.c_int,
    "CUdeviceptr": ctypes.c_uint64,
    "CUmemHandle": ctypes.c_uint64,
    "Extent": Extent,
    "Dim3": Dim3,
    "IpcMemoryHandle": IpcMemoryHandle,
}
HANDLES = {
    "CUarray",
    "CUcontext",
    "CUexternalMemory",
    "CUfunction",
    "CUgraph",
    "CUgraphExec",
    "CUgraphNode",
    "CUlibrary",
    "CUmemoryPool",
    "CUmipmappedArray",
    "CUmodule",
    "CUstream",
    "cudaArray_t",
    "cudaEvent_t",
    "cudaExternalMemory_t",
    "cudaGraphExec_t",
    "cudaGraphNode_t",
    "cudaGraph_t",
    "cudaMemPool_t",
    "cudaMipmappedArray_t",
    "cudaStream_t",
}


class Parameter:
    def __init__(self, text):
        self.type, self.name = re.fullmatch(r"(.*?)\s*(\w+)", text.strip()).groups()
        self.is_pointer = self.type.endswith("*")
        if self.is_pointer or self.type in HANDLES:
            self.ctype = ctypes.c_void_p
        else:
            self.ctype = VALUES[self.type]  # a KeyError here means a type that the tests do not know


class Row:
    def __init__(self, symbol, library, base, since, stream, family, parameters):
        self.symbol, self.library, self.base, self.since = symbol, library, base, since
        self.per_thread = stream == "kPerThreadStream"
        self.family = family
        self.parameters = [
            Parameter(part) for part in parameters.split(",") if part.strip() not in ("", "void")
        ]
        self.prototype = ctypes.CFUNCTYPE(ctypes.c_int, *(p.ctype for p in self.parameters))


def rows():
    found = []
    for line in TABLE.read_text().splitlines():
        driver = re.match(r'FT_DRIVER\((\w+), "(\w+)", (\d+), (\w+), (\w+), \((.*)\)\)$', line)
        runtime = re.match(r"FT_RUNTIME\((\w+), (\d+), (\w+), \((.*)\)\)$", line)
        if driver:
            symbol, base, since, stream, family, parameters = driver.groups()
            found.append(Row(symbol, "driver", base, int(since), stream, family, parameters))
        elif runtime:
            symbol, since, family, parameters = runtime.groups()
            found.append(Row(symbol, "runtime", "", int(since), "", family, parameters))
    return found


class Libraries:
    """The driver and the runtime, opened as a program opens them."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
        self.runtime = ctypes.CDLL("libcudart.so.13", mode=ctypes.RTLD_GLOBAL)
        self.program = ctypes.CDLL(None)
        self.dlvsym = self.program.dlvsym
        self.dlvsym.restype = ctypes.c_void_p
        self.dlvsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
        self.next_version = {}  # base name -> the lowest version that means a later row

    def ways(self, row):
        """(name of the way, function or None) for every way to find the function of a row."""
        library = self.driver if row.library == "driver" else self.runtime
        yield "dlsym", self.by_name(library, row)
        yield "global dlsym", self.by_name(self.program, row)
        if row.library == "runtime":
            address = self.dlvsym(self.runtime._handle, row.symbol.encode(), b"libcudart.so.13")
            yield "dlvsym", row.prototype(address) if address else None
            return
        for name, flags_last in (("cuGetProcAddress", ()), ("cuGetProcAddress_v2", (None,))):
            yield name, self.entry(getattr(self.driver, name), row, flags_last)
        for name, stream in (
            ("cudaGetDriverEntryPointByVersion", ""),
            ("cudaGetDriverEntryPointByVersion_ptsz", "_ptsz"),
        ):
            if bool(stream) == row.per_thread:
                yield name, self.entry(getattr(self.runtime, name), row, (None,))

    def by_name(self, library, row):
        try:
            return row.prototype((row.symbol, library))
        except AttributeError:
            return None

    def entry(self, get, row, rest):
        function = ctypes.c_void_p()
        get.argtypes = None
        result = get(
            row.base.encode(),
            ctypes.byref(function),
            ctypes.c_int(row.since),
            ctypes.c_uint64(PER_THREAD if row.per_thread else 0),
            *(ctypes.c_void_p(value) for value in rest),
        )
        return row.prototype(function.value) if result == 0 and function.value else None
