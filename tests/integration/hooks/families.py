"""One scene per family of CUDA's memory calls.

For every call that is recorded it prints the expected event in the words of `fraganalyze dump`.

families.py SCENE {driver|runtime}
"""

import ctypes
import mmap
import os
import subprocess
import sys

from cuda_calls import Extent, IpcMemoryHandle, Libraries, rows
from cuda_structures import (
    ACCESS,
    ALLOC_NODE,
    ARRAY,
    ARRAY_3D,
    CHANNELS,
    IMAGE,
    MIB,
    MULTICAST,
    PHYSICAL,
    POOL,
    SHARED_POOL,
    pack,
)

LIBRARIES = Libraries()
DRIVER = LIBRARIES.driver
RUNTIME = LIBRARIES.runtime
LAYER = sys.argv[2]
IS_DRIVER = LAYER == "driver"
OUT_OF_MEMORY = 2


def expect(text):
    print("expect", text, flush=True)


def number(value):
    """An integer argument in full width. Other arguments stay unchanged."""
    return ctypes.c_uint64(value) if isinstance(value, int) else value


def call(name, *arguments, result=0):
    library = RUNTIME if name.startswith("cuda") else DRIVER
    found = getattr(library, name)(*(number(a) for a in arguments))
    if found != result:
        sys.exit(f"{name}: {found}, not {result}")


def made(name, *arguments):
    out = ctypes.c_uint64()
    call(name, ctypes.byref(out), *arguments)
    return out.value


def either(driver, runtime):
    return driver if IS_DRIVER else runtime


def of(pool):
    return f" pool=cuda {pool:#018x}"


def begin():
    call("cuInit", 0)
    context = made("cuDevicePrimaryCtxRetain", 0)
    expect(f"context_create handle={context:#x} bytes={256 * MIB}")
    call("cuCtxSetCurrent", context)
    return context


def device():
    """Linear, pitched and managed memory."""
    begin()
    address = made(either("cuMemAlloc_v2", "cudaMalloc"), 5000)
    expect(f"device_alloc address={address:#x} bytes=5000")
    pitch = ctypes.c_size_t()
    if IS_DRIVER:
        pitched = made("cuMemAllocPitch_v2", ctypes.byref(pitch), 1000, 30, 4)
        last = pitched
    else:
        pitched = made("cudaMallocPitch", ctypes.byref(pitch), 1000, 30)
        whole = (ctypes.c_size_t * 4)()
        RUNTIME.cudaMalloc3D(whole, Extent(1000, 10, 3))
        last = whole[0]
    expect(f"device_alloc address={pitched:#x} bytes={pitch.value * 30}")
    if last != pitched:
        expect(f"device_alloc address={last:#x} bytes={whole[1] * 30}")
    managed = made(either("cuMemAllocManaged", "cudaMallocManaged"), 3 * MIB, 1)
    expect(f"managed_alloc address={managed:#x} bytes={3 * MIB} flags=0x1")
    made_too_much = ctypes.c_uint64()
    call(either("cuMemAlloc_v2", "cudaMalloc"), ctypes.byref(made_too_much), 2**40, result=OUT_OF_MEMORY)
    expect(f"alloc_refused bytes={2**40} error=2")
    call(either("cuMemFree_v2", "cudaFree"), 0)
    for freed in {address: 0, pitched: 0, last: 0, managed: 0}:
        call(either("cuMemFree_v2", "cudaFree"), freed)
        expect(f"device_free address={freed:#x}")


def host():
    """Pinned memory, and memory that is pinned after its allocation."""
    begin()
    first = made(either("cuMemAllocHost_v2", "cudaMallocHost"), 5000)
    expect(f"host_alloc address={first:#x} bytes=5000 flags=0x0")
    second = made(either("cuMemHostAlloc", "cudaHostAlloc"), 6000, 2)
    expect(f"host_alloc address={second:#x} bytes=6000 flags=0x2")
    memory = mmap.mmap(-1, MIB)
    own = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    call(either("cuMemHostRegister_v2", "cudaHostRegister"), own, MIB, 1)
    expect(f"host_register address={own:#x} bytes={MIB} flags=0x1")
    call(either("cuMemHostUnregister", "cudaHostUnregister"), own)
    expect(f"host_unregister address={own:#x}")
    for freed in (second, first):
        call(either("cuMemFreeHost", "cudaFreeHost"), freed)
        expect(f"host_free address={freed:#x}")


def pools():
    """Stream-ordered memory and its pools."""
    begin()
    prefix = either("cuMem", "cudaMem")
    stream = made("cuStreamCreate", 1)
    first = made(either("cuMemAllocAsync", "cudaMallocAsync"), 4 * MIB, stream)
    expect(f"async_alloc address={first:#x} bytes={4 * MIB} stream={stream:#x}")
    pool = made(f"{prefix}PoolCreate", POOL)
    expect(f"pool_create handle={pool:#x} bytes=0{of(pool)}")
    threshold = ctypes.c_uint64(64 * MIB)
    call(f"{prefix}PoolSetAttribute", pool, 4, ctypes.byref(threshold))
    expect(f"pool_attribute handle={pool:#x} value={64 * MIB} attribute=4{of(pool)}")
    second = made(either("cuMemAllocFromPoolAsync", "cudaMallocFromPoolAsync"), 2 * MIB, pool, stream)
    expect(f"async_alloc address={second:#x} bytes={2 * MIB} stream={stream:#x}{of(pool)}")
    call(either("cuDeviceSetMemPool", "cudaDeviceSetMemPool"), 0, pool)
    expect(f"pool_select handle={pool:#x}{of(pool)}")
    third = made(either("cuMemAllocAsync_ptsz", "cudaMallocAsync_ptsz"), 2 * MIB, 0)
    expect(f"async_alloc address={third:#x} bytes={2 * MIB} stream=0x2{of(pool)}")
    call(
        either("cuMemAllocAsync", "cudaMallocAsync"),
        ctypes.byref(ctypes.c_uint64()),
        2**40,
        stream,
        result=OUT_OF_MEMORY,
    )
    expect(f"alloc_refused bytes={2**40} error=2 stream={stream:#x}{of(pool)}")
    expect(f"pool_info handle={pool:#x} used={4 * MIB} reserved={4 * MIB}{of(pool)} by_recorder")
    for freed in (second, third):
        call(either("cuMemFreeAsync", "cudaFreeAsync"), freed, stream)
        expect(f"async_free address={freed:#x} stream={stream:#x}")
    call("cuStreamSynchronize", stream)
    call(either("cuMemPoolTrimTo", "cudaMemPoolTrimTo"), pool, 0)
    expect(f"pool_info handle={pool:#x} used=0 reserved=0{of(pool)} by_recorder")
    expect(f"pool_trim handle={pool:#x} keep=0 reserved=0{of(pool)}")
    call(either("cuMemPoolDestroy", "cudaMemPoolDestroy"), pool)
    expect(f"pool_destroy handle={pool:#x}{of(pool)}")
    call(either("cuMemFree_v2", "cudaFree"), first)
    expect(f"device_free address={first:#x}")


def arrays():
    """Arrays, whose size is not an argument of any call."""
    begin()
    elements = 64 * 16 * 16  # bytes: 64 wide, 16 high, 4 channels of 4 bytes
    found = []
    if IS_DRIVER:
        found.append((made("cuArrayCreate_v2", ARRAY), elements, "cuArrayDestroy"))
        found.append((made("cuArray3DCreate_v2", ARRAY_3D), elements, "cuArrayDestroy"))
        found.append(
            (made("cuMipmappedArrayCreate", ARRAY_3D, 2), elements + elements // 4, "cuMipmappedArrayDestroy")
        )
    else:
        found.append((made("cudaMallocArray", CHANNELS, 64, 16, 0), elements, "cudaFreeArray"))
        out = ctypes.c_uint64()
        RUNTIME.cudaMalloc3DArray(ctypes.byref(out), CHANNELS, Extent(64, 16, 0), 0)
        found.append((out.value, elements, "cudaFreeArray"))
        levels = ctypes.c_uint64()
        RUNTIME.cudaMallocMipmappedArray(ctypes.byref(levels), CHANNELS, Extent(64, 16, 0), 2, 0)
        found.append((levels.value, elements + elements // 4, "cudaFreeMipmappedArray"))
    for handle, size, _ in found:
        expect(f"array_alloc handle={handle:#x} bytes={size}")
    for handle, _, free in found:
        call(free, handle)
        expect(f"array_free handle={handle:#x}")


def virtual():
    """Shared physical memory: each reference and each release."""
    begin()
    handle = made("cuMemCreate", 2 * MIB, PHYSICAL, 0)
    expect(f"physical_create handle={handle:#x} bytes={2 * MIB}")
    address = made("cuMemAddressReserve", 2 * MIB, 0, 0, 0)
    expect(f"address_reserve address={address:#x} bytes={2 * MIB}")
    call("cuMemMap", address, 2 * MIB, 0, handle, 0)
    expect(f"map address={address:#x} bytes={2 * MIB} handle={handle:#x}")
    call("cuMemSetAccess", address, 2 * MIB, ACCESS, 1)
    descriptor = made("cuMemExportToShareableHandle", handle, 1, 0) & 0xFFFFFFFF
    expect(f"export address={handle:#x} shared=0x0")
    imported = made("cuMemImportFromShareableHandle", descriptor, 1)
    expect(f"import address={imported:#x} bytes=unknown shared=0x0")
    retained = made("cuMemRetainAllocationHandle", address)
    expect(f"physical_retain handle={retained:#x}")
    multicast = made("cuMulticastCreate", MULTICAST)
    expect(f"physical_create handle={multicast:#x} bytes=0")
    for released in (multicast, retained, imported, handle):
        call("cuMemRelease", released)
        expect(f"physical_release handle={released:#x}")
    call("cuMemUnmap", address, 2 * MIB)
    expect(f"unmap address={address:#x} bytes={2 * MIB}")
    call("cuMemAddressFree", address, 2 * MIB)
    expect(f"address_free address={address:#x} bytes={2 * MIB}")


def fnv(content):
    value = 0xCBF29CE484222325
    for byte in content:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def ipc():
    """Memory of another process: opened twice, closed twice."""
    begin()
    address = made(either("cuMemAlloc_v2", "cudaMalloc"), 2 * MIB)
    expect(f"device_alloc address={address:#x} bytes={2 * MIB}")
    handle = IpcMemoryHandle()
    call(either("cuIpcGetMemHandle", "cudaIpcGetMemHandle"), ctypes.byref(handle), address)
    expect(f"export address={address:#x} shared={fnv(bytes(handle.bytes)):#x}")
    done = subprocess.run(
        [sys.executable, __file__, "ipc_peer", LAYER, bytes(handle.bytes).hex()],
        capture_output=True,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        print("peer", line)
    if done.returncode != 0:
        sys.exit(done.stderr)


def ipc_peer():
    begin()
    handle = IpcMemoryHandle.from_buffer_copy(bytes.fromhex(sys.argv[3]))
    shared = fnv(bytes(handle.bytes))
    for _ in range(2):
        address = made(either("cuIpcOpenMemHandle_v2", "cudaIpcOpenMemHandle"), handle, ctypes.c_uint(1))
        expect(f"import address={address:#x} bytes=unknown shared={shared:#x}")
    for _ in range(2):
        call(either("cuIpcCloseMemHandle", "cudaIpcCloseMemHandle"), address)
        expect(f"import_end address={address:#x}")


def external():
    """Memory of another interface: the import, its mappings, and their ends."""
    begin()
    prefix = either("cu", "cuda")
    file = os.open("/dev/zero", os.O_RDONLY)
    memory = made(f"{prefix}ImportExternalMemory", pack(1, 0, (file,), (0,), (4 * MIB,), 0) + bytes(68))
    expect(f"import address={memory:#x} bytes={4 * MIB} shared=0x0")
    address = made(f"{prefix}ExternalMemoryGetMappedBuffer", memory, pack((0,), (2 * MIB,), 0) + bytes(64))
    expect(f"import address={address:#x} bytes={2 * MIB} shared={memory:#x}")
    call(either("cuMemFree_v2", "cudaFree"), address)
    expect(f"device_free address={address:#x}")
    call(f"{prefix}DestroyExternalMemory", memory)
    expect(f"import_end address={memory:#x}")


def pool_sharing():
    """A pool that is exported and imported, and memory of it."""
    begin()
    prefix = either("cuMemPool", "cudaMemPool")
    pool = made(f"{prefix}Create", SHARED_POOL)
    expect(f"pool_create handle={pool:#x} bytes=0{of(pool)}")
    address = made(either("cuMemAllocFromPoolAsync", "cudaMallocFromPoolAsync"), 2 * MIB, pool, 0)
    expect(f"async_alloc address={address:#x} bytes={2 * MIB} stream=0x0{of(pool)}")
    descriptor = made(f"{prefix}ExportToShareableHandle", pool, 1, 0) & 0xFFFFFFFF
    expect(f"export address={pool:#x} shared=0x0{of(pool)}")
    content = ctypes.create_string_buffer(64)
    call(f"{prefix}ExportPointer", content, address)
    expect(f"export address={address:#x} shared={fnv(content.raw):#x}")
    imported = made(f"{prefix}ImportFromShareableHandle", descriptor, 1, 0)
    expect(f"import address={imported:#x} bytes=unknown shared=0x0{of(imported)}")
    pointer = made(f"{prefix}ImportPointer", imported, content)
    expect(f"import address={pointer:#x} bytes=unknown shared={fnv(content.raw):#x}{of(imported)}")
    call(either("cuMemFreeAsync", "cudaFreeAsync"), pointer, 0)
    expect(f"async_free address={pointer:#x} stream=0x0")


def graphs():
    """Memory nodes by two functions and by capture. Launches, a trim, and a launch that does not fit."""
    begin()
    prefix = either("cuGraph", "cudaGraph")
    launch = either("cuGraphLaunch", "cudaGraphLaunch")
    graph = made("cuGraphCreate", 0)
    node = ctypes.c_uint64()
    parameters = ctypes.create_string_buffer(ALLOC_NODE[:-16] + pack((4 * MIB,), (0,)))
    call(f"{prefix}AddMemAllocNode", ctypes.byref(node), graph, None, 0, parameters)
    first = int.from_bytes(parameters.raw[112:120], "little")
    expect(f"graph_alloc address={first:#x} bytes={4 * MIB} graph={graph:#x}")
    general = ctypes.create_string_buffer(pack(10, 0, 0, 0) + ALLOC_NODE + bytes(240 - 120))
    second_node = ctypes.c_uint64()
    if IS_DRIVER:
        call("cuGraphAddNode", ctypes.byref(second_node), graph, ctypes.byref(node), 1, general)
    else:
        call("cudaGraphAddNode", ctypes.byref(second_node), graph, ctypes.byref(node), None, 1, general)
    second = int.from_bytes(general.raw[128:136], "little")
    expect(f"graph_alloc address={second:#x} bytes={MIB} graph={graph:#x}")
    for address in (first, second):
        call(f"{prefix}AddMemFreeNode", ctypes.byref(node), graph, ctypes.byref(second_node), 1, address)
        expect(f"graph_free address={address:#x} graph={graph:#x}")
    graph_exec = made("cuGraphInstantiateWithFlags", graph, 0)
    stream = made("cuStreamCreate", 1)
    call(launch, graph_exec, stream)
    expect("graph_memory")
    call(launch, graph_exec, stream)  # nothing changes
    call("cuStreamSynchronize", stream)
    call(either("cuDeviceGraphMemTrim", "cudaDeviceGraphMemTrim"), 0)
    expect("graph_memory used=0 reserved=0")

    call("cuStreamBeginCapture_v2", stream, 1)
    captured = made(either("cuMemAllocAsync", "cudaMallocAsync"), 5 * 2**30, stream)
    into = "[captured]"
    expect(f"graph_alloc address={captured:#x} bytes={5 * 2**30} graph={into} stream={stream:#x}")
    call(either("cuMemFreeAsync", "cudaFreeAsync"), captured, stream)
    expect(f"graph_free address={captured:#x} graph={into} stream={stream:#x}")
    graph = captured_graph(stream)
    print("captured", f"{graph:#x}", flush=True)
    graph_exec = made("cuGraphInstantiateWithFlags", graph, 0)
    call(launch, graph_exec, stream, result=OUT_OF_MEMORY)
    expect('call_out_of_memory call="cuGraphLaunch" error=2')


def captured_graph(stream):
    graph = ctypes.c_uint64()
    call("cuStreamEndCapture", stream, ctypes.byref(graph))
    return graph.value


def contexts():
    """Contexts made by the program, a reset, and a context that does not fit."""
    primary = begin()
    own = made("cuCtxCreate_v2", 0, 0)
    expect(f"context_create handle={own:#x} bytes={256 * MIB}")
    address = made(either("cuMemAlloc_v2", "cudaMalloc"), 2 * MIB)
    expect(f"device_alloc address={address:#x} bytes={2 * MIB}")
    call("cuCtxDestroy_v2", own)
    expect(f"context_destroy handle={own:#x}")
    call("cuCtxSetCurrent", primary)
    filling = made(either("cuMemAlloc_v2", "cudaMalloc"), 3700 * MIB)
    expect(f"device_alloc address={filling:#x} bytes={3700 * MIB}")
    call("cuCtxCreate_v2", ctypes.byref(ctypes.c_uint64()), 0, 0, result=OUT_OF_MEMORY)
    expect('call_out_of_memory call="cuCtxCreate_v2" error=2')
    if IS_DRIVER:
        call("cuDevicePrimaryCtxReset_v2", 0)
    else:
        call("cudaDeviceReset")
    expect("device_reset")


def modules():
    """Code: where it is loaded and unloaded."""
    begin()
    module = made("cuModuleLoadData", IMAGE)
    expect(f"module_load handle={module:#x} bytes={2 * MIB}")
    call("cuModuleUnload", module)
    expect(f"module_unload handle={module:#x}")
    library = made(either("cuLibraryLoadData", "cudaLibraryLoadData"), IMAGE, None, None, 0, None, None, 0)
    expect(f"module_load handle={library:#x} bytes=0")
    call(either("cuLibraryUnload", "cudaLibraryUnload"), library)
    expect(f"module_unload handle={library:#x}")


def refusals():
    """Many refusals in a row."""
    begin()
    for _ in range(50):
        call(
            either("cuMemAlloc_v2", "cudaMalloc"),
            ctypes.byref(ctypes.c_uint64()),
            2**40,
            result=OUT_OF_MEMORY,
        )


def ways():
    """One allocation through every way to find its function."""
    begin()
    for row in rows():
        if row.symbol in ("cuMemAlloc_v2", "cudaMalloc"):
            for _, function in LIBRARIES.ways(row):
                out = ctypes.c_uint64()
                if function(ctypes.addressof(out), 3 * MIB) != 0:
                    sys.exit("an allocation failed")
                expect(f"device_alloc address={out.value:#x} bytes={3 * MIB}")


def last_error():
    """The runtime's last error stays the program's own, whatever the recorder calls in between."""
    begin()
    address = made("cudaMalloc", MIB)
    call("cudaGetLastError")
    call("cudaMalloc", ctypes.byref(ctypes.c_uint64()), 2**40, result=OUT_OF_MEMORY)
    call("cudaPeekAtLastError", result=OUT_OF_MEMORY)
    call("cudaGetLastError", result=OUT_OF_MEMORY)
    call("cudaGetLastError")
    call("cudaFree", 0x1234000, result=1)
    call("cudaGetLastError", result=1)
    call("cudaFree", address)
    call("cudaGetLastError")


def full_tables():
    """More contexts and pools at once than the recorder keeps (256 of each)."""
    begin()
    for _ in range(259):
        made("cuCtxCreate_v2", 0, 0)
        call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_uint64()))
    for _ in range(300):
        made("cuMemPoolCreate", POOL)


def unknown_frees():
    """Frees of what was never allocated, of other memory, and twice."""
    begin()
    invalid = 1
    address = made("cuMemAlloc_v2", 4 * MIB)
    pinned = made("cuMemHostAlloc", 4096, 0)
    call("cuMemFree_v2", 0x1234000, result=invalid)
    call("cuMemFree_v2", pinned, result=invalid)
    call("cuMemFreeHost", address, result=invalid)
    call("cuMemFree_v2", address + MIB, result=invalid)
    call("cuMemFree_v2", address)
    call("cuMemFree_v2", address, result=invalid)
    call("cuMemFreeAsync", address, 0, result=invalid)
    call("cuMemRelease", 0x1234000, result=invalid)
    call("cuMemUnmap", 0x40000000, 2 * MIB, result=invalid)
    made("cuMemAlloc_v2", 2 * MIB)


globals()[sys.argv[1]]()
