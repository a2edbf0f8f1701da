/* Every family of memory calls of the driver, their sizes and their refusals. It is linked to the
 * driver, like other programs for the driver interface. Prints its checks. The exit status is the
 * number of failed checks. With an argument it is the second process of a pair: see shared(). */
#include <cuda.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMiB = 1 << 20 };

static int failures;

static void check(int holds, const char* what) {
    printf("%s: %s\n", holds ? "ok" : "FAILED", what);
    if (!holds) ++failures;
}

#define EXPECT(result, call) check((call) == (result), #call " is " #result)
#define WELL(call)           EXPECT(CUDA_SUCCESS, call)
#define REFUSED(call)        EXPECT(CUDA_ERROR_INVALID_VALUE, call)

static size_t free_memory(void) {
    size_t free_bytes = 0;
    size_t total = 0;
    cuMemGetInfo(&free_bytes, &total);
    return free_bytes;
}

/* MiB allocated by the code between two calls. */
static size_t g_before;

static void mark(void) {
    g_before = free_memory();
}

static long taken(void) {
    return (long)((int64_t)g_before - (int64_t)free_memory()) / kMiB;
}

static void linear(void) {
    CUdeviceptr at = 0;
    size_t pitch = 0;
    mark();
    WELL(cuMemAllocPitch(&at, &pitch, 1000, 4096, 4));
    check(pitch == 1024 && taken() == 4, "a pitch of whole 512 bytes");
    WELL(cuMemFree(at));
    REFUSED(cuMemAllocPitch(&at, &pitch, 1000, 10, 3));
    REFUSED(cuMemAllocPitch(&at, &pitch, 0, 10, 4));
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocPitch(&at, &pitch, (size_t)1 << 62, 10, 4));

    WELL(cuMemAllocManaged(&at, 8 * kMiB, CU_MEM_ATTACH_GLOBAL));
    check(taken() == 0, "managed memory takes nothing from the card");
    *(char*)at = 1;
    REFUSED(cuMemAllocManaged(&at, 8 * kMiB, 0));
    REFUSED(cuMemAllocManaged(&at, 0, CU_MEM_ATTACH_GLOBAL));
    WELL(cuMemFree(at));
    REFUSED(cuMemFree(at));

    void* host = NULL;
    CUdeviceptr alias = 0;
    WELL(cuMemHostAlloc(&host, 100, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    REFUSED(cuMemHostAlloc(&host, 100, 0x80));
    void* nothing = &host;
    check(cuMemHostAlloc(&nothing, 0, 0) == CUDA_SUCCESS && nothing == NULL, "no host memory");
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemHostAlloc(&nothing, (size_t)1 << 62, 0));
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocManaged(&at, (size_t)1 << 62, CU_MEM_ATTACH_GLOBAL));
    WELL(cuMemHostGetDevicePointer(&alias, host, 0));
    unsigned flags = 0;
    WELL(cuMemHostGetFlags(&flags, host));
    check(flags == 3, "the flags asked for");
    WELL(cuMemFreeHost(host));
    REFUSED(cuMemFreeHost(host));
    static char own[8192];
    WELL(cuMemHostRegister(own, sizeof own, 0));
    EXPECT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(own, sizeof own, 0));
    REFUSED(cuMemFreeHost(own));
    WELL(cuMemHostUnregister(own));
    EXPECT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(own));
    REFUSED(cuMemHostUnregister(NULL));
}

static void arrays(void) {
    CUarray array = NULL;
    CUarray level = NULL;
    CUmipmappedArray mipmap = NULL;
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
    CUDA_ARRAY_DESCRIPTOR flat = {1024, 1024, CU_AD_FORMAT_FLOAT, 1};
    CUDA_ARRAY3D_DESCRIPTOR deep = {256, 256, 64, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0};
    mark();
    WELL(cuArrayCreate(&array, &flat));
    check(taken() == 4, "an array of 1024 x 1024 floats takes 4 MiB");
    REFUSED(cuArrayGetMemoryRequirements(&needs, array, 0));
    CUDA_ARRAY_DESCRIPTOR back;
    WELL(cuArrayGetDescriptor(&back, array));
    check(back.Width == 1024 && back.NumChannels == 1, "the description reads back");
    WELL(cuArrayDestroy(array));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
    check(taken() == 0, "a destroyed array takes nothing");
    flat.NumChannels = 3;
    REFUSED(cuArrayCreate(&array, &flat));

    WELL(cuArray3DCreate(&array, &deep));
    check(taken() == 16, "an array of 256 x 256 x 64 x 4 bytes takes 16 MiB");
    WELL(cuArrayDestroy(array));
    deep.Height = 0;
    REFUSED(cuArray3DCreate(&array, &deep));
    deep.Height = 256;
    deep.Flags = CUDA_ARRAY3D_CUBEMAP;
    REFUSED(cuArray3DCreate(&array, &deep));
    deep.Flags = CUDA_ARRAY3D_DEFERRED_MAPPING;
    WELL(cuArray3DCreate(&array, &deep));
    check(taken() == 0, "deferred mapping takes nothing");
    WELL(cuArrayGetMemoryRequirements(&needs, array, 0));
    check(needs.size == 16 * kMiB, "and says what it needs");
    WELL(cuArrayDestroy(array));

    deep.Flags = 0;
    deep.Depth = 0;
    deep.Width = deep.Height = 2048;
    WELL(cuMipmappedArrayCreate(&mipmap, &deep, 3));
    check(taken() == 22, "levels of 16, 4 and 1 MiB take 22 MiB in pages");
    WELL(cuMipmappedArrayGetLevel(&level, mipmap, 2));
    CUDA_ARRAY3D_DESCRIPTOR small;
    WELL(cuArray3DGetDescriptor(&small, level));
    check(small.Width == 512 && small.Height == 512, "a level is a quarter as wide");
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(level));
    REFUSED(cuMipmappedArrayGetLevel(&level, mipmap, 3));
    WELL(cuMipmappedArrayDestroy(mipmap));
    check(taken() == 0, "the levels go with their array");
}

static CUmemPoolProps pool_properties(int handle_type) {
    CUmemPoolProps properties;
    memset(&properties, 0, sizeof properties);
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.handleTypes = (CUmemAllocationHandleType)handle_type;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return properties;
}

static uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
    cuuint64_t value = 0;
    cuMemPoolGetAttribute(pool, which, &value);
    return value / kMiB;
}

static void pools(void) {
    CUmemoryPool standard = NULL;
    CUmemoryPool pool = NULL;
    CUmemoryPool current = NULL;
    CUdeviceptr a = 0;
    CUdeviceptr b = 0;
    WELL(cuDeviceGetDefaultMemPool(&standard, 0));
    WELL(cuDeviceGetMemPool(&current, 0));
    check(current == standard, "the default pool is current at first");
    REFUSED(cuMemPoolDestroy(standard));
    CUmemPoolProps properties = pool_properties(0);
    mark();
    WELL(cuMemPoolCreate(&pool, &properties));
    properties.location.id = 99;
    REFUSED(cuMemPoolCreate(&current, &properties));
    WELL(cuDeviceSetMemPool(0, pool));
    REFUSED(cuDeviceSetMemPool(99, pool));
    WELL(cuMemAllocAsync(&a, 8 * kMiB, NULL));
    WELL(cuMemAllocFromPoolAsync(&b, 4 * kMiB, pool, NULL));
    check(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 12, "12 MiB are used");
    WELL(cuMemFreeAsync(a, NULL));
    check(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 4 &&
              attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 12 && taken() == 12,
          "freed memory stays with the pool");
    CUdeviceptr again = 0;
    WELL(cuMemAllocAsync(&again, 2 * kMiB, NULL));
    check(again == a && taken() == 12, "and is used again");
    WELL(cuCtxSynchronize());
    check(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 6 && taken() == 6,
          "a synchronising call gives back what is over the threshold of 0");
    cuuint64_t threshold = 64 * kMiB;
    WELL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    WELL(cuMemFreeAsync(again, NULL));
    WELL(cuStreamSynchronize(NULL));
    check(taken() == 6, "below the threshold it is kept");
    REFUSED(cuMemFree(again));
    WELL(cuMemPoolTrimTo(pool, 5 * kMiB));
    check(taken() == 4, "trimming gives it back");
    check(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 12 &&
              attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 12,
          "the high-water marks");
    cuuint64_t none = 0;
    WELL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &none));
    check(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 4, "reset to what is used now");
    REFUSED(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &none));
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_NONE};
    REFUSED(cuMemPoolSetAccess(pool, &access, 1));
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    WELL(cuMemPoolGetAccess(&flags, pool, &access.location));
    check(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "a device reaches its own pool");
    int descriptor = -1;
    REFUSED(cuMemPoolExportToShareableHandle(
        &descriptor, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    WELL(cuMemPoolDestroy(pool));
    REFUSED(cuMemPoolDestroy(pool));
    REFUSED(cuMemAllocFromPoolAsync(&a, kMiB, pool, NULL));
    WELL(cuDeviceGetMemPool(&current, 0));
    check(current == standard, "the default pool is current again");
    check(taken() == 4, "what is allocated outlives the pool");
    WELL(cuMemFreeAsync(b, NULL));
    check(taken() == 0, "and ends with its last allocation");

    properties = pool_properties(0);
    properties.maxSize = 4 * kMiB;
    WELL(cuMemPoolCreate(&pool, &properties));
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&a, 6 * kMiB, pool, NULL));
    WELL(cuMemPoolDestroy(pool));
    CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    WELL(cuMemGetDefaultMemPool(&pool, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
    WELL(cuMemAllocFromPoolAsync(&a, kMiB, pool, NULL));
    *(char*)a = 1;
    check(taken() == 0, "a pool in host memory takes nothing from the card");
    WELL(cuMemFreeAsync(a, NULL));
    REFUSED(cuMemSetMemPool(&host, CU_MEM_ALLOCATION_TYPE_PINNED, standard));
    host.type = CU_MEM_LOCATION_TYPE_NONE;
    REFUSED(cuMemGetMemPool(&pool, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
}

static uint64_t graph_memory(CUgraphMem_attribute which) {
    cuuint64_t value = 0;
    cuDeviceGetGraphMemAttribute(0, which, &value);
    return value / kMiB;
}

static void graphs(void) {
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUgraphExec second = NULL;
    CUgraphNode a = NULL;
    CUgraphNode b = NULL;
    CUgraphNode freed = NULL;
    CUDA_MEM_ALLOC_NODE_PARAMS wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.poolProps = pool_properties(0);
    WELL(cuGraphCreate(&graph, 0));
    REFUSED(cuGraphAddMemAllocNode(&a, graph, NULL, 0, &wanted));
    wanted.bytesize = 8 * kMiB;
    mark();
    WELL(cuGraphAddMemAllocNode(&a, graph, NULL, 0, &wanted));
    CUdeviceptr first = wanted.dptr;
    WELL(cuGraphAddMemFreeNode(&freed, graph, &a, 1, first));
    REFUSED(cuGraphAddMemFreeNode(&b, graph, &a, 1, first));
    REFUSED(cuGraphAddMemFreeNode(&b, graph, &a, 1, 4096));
    WELL(cuGraphAddMemAllocNode(&b, graph, &freed, 1, &wanted));
    check(first != wanted.dptr, "addresses are fixed per node");
    check(taken() == 0, "nodes take no memory");
    WELL(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    EXPECT(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiate(&second, graph, 0));
    WELL(cuGraphUpload(exec, NULL));
    check(taken() == 8 && graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 8 &&
              graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0,
          "an upload backs what is needed at once");
    WELL(cuGraphLaunch(exec, NULL));
    check(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 8, "a launch allocates");
    WELL(cuGraphLaunch(exec, NULL));
    check(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 8, "the next one frees first");
    WELL(cuDeviceGraphMemTrim(0));
    check(taken() == 8, "what is used is not trimmed");
    WELL(cuMemFreeAsync(wanted.dptr, NULL));
    REFUSED(cuMemFree(wanted.dptr));
    WELL(cuDeviceGraphMemTrim(0));
    check(taken() == 0 && graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH) == 8, "the rest is");
    WELL(cuGraphExecDestroy(exec));
    WELL(cuGraphInstantiate(&exec, graph, 0));
    WELL(cuGraphLaunch(exec, NULL));
    REFUSED(cuGraphLaunch(exec, NULL));
    WELL(cuMemFree(wanted.dptr));
    WELL(cuGraphLaunch(exec, NULL));
    WELL(cuMemFree(wanted.dptr));
    WELL(cuGraphExecDestroy(exec));
    WELL(cuGraphDestroy(graph));
    WELL(cuDeviceGraphMemTrim(0));
    check(taken() == 0, "graphs leave nothing behind");

    CUstream stream = NULL;
    CUdeviceptr captured = 0;
    CUdeviceptr plain = 0;
    WELL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    WELL(cuMemAllocAsync(&plain, kMiB, stream));
    WELL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    WELL(cuMemAllocAsync(&captured, 4 * kMiB, stream));
    REFUSED(cuMemFreeAsync(plain, stream));
    WELL(cuMemFreeAsync(captured, stream));
    WELL(cuStreamEndCapture(stream, &graph));
    size_t count = 0;
    WELL(cuGraphGetNodes(graph, NULL, &count));
    check(count == 2, "captured calls are nodes");
    WELL(cuGraphInstantiate(&exec, graph, 0));
    WELL(cuGraphLaunch(exec, stream));
    WELL(cuGraphLaunch(exec, stream));
    check(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0 &&
              graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 4,
          "what a graph frees itself is free after it");
    WELL(cuGraphExecDestroy(exec));
    WELL(cuGraphDestroy(graph));
    WELL(cuDeviceGraphMemTrim(0));
    WELL(cuMemFreeAsync(plain, stream));
    WELL(cuStreamSynchronize(stream));
    WELL(cuStreamDestroy(stream));
    check(taken() == 0, "nor do captured ones");
}

static CUmemAllocationProp physical_properties(int handle_type) {
    CUmemAllocationProp properties;
    memset(&properties, 0, sizeof properties);
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = (CUmemAllocationHandleType)handle_type;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return properties;
}

static void virtual_memory(void) {
    CUmemAllocationProp properties = physical_properties(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CUmemGenericAllocationHandle handle = 0;
    CUmemGenericAllocationHandle other = 0;
    CUmemGenericAllocationHandle multicast = 0;
    mark();
    WELL(cuMemCreate(&handle, 4 * kMiB, &properties, 0));
    int descriptor = -1;
    WELL(cuMemExportToShareableHandle(
        &descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    WELL(cuMemImportFromShareableHandle(
        &other, (void*)(intptr_t)descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(descriptor);
    check(taken() == 4, "an import of one's own memory counts once");
    CUmulticastObjectProp team = {1, 8 * kMiB, 0, 0};
    size_t granularity = 0;
    WELL(cuMulticastGetGranularity(&granularity, &team, CU_MULTICAST_GRANULARITY_MINIMUM));
    WELL(cuMulticastCreate(&multicast, &team));
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuMulticastBindMem(multicast, 0, handle, 0, 4 * kMiB, 0));
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuMulticastAddDevice(multicast, 99));
    WELL(cuMulticastAddDevice(multicast, 0));
    WELL(cuMulticastBindMem(multicast, 0, handle, 0, 4 * kMiB, 0));
    REFUSED(cuMulticastBindMem(multicast, 0, handle, 0, 4 * kMiB, 0));
    REFUSED(cuMulticastBindMem(multicast, 4 * kMiB, handle, 2 * kMiB, 4 * kMiB, 0));
    WELL(cuMemRelease(handle));
    WELL(cuMemRelease(other));
    REFUSED(cuMemRelease(handle));
    check(taken() == 4, "bound memory is held");
    WELL(cuMulticastUnbind(multicast, 0, 0, 4 * kMiB));
    check(taken() == 0, "and ends with its binding");
    WELL(cuMemRelease(multicast));
    team.size = 1;
    REFUSED(cuMulticastCreate(&multicast, &team));
    properties = physical_properties(0);
    WELL(cuMemCreate(&handle, 2 * kMiB, &properties, 0));
    REFUSED(cuMemExportToShareableHandle(
        &descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CUdeviceptr at = 0;
    REFUSED(cuMemAddressReserve(&at, 2 * kMiB, 0, 0x1234000, 0));
    REFUSED(cuMemAddressReserve(&at, 2 * kMiB, 0, 0, 1));
    WELL(cuMemAddressReserve(&at, 2 * kMiB, 0, 0, 0));
    WELL(cuMemMap(at, 2 * kMiB, 0, handle, 0));
    WELL(cuMemRetainAllocationHandle(&other, (void*)at));
    check(other == handle, "the handle behind an address");
    WELL(cuMemRelease(handle));
    WELL(cuMemUnmap(at, 2 * kMiB));
    check(taken() == 2, "a retained handle holds the memory");
    WELL(cuMemRelease(other));
    WELL(cuMemAddressFree(at, 2 * kMiB));
    check(taken() == 0, "and its release ends it");
}

static void external_memory(void) {
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC what;
    memset(&what, 0, sizeof what);
    CUexternalMemory memory = NULL;
    REFUSED(cuImportExternalMemory(&memory, &what));
    what.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    what.size = 4 * kMiB;
    what.handle.fd = -1;
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuImportExternalMemory(&memory, &what));
    what.handle.fd = open("/dev/null", O_RDONLY);
    WELL(cuImportExternalMemory(&memory, &what));
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer;
    memset(&buffer, 0, sizeof buffer);
    buffer.size = 8 * kMiB;
    CUdeviceptr at = 0;
    REFUSED(cuExternalMemoryGetMappedBuffer(&at, memory, &buffer));
    buffer.size = 2 * kMiB;
    mark();
    WELL(cuExternalMemoryGetMappedBuffer(&at, memory, &buffer));
    check(taken() == 0, "memory of another interface takes nothing");
    WELL(cuMemFree(at));
    WELL(cuDestroyExternalMemory(memory));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuDestroyExternalMemory(memory));
}

static void contexts(void) {
    CUcontext outer = NULL;
    CUcontext own = NULL;
    CUmodule module = NULL;
    CUdeviceptr at = 0;
    CUarray array = NULL;
    CUDA_ARRAY_DESCRIPTOR flat = {1024, 1024, CU_AD_FORMAT_FLOAT, 1};
    cuCtxGetCurrent(&outer);
    mark();
    WELL(cuCtxCreate(&own, NULL, 0, 0));
    long overhead = taken();
    check(overhead > 0, "a context takes memory");
    WELL(cuMemAlloc(&at, 6 * kMiB));
    WELL(cuArrayCreate(&array, &flat));
    char* ptx = malloc(3 * kMiB);
    memset(ptx, ' ', 3 * kMiB);
    ptx[3 * kMiB - 1] = '\0';
    WELL(cuModuleLoadData(&module, ptx));
    check(taken() == overhead + 6 + 4 + 4, "its memory, array and code");
    WELL(cuModuleUnload(module));
    check(taken() == overhead + 6 + 4, "an unloaded module takes nothing");
    WELL(cuModuleLoadData(&module, ptx));
    free(ptx);
    WELL(cuCtxDestroy(own));
    check(taken() == 0, "all of it ends with the context");
    cuCtxSetCurrent(outer);
    REFUSED(cuMemFree(at));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(own));
}

/* The data that one process sends to the other through a pipe. Descriptors are inherited. */
struct Parcel {
    CUipcMemHandle memory;
    CUipcEventHandle event;
    CUmemPoolPtrExportData pointer;
    int physical;
    int pool;
};

static int receiver(int from) {
    struct Parcel parcel;
    if (read(from, &parcel, sizeof parcel) != (ssize_t)sizeof parcel) return 99;
    CUdeviceptr a = 0;
    CUdeviceptr b = 0;
    CUevent event = NULL;
    CUmemoryPool pool = NULL;
    CUmemGenericAllocationHandle handle = 0;
    mark();
    WELL(cuIpcOpenMemHandle(&a, parcel.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    REFUSED(cuIpcOpenMemHandle(&a, parcel.memory, 0));
    WELL(cuIpcOpenMemHandle(&b, parcel.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    check(a == b, "one handle, one address");
    size_t size = 0;
    WELL(cuMemGetAddressRange(&b, &size, a + 4096));
    check(a == b && size == 6 * kMiB, "the size of the owner's allocation");
    REFUSED(cuMemFree(a));
    WELL(cuIpcCloseMemHandle(a));
    WELL(cuIpcCloseMemHandle(a));
    REFUSED(cuIpcCloseMemHandle(a));
    WELL(cuIpcOpenEventHandle(&event, parcel.event));
    WELL(cuEventSynchronize(event));
    WELL(cuMemImportFromShareableHandle(
        &handle, (void*)(intptr_t)parcel.physical, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    WELL(cuMemPoolImportFromShareableHandle(
        &pool, (void*)(intptr_t)parcel.pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    REFUSED(cuMemAllocFromPoolAsync(&b, kMiB, pool, NULL));
    REFUSED(cuDeviceSetMemPool(0, pool));
    WELL(cuMemPoolImportPointer(&b, pool, &parcel.pointer));
    check(taken() == 0, "memory of another process takes nothing");
    WELL(cuMemFreeAsync(b, NULL));
    WELL(cuMemPoolDestroy(pool));
    WELL(cuMemRelease(handle));
    return failures;
}

static void shared(const char* program) {
    struct Parcel parcel;
    CUdeviceptr linear_memory = 0;
    CUdeviceptr pooled = 0;
    CUevent event = NULL;
    CUmemoryPool pool = NULL;
    CUmemGenericAllocationHandle handle = 0;
    CUmemPoolProps properties = pool_properties(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CUmemAllocationProp physical = physical_properties(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    memset(&parcel, 0, sizeof parcel);
    WELL(cuMemAlloc(&linear_memory, 6 * kMiB));
    WELL(cuIpcGetMemHandle(&parcel.memory, linear_memory));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT,
           cuIpcOpenMemHandle(&pooled, parcel.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    WELL(cuEventCreate(&event, CU_EVENT_DEFAULT));
    REFUSED(cuIpcGetEventHandle(&parcel.event, event));
    WELL(cuEventDestroy(event));
    WELL(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    WELL(cuIpcGetEventHandle(&parcel.event, event));
    WELL(cuMemPoolCreate(&pool, &properties));
    WELL(cuMemAllocFromPoolAsync(&pooled, 4 * kMiB, pool, NULL));
    REFUSED(cuIpcGetMemHandle(&parcel.memory, pooled));
    WELL(cuMemPoolExportPointer(&parcel.pointer, pooled));
    REFUSED(cuMemPoolExportPointer(&parcel.pointer, linear_memory));
    WELL(cuMemPoolExportToShareableHandle(
        &parcel.pool, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    WELL(cuMemCreate(&handle, 2 * kMiB, &physical, 0));
    WELL(cuMemExportToShareableHandle(
        &parcel.physical, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    fcntl(parcel.pool, F_SETFD, 0);
    fcntl(parcel.physical, F_SETFD, 0);

    int ends[2];
    if (pipe(ends) != 0) abort();
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[0], 0);
        execl(program, program, "receive", (char*)NULL);
        _exit(98);
    }
    check(write(ends[1], &parcel, sizeof parcel) == (ssize_t)sizeof parcel, "the parcel is sent");
    int status = -1;
    waitpid(child, &status, 0);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the other process finds all well");
    WELL(cuMemFree(linear_memory));
    WELL(cuMemFree(pooled));
    WELL(cuMemPoolDestroy(pool));
    WELL(cuMemRelease(handle));
}

int main(int argc, char** argv) {
    CUcontext context;
    WELL(cuInit(0));
    WELL(cuDevicePrimaryCtxRetain(&context, 0));
    WELL(cuCtxSetCurrent(context));
    if (argc > 1) return receiver(0);
    const size_t before = free_memory();
    linear();
    arrays();
    pools();
    graphs();
    virtual_memory();
    external_memory();
    contexts();
    shared(argv[0]);
    check(free_memory() == before, "nothing is left");
    return failures;
}
