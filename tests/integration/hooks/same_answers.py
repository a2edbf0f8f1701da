"""Calls every function of the table in every way, with right and wrong arguments, and prints the answers.

An answer is the result and the bytes behind each pointer argument. The program runs twice, with and without
the recorder, and the output must be the same. It ends with an error if a parameter is unknown to it.
"""

import ctypes
import mmap
import os
import re
import sys

from cuda_calls import Dim3, Extent, IpcMemoryHandle, Libraries, rows
from cuda_structures import (
    ACCESS,
    ALLOC_NODE,
    ARRAY,
    ARRAY_3D,
    CHANNELS,
    EXTERNAL_BUFFER,
    IMAGE,
    LOCATION,
    MIB,
    MULTICAST,
    PHYSICAL,
    POOL,
    SHARED_POOL,
    pack,
)

ABSURD = 2**62
NOT_SUPPORTED = 801
UNKNOWN = 0x1234000  # an address or handle that was never allocated
BUFFER = 512
PATTERN = b"\xa5"
LIBRARIES = Libraries()
CUDA = LIBRARIES.driver


class Buffer:
    """Memory of the program that a function may read and write."""

    def __init__(self, content=b"", pattern=PATTERN):
        self.memory = ctypes.create_string_buffer(content + pattern * (BUFFER - len(content)), BUFFER)

    def value(self):
        return ctypes.cast(self.memory, ctypes.c_void_p)

    def text(self, own):
        """The current contents. Addresses of this program's own memory are left out."""
        found = self.memory.raw
        for address in own:
            found = found.replace(address.to_bytes(8, "little"), b"(own)   ")
        kept = len(found.rstrip(PATTERN))
        return found[:kept].hex() if kept else "untouched"


def must(result, what):
    if result != 0:
        sys.exit(f"{what}: {result}")


def made(name, *arguments):
    """Calls a function whose first parameter returns a handle."""
    out = ctypes.c_uint64()
    result = getattr(CUDA, name)(ctypes.byref(out), *arguments)
    if result == NOT_SUPPORTED:
        return 0x1000
    must(result, name)
    return out.value


def u64(value):
    return ctypes.c_uint64(value)


CONTEXTS = []  # contexts of the program, to be destroyed at the end
REGISTERED = []  # host memory, to be unregistered at the end
DESCRIPTORS = []


class World:
    """A context with objects of every kind, which are created on first use."""

    def __init__(self):
        while CONTEXTS:
            CUDA.cuCtxDestroy_v2(u64(CONTEXTS.pop()))  # may already be destroyed
        while DESCRIPTORS:
            try:
                os.close(DESCRIPTORS.pop())
            except OSError:
                pass  # importing may have closed it
        while REGISTERED:
            CUDA.cuMemHostUnregister(u64(REGISTERED.pop()))
        CUDA.cuMemHostUnregister(u64(UNKNOWN))
        must(CUDA.cuDevicePrimaryCtxReset_v2(0), "reset")
        self.context = made("cuDevicePrimaryCtxRetain", 0)
        must(CUDA.cuCtxSetCurrent(u64(self.context)), "cuCtxSetCurrent")
        default = made("cuDeviceGetDefaultMemPool", 0)
        must(CUDA.cuDeviceSetMemPool(0, u64(default)), "cuDeviceSetMemPool")
        self.keep = []
        self.made_graph = None
        self.imported = None
        self.shared_pointer = None

    def device_memory(self):
        return made("cuMemAlloc_v2", u64(MIB))

    def host_memory(self):
        return made("cuMemHostAlloc", u64(8192), 0)

    def own_memory(self):
        self.keep.append(mmap.mmap(-1, 2 * MIB))
        REGISTERED.append(ctypes.addressof(ctypes.c_char.from_buffer(self.keep[-1])))
        return REGISTERED[-1]

    def registered_memory(self):
        address = self.own_memory()
        must(CUDA.cuMemHostRegister_v2(u64(address), u64(8192), 0), "register")
        return address

    def pool(self):
        return made("cuMemPoolCreate", POOL)

    def stream(self):
        return made("cuStreamCreate", 1)

    def shared_pool(self):
        return made("cuMemPoolCreate", SHARED_POOL)

    def pool_descriptor(self, pool=None):
        fd = made("cuMemPoolExportToShareableHandle", u64(pool or self.shared_pool()), 1, u64(0))
        DESCRIPTORS.append(fd & 0xFFFFFFFF)
        return DESCRIPTORS[-1]

    def shared_pool_memory(self):
        self.exported_pool = self.shared_pool()
        return made("cuMemAllocFromPoolAsync", u64(MIB), u64(self.exported_pool), None)

    def pool_pointer(self):
        """Names memory of an exported pool. imported_pool() is that pool."""
        content = ctypes.create_string_buffer(64)
        CUDA.cuMemPoolExportPointer(content, u64(self.shared_pool_memory()))
        self.imported = made(
            "cuMemPoolImportFromShareableHandle", u64(self.pool_descriptor(self.exported_pool)), 1, u64(0)
        )
        self.shared_pointer = content.raw
        return content.raw

    def graph(self):
        self.made_graph = self.made_graph or made("cuGraphCreate", 0)
        return self.made_graph

    def node_memory(self):
        node = ctypes.c_uint64()
        parameters = ctypes.create_string_buffer(ALLOC_NODE)
        CUDA.cuGraphAddMemAllocNode(ctypes.byref(node), u64(self.graph()), None, u64(0), parameters)
        return int.from_bytes(parameters.raw[112:120], "little")

    def multicast(self):
        handle = made("cuMulticastCreate", MULTICAST)
        CUDA.cuMulticastAddDevice(u64(handle), 0)
        return handle

    def external_memory(self):
        return made("cuImportExternalMemory", external(self))

    def descriptor(self):
        DESCRIPTORS.append(os.open("/dev/null", os.O_RDONLY))
        return DESCRIPTORS[-1]

    def graph_exec(self):
        return made("cuGraphInstantiateWithFlags", u64(self.graph()), u64(0))

    def physical(self):
        return made("cuMemCreate", u64(2 * MIB), PHYSICAL, u64(0))

    def range(self):
        return made("cuMemAddressReserve", u64(2 * MIB), u64(0), u64(0), u64(0))

    def mapped(self):
        address = self.range()
        must(CUDA.cuMemMap(u64(address), u64(2 * MIB), u64(0), u64(self.physical()), u64(0)), "map")
        return address

    def own_context(self):
        context = made("cuCtxCreate_v2", 0, 0)
        must(CUDA.cuCtxSetCurrent(u64(self.context)), "cuCtxSetCurrent")
        CONTEXTS.append(context)
        return context

    def module(self):
        return made("cuModuleLoadData", IMAGE)

    def function(self):
        return made("cuModuleGetFunction", u64(self.module()), b"k")

    def shared_physical(self):
        fd = made("cuMemExportToShareableHandle", u64(self.physical()), 1, u64(0)) & 0xFFFFFFFF
        DESCRIPTORS.append(fd)
        return fd

    def library(self):
        return made("cuLibraryLoadData", IMAGE, None, None, 0, None, None, 0)


# Existing objects: (name pattern of the function, type, name) -> how to make a valid one. The first match
# counts.
RIGHT = [
    (r".*Host(Register|Unregister).*|.*FreeHost", r"void\*", "address", None),  # see host_address
    (r"cu(da)?MemPoolExportPointer", ".*", "address", World.shared_pool_memory),
    (r"cu(da)?GraphAddMemFreeNode", ".*", "address", World.node_memory),
    (r"cuMulticastBindAddr", ".*", "address", World.mapped),
    (r"cuMulticast.*", ".*", "multicast", World.multicast),
    (r".*PoolExport.*Handle", ".*", "pool", World.shared_pool),
    (r".*PoolImportPointer", ".*", "pool", lambda world: world.pool_pointer() and world.imported),
    (r"cuMemUnmap|cuMemSetAccess|cuMemRetain.*", ".*", "address", World.mapped),
    (r"cuMemAddressFree|cuMemMap", "CUdeviceptr", "address", World.range),
    (r".*", "CUdeviceptr|void\\*", "address", World.device_memory),
    (r".*", "CUdeviceptr", "hint", lambda world: 0),
    (r".*", "CUmemHandle", "handle|multicast", World.physical),
    (r".*", "CUmemoryPool|cudaMemPool_t", "pool", World.pool),
    (r".*", "CUstream|cudaStream_t", "stream", World.stream),
    (r".*", "CUgraph|cudaGraph_t", "graph", World.graph),
    (r".*", "CUgraphExec|cudaGraphExec_t", "exec", World.graph_exec),
    (r"cuModuleUnload", "CUmodule", "module", World.module),
    (r"cuLibraryUnload", "CUlibrary", "library", World.library),
    (r"cuCtx.*", "CUcontext", "context", World.own_context),
    (
        r".*Mipmapped.*",
        "CUmipmappedArray|cudaMipmappedArray_t",
        "array",
        lambda world: made("cuMipmappedArrayCreate", ARRAY_3D, 2),
    ),
    (r".*", "CUarray|cudaArray_t", "array", lambda world: made("cuArray3DCreate_v2", ARRAY_3D)),
    (r".*", "CUexternalMemory|cudaExternalMemory_t", "memory", World.external_memory),
    (r".*", "CUfunction", "function", World.function),
    (r"cuMemImport.*", r"void\*", "shared", World.shared_physical),
    (r".*MemPoolImport.*Handle", r"void\*", "shared", World.pool_descriptor),
    (r".*", "cudaEvent_t", "event", lambda world: made("cuEventCreate", 0)),
]


def host_address(row, world):
    if "Free" in row.symbol:
        return world.host_memory()
    return world.registered_memory() if "Unregister" in row.symbol else world.own_memory()


# Numbers: name -> (valid value, invalid values...).
NUMBERS = {
    "bytes": (2 * MIB, 0, 1, ABSURD),
    "width_bytes": (1000, 0, ABSURD),
    "width": (64, 0, ABSURD),
    "height": (10, 0, ABSURD),
    "element_bytes": (4, 3),
    "alignment": (0, 3),
    "offset": (0, 7),
    "multicast_offset": (0, 7),
    "count": (1, 0),
    "keep_bytes": (0, ABSURD),
    "flags": (0, 0xFFFF),
    "attach_flags": (1, 0, 0xFF),
    "attribute": (4, 1, 7, 99),
    "type": (1, 9),
    "handle_type": (1, 77),
    "device": (0, 1, -1, 99),
    "levels": (2, 0),
    "limit": (2, 77),
    "value": (8 * MIB,),
    "dependency_count": (0, 1),
    "affinity_count": (0,),
    "log_bytes": (0,),
    "option_count": (0,),
    "jit_count": (0,),
    "library_count": (0,),
    "version": (12000, 1),
    "shared_bytes": (0,),
    **{f"{what}_{axis}": (1, 0) for what in ("grid", "block") for axis in "xyz"},
}

# Structures and other memory that is read: name or type -> contents. Other memory is written.
CONTENT = {
    "PoolProperties*": POOL,
    "MemoryProperties*": PHYSICAL,
    "ArrayDescriptor*": ARRAY,
    "Array3dDescriptor*": ARRAY_3D,
    "ChannelFormat*": CHANNELS,
    "AllocNodeParameters*": ALLOC_NODE,
    "MemoryLocation*": LOCATION,
    "MulticastProperties*": MULTICAST,
    "ExternalBufferDescriptor*": EXTERNAL_BUFFER,
    "access": ACCESS,
    "image": IMAGE,
    "path": b"/nowhere/at/all\0",
    "value": pack((MIB,)),
    "instantiation": bytes(64),
    "symbol": b"cuMemAlloc\0",
    "shared": bytes(64),
    "descriptor": bytes(256),
    "configuration": pack(1, 1, 1, 1, 1, 1) + bytes(64),
    "function": bytes(64),
    "kernel": bytes(64),
    "creation": bytes(32),
}
NULL_IS_RIGHT = {
    "dependencies",
    "dependency_data",
    "error_node",
    "log",
    "options",
    "option_values",
    "jit_options",
    "jit_values",
    "library_options",
    "library_values",
    "arguments",
    "extra",
    "affinities",
    "creation",
}
WRITTEN = {
    "address",
    "pitch",
    "pitched",
    "pool",
    "array",
    "handle",
    "memory",
    "node",
    "exec",
    "context",
    "module",
    "library",
    "free_bytes",
    "total_bytes",
    "shared",
    "function",
    "status",
    "count",
    "parameters",
}
# The program would crash with these null pointers on the virtual libraries, and on NVIDIA's: nothing to
# compare.
NO_NULL = {
    ("configuration", ".*"),
    ("symbol", "cudaGetDriver.*"),
    ("path", ".*"),
    ("image", ".*"),
    ("function", "cudaGetDriver.*"),
}


def external(world):
    """A descriptor of external memory: an open file."""
    return pack(1, 0, (world.descriptor(),), (0,), (MIB,), 0) + bytes(68)


def nodes(row, world):
    """Node parameters for cuGraphAddNode: an allocation, a free, and one without memory."""
    yield pack(10, 0, 0, 0) + ALLOC_NODE + bytes(240 - len(ALLOC_NODE))
    yield pack(11, 0, 0, 0, (world.device_memory(),)) + bytes(240)
    yield pack(5, 0, 0, 0) + bytes(240)


def choices(row, parameter, world):
    """Functions that make an argument, the valid one first."""
    name, kind = parameter.name, parameter.type
    if kind in ("Extent", "Dim3", "IpcMemoryHandle"):
        right = {"Extent": Extent(64, 4, 2), "Dim3": Dim3(1, 1, 1)}.get(kind)
        if kind == "IpcMemoryHandle":
            right = IpcMemoryHandle()
            CUDA.cuIpcGetMemHandle(ctypes.byref(right), u64(world.device_memory()))
        return [right, {"Extent": Extent(0, 0, 0), "Dim3": Dim3(0, 0, 0)}.get(kind, IpcMemoryHandle())]
    for pattern, types, names, make in RIGHT:
        if re.fullmatch(pattern, row.symbol) and re.fullmatch(types, kind) and re.fullmatch(names, name):
            right = host_address(row, world) if make is None else make(world)
            return [right, 0, UNKNOWN]
    if not parameter.is_pointer:
        return list(NUMBERS[name])  # a KeyError here means an unknown parameter
    bare = kind.replace("const ", "")
    if name in NULL_IS_RIGHT:
        return [None]
    if bare == "GraphNodeParameters*":
        found = [Buffer(content) for content in nodes(row, world)]
    elif bare == "ExternalMemoryDescriptor*":
        found = [Buffer(external(world))]
    elif bare == "PoolPointer*" and "Import" in row.symbol:
        found = [Buffer(world.shared_pointer or world.pool_pointer())]
    elif bare in CONTENT:
        found = [Buffer(CONTENT[bare])]
    elif name in CONTENT and not (name == "shared" and "Export" in row.symbol):
        found = [Buffer(CONTENT[name])]
    elif name in WRITTEN:
        found = [Buffer()]
    else:
        raise KeyError(f"{row.symbol}: no argument is known for {kind} {name}")
    if not any(name == bad and re.fullmatch(where, row.symbol) for bad, where in NO_NULL):
        found.append(None)
    return found


def call(row, way, function, arguments, label, world):
    own = [ctypes.addressof(ctypes.c_char.from_buffer(memory)) for memory in world.keep]
    own += [ctypes.addressof(a.memory) for a in arguments if isinstance(a, Buffer)]
    raw = [a.value() if isinstance(a, Buffer) else a for a in arguments]
    # Printed before the call, because it may end the process.
    print(f"{row.symbol} [{way}] {label}", end="", flush=True)
    ctypes.set_errno(77)
    result = function(*raw)
    if result == 0 and row.symbol.startswith("cuCtxCreate"):
        CONTEXTS.append(int.from_bytes(arguments[0].memory.raw[:8], "little"))
    # Two things differ between any two runs: which of two equivalent functions is returned, and the process
    # number in an IPC handle.
    for parameter, argument in zip(row.parameters, arguments):
        if not isinstance(argument, Buffer):
            continue
        if row.family == "kEntryPoint" and parameter.name == "function" and result == 0:
            argument.memory[:8] = b"function"
        names_process = parameter.type in ("IpcMemoryHandle*", "PoolPointer*")
        if names_process and (result == 0 or "Import" in row.symbol):
            argument.memory[:64] = b"process " * 8
    after = [a.text(own) for a in arguments if isinstance(a, Buffer)]
    print(f" -> {result} {' '.join(after)}")


def main():
    must(CUDA.cuInit(0), "cuInit")
    for row in rows():
        if row.symbol in SKIPPED:
            continue
        for way, function in LIBRARIES.ways(row):
            if function is None:
                print(f"{row.symbol} [{way}] is not there")
                continue
            counts = [len(choices(row, p, World())) for p in row.parameters]
            variants = [(None, 0)] + [(p, i) for p, n in enumerate(counts) for i in range(1, n)]
            for changed, index in variants:
                world = World()
                arguments = [choices(row, p, world) for p in row.parameters]
                arguments = [
                    options[index if position == changed else 0] for position, options in enumerate(arguments)
                ]
                label = "right" if changed is None else f"{row.parameters[changed].name}.{index}"
                call(row, way, function, arguments, label, world)


SKIPPED = set(sys.argv[1:])
os.environ.pop("LD_PRELOAD", None)
main()
print("all called")
