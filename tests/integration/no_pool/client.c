/* Programs without a framework's pool, one per kind of device memory. Each allocates the same
 * total, frees a part, and then requests more than the card has. It prints its live memory: "held"
 * and the bytes.
 *
 *     client KIND */
#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMiB = 1 << 20, kCount = 28 };

static const size_t kPieceBytes = 64 * (size_t)kMiB;

static CUmemGenericAllocationHandle g_handles[kCount];
static CUdeviceptr g_base;

static void well(CUresult result, const char* call) {
    if (result != CUDA_SUCCESS) {
        printf("%s: %d\n", call, (int)result);
        exit(1);
    }
}

#define WELL(call) well((call), #call)

static void refused(CUresult result) {
    if (result != CUDA_ERROR_OUT_OF_MEMORY) {
        printf("one more request: %d\n", (int)result);
        exit(1);
    }
}

static const CUmemAllocationProp* properties_of(CUmemLocationType location) {
    static CUmemAllocationProp properties;
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = location;
    return &properties;
}

/* A macro: the report must tell its callers apart, with and without debug information. */
#define CREATE(handle, location) cuMemCreate(handle, kPieceBytes, properties_of(location), 0)

static void create_all(void) {
    for (int i = 0; i < kCount; ++i) {
        WELL(CREATE(&g_handles[i], CU_MEM_LOCATION_TYPE_DEVICE));
    }
}

static void map_all(void) {
    WELL(cuMemAddressReserve(&g_base, kCount * kPieceBytes, 0, 0, 0));
    for (int i = 0; i < kCount; ++i) {
        WELL(cuMemMap(g_base + i * kPieceBytes, kPieceBytes, 0, g_handles[i], 0));
    }
}

static void release_all(void) {
    for (int i = 0; i < kCount; ++i) {
        WELL(cuMemRelease(g_handles[i]));
    }
}

static int pieces(const char* kind) {
    if (strcmp(kind, "created") == 0) {
        create_all();
    } else if (strcmp(kind, "mapped") == 0) {
        create_all();
        map_all();
    } else if (strcmp(kind, "released") == 0) { /* the mappings keep the memory allocated */
        create_all();
        map_all();
        release_all();
    } else if (strcmp(kind, "mapped_twice") == 0) {
        CUdeviceptr again = 0;
        create_all();
        map_all();
        WELL(cuMemAddressReserve(&again, kPieceBytes, 0, 0, 0));
        WELL(cuMemMap(again, kPieceBytes, 0, g_handles[0], 0));
    } else if (strcmp(kind, "retained") == 0) {
        CUmemGenericAllocationHandle again = 0;
        create_all();
        map_all();
        WELL(cuMemRetainAllocationHandle(&again, (void*)g_base));
        release_all();
        WELL(cuMemUnmap(g_base, kPieceBytes));
    } else if (strcmp(kind, "unmapped") == 0) { /* one unmap ends four pieces */
        create_all();
        map_all();
        release_all();
        WELL(cuMemUnmap(g_base, 4 * kPieceBytes));
        for (int i = 0; i < 4; ++i) {
            WELL(CREATE(&g_handles[i], CU_MEM_LOCATION_TYPE_DEVICE));
        }
    } else {
        return 0;
    }
    CUmemGenericAllocationHandle more = 0;
    refused(CREATE(&more, CU_MEM_LOCATION_TYPE_DEVICE));
    return 1;
}

static int others(const char* kind) {
    if (strcmp(kind, "arrays") == 0) {
        CUDA_ARRAY_DESCRIPTOR shape = {4096, 4096, CU_AD_FORMAT_FLOAT, 1}; /* 64 MiB */
        CUarray array = NULL;
        for (int i = 0; i < kCount; ++i) {
            WELL(cuArrayCreate(&array, &shape));
        }
        refused(cuArrayCreate(&array, &shape));
    } else if (strcmp(kind, "stream_ordered") == 0) {
        CUdeviceptr address = 0;
        for (int i = 0; i < kCount; ++i) {
            WELL(cuMemAllocAsync(&address, kPieceBytes, NULL));
        }
        refused(cuMemAllocAsync(&address, kPieceBytes, NULL));
    } else if (strcmp(kind, "linear") == 0) {
        CUdeviceptr address = 0;
        for (int i = 0; i < kCount; ++i) {
            WELL(cuMemAlloc(&address, kPieceBytes));
        }
        refused(cuMemAlloc(&address, kPieceBytes));
    } else if (strcmp(kind, "reset") == 0) { /* the reset ended all earlier memory */
        CUdeviceptr address = 0;
        CUcontext context = NULL;
        WELL(cuMemAlloc(&address, 20 * kPieceBytes));
        WELL(cuDevicePrimaryCtxReset(0));
        WELL(cuDevicePrimaryCtxRetain(&context, 0));
        WELL(cuCtxSetCurrent(context));
        for (int i = 0; i < kCount; ++i) {
            WELL(cuMemAlloc(&address, kPieceBytes));
        }
        refused(cuMemAlloc(&address, kPieceBytes));
    } else {
        return 0;
    }
    return 1;
}

int main(int argc, char** argv) {
    CUcontext context = NULL;
    WELL(cuInit(0));
    WELL(cuDevicePrimaryCtxRetain(&context, 0));
    WELL(cuCtxSetCurrent(context));
    if (argc == 2 && strcmp(argv[1], "managed") == 0) {
        CUdeviceptr address = 0;
        WELL(cuMemAllocManaged(&address, kPieceBytes, CU_MEM_ATTACH_GLOBAL));
        printf("held 0\n");
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "host") == 0) { /* host memory, whatever call allocated it */
        CUmemGenericAllocationHandle handle = 0;
        if (CREATE(&handle, CU_MEM_LOCATION_TYPE_HOST) != CUDA_SUCCESS) {
            return 77;
        }
        printf("held 0\n");
        return 0;
    }
    if (argc != 2 || (!pieces(argv[1]) && !others(argv[1]))) {
        printf("no such kind\n");
        return 2;
    }
    printf("held %zu\n", kCount * kPieceBytes);
    return 0;
}
