// A pool that is annotated by NVTX's memory extension alone, with NVIDIA's own header: two heaps of
// one name, regions that are registered, named, resized and unregistered, a heap inside a region,
// and a heap that is reset. Prints whether an annotation got a handle and errno did not change.
#include <errno.h>
#include <nvtx3/nvToolsExtMem.h>
#include <stdio.h>
#include <string.h>

enum { kMiB = 1 << 20, kHeap = 16 * kMiB, kBlock = 1 * kMiB };

typedef int (*Malloc)(void** address, size_t bytes);

static char* allocate_memory(size_t bytes) {
    void* cuda = dlopen("libcudart.so.13", RTLD_NOW);
    Malloc allocate;
    void* address = NULL;
    *(void**)(&allocate) = cuda == NULL ? NULL : dlsym(cuda, "cudaMalloc");
    return allocate == NULL || allocate(&address, bytes) != 0 ? NULL : address;
}

static nvtxMemHeapHandle_t add_heap(nvtxDomainHandle_t domain,
                                    const char* name,
                                    const char* memory,
                                    size_t bytes) {
    const nvtxMemVirtualRangeDesc_t range = {bytes, memory};
    nvtxMemHeapDesc_t heap;
    memset(&heap, 0, sizeof heap);
    heap.extCompatID = NVTX_EXT_COMPATID_MEM;
    heap.structSize = sizeof heap;
    heap.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
    heap.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    heap.typeSpecificDescSize = sizeof range;
    heap.typeSpecificDesc = &range;
    heap.messageType = name == NULL ? NVTX_MESSAGE_UNKNOWN : NVTX_MESSAGE_TYPE_ASCII;
    heap.message.ascii = name;
    return nvtxMemHeapRegister(domain, &heap);
}

static void add_regions(nvtxDomainHandle_t domain,
                        nvtxMemHeapHandle_t heap,
                        const nvtxMemVirtualRangeDesc_t* regions,
                        size_t count,
                        nvtxMemRegionHandle_t* handles) {
    const nvtxMemRegionsRegisterBatch_t batch = {NVTX_EXT_COMPATID_MEM,
                                                 sizeof batch,
                                                 NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
                                                 heap,
                                                 count,
                                                 sizeof *regions,
                                                 regions,
                                                 handles};
    nvtxMemRegionsRegister(domain, &batch);
}

static void resize(nvtxDomainHandle_t domain, const char* memory, size_t bytes) {
    const nvtxMemVirtualRangeDesc_t region = {bytes, memory};
    const nvtxMemRegionsResizeBatch_t batch = {NVTX_EXT_COMPATID_MEM,
                                               sizeof batch,
                                               NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
                                               1,
                                               sizeof region,
                                               &region};
    nvtxMemRegionsResize(domain, &batch);
}

static void name(nvtxDomainHandle_t domain, const char* memory, const char* text) {
    nvtxMemRegionNameDesc_t region;
    memset(&region, 0, sizeof region);
    region.regionRefType = NVTX_MEM_REGION_REF_TYPE_POINTER;
    region.nameType = NVTX_MESSAGE_TYPE_ASCII;
    region.region.pointer = memory;
    region.name.ascii = text;
    const nvtxMemRegionsNameBatch_t batch = {
        NVTX_EXT_COMPATID_MEM, sizeof batch, 0, 1, sizeof region, &region, 0};
    nvtxMemRegionsName(domain, &batch);
}

static void unregister(nvtxDomainHandle_t domain,
                       uint32_t type,
                       const nvtxMemRegionRef_t* regions,
                       size_t count) {
    const nvtxMemRegionsUnregisterBatch_t batch = {
        NVTX_EXT_COMPATID_MEM, sizeof batch, type, count, sizeof *regions, regions};
    nvtxMemRegionsUnregister(domain, &batch);
}

int main(void) {
    char* memory = allocate_memory(kHeap);
    char* more = allocate_memory(kHeap);
    if (memory == NULL || more == NULL) {
        return 1;
    }
    errno = 7;
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("umpire");
    const nvtxMemHeapHandle_t heap = add_heap(domain, "DEVICE pool", memory, kHeap);

    // 16 blocks, every second one freed, by handle and by address: 8 MiB free, in pieces of 1 MiB.
    nvtxMemVirtualRangeDesc_t blocks[16];
    nvtxMemRegionHandle_t handles[16];
    memset(handles, 0, sizeof handles);
    for (int i = 0; i < 16; ++i) {
        blocks[i].ptr = memory + (size_t)i * kBlock;
        blocks[i].size = kBlock;
    }
    add_regions(domain, heap, blocks, 16, handles);
    nvtxMemRegionRef_t freed[8];
    for (int i = 0; i < 4; ++i) {
        freed[i].handle = handles[2 * i];
    }
    for (int i = 4; i < 8; ++i) {
        freed[i].pointer = blocks[2 * i].ptr;
    }
    if (heap != NULL) {  // without a tool there are no handles
        unregister(domain, NVTX_MEM_REGION_REF_TYPE_HANDLE, freed, 4);
    }
    unregister(domain, NVTX_MEM_REGION_REF_TYPE_POINTER, freed + 4, 4);
    name(domain, memory + kBlock, "weights");

    // The same pool grows by a second heap, named by its address instead of its handle.
    add_heap(domain, "DEVICE pool", more, kHeap);
    nvtxMemVirtualRangeDesc_t large = {kHeap / 2, more};
    add_regions(domain, (nvtxMemHeapHandle_t)more, &large, 1, NULL);
    resize(domain, more, kHeap / 4);

    // A pool inside the block, with a region at its address: the inner one ends first.
    const nvtxMemHeapHandle_t inner = add_heap(domain, "rows", more, kHeap / 4);
    nvtxMemVirtualRangeDesc_t row = {4096, more};
    add_regions(domain, inner, &row, 1, NULL);
    const nvtxMemRegionRef_t reference = {more};
    unregister(domain, NVTX_MEM_REGION_REF_TYPE_POINTER, &reference, 1);

    // A heap without a name, whose regions end together.
    const nvtxMemHeapHandle_t unnamed = add_heap(NULL, NULL, memory, kHeap);
    add_regions(NULL, unnamed, blocks, 2, NULL);
    nvtxMemHeapReset(NULL, unnamed);
    add_regions(NULL, unnamed, blocks, 1, NULL);
    nvtxMemHeapUnregister(NULL, unnamed);

    // No pools: the whole process, and descriptions that are not complete.
    add_regions(domain, NVTX_MEM_HEAP_HANDLE_PROCESS_WIDE, blocks, 1, NULL);
    add_regions(domain, inner, NULL, 5, NULL);
    nvtxMemHeapUnregister(domain, (nvtxMemHeapHandle_t)(intptr_t)-1);
    const nvtxMemHeapHandle_t incomplete = nvtxMemHeapRegister(domain, NULL);
    add_regions(domain, incomplete, blocks, 1, NULL);
    nvtxMemPermissionsUnbind(domain, NVTX_MEM_PERMISSIONS_BIND_SCOPE_CPU_THREAD);
    nvtxMemHeapUnregister(domain, inner);
    // More heaps than are recorded. Programs may stop if a handle is NULL.
    int with_handle = incomplete != NULL;
    for (int i = 0; i < 2000; ++i) {
        with_handle &= add_heap(domain, "DEVICE pool", more, kHeap) != NULL;
    }
    printf("%d\n", heap != NULL && with_handle && errno == 7);
    return 0;
}
