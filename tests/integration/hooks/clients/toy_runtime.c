/* A CUDA runtime with a few functions. Several copies have different addresses, set by FT_BASE. */
#include <stddef.h>

#ifndef FT_BASE
#    define FT_BASE 0x100000000ull
#endif

static size_t used;

int cudaMalloc(void** address, size_t bytes) {
    if (bytes > ((size_t)1 << 32)) {
        return 2;
    }
    *address = (void*)(FT_BASE + used);
    used += (bytes + 511) / 512 * 512;
    return 0;
}

int cudaFree(void* address) {
    return address == (void*)1;
}

int cudaGetDevice(int* device) {
    return *device = 0;
}

int cudaRuntimeGetVersion(int* version) {
    return *version = 13000, 0;
}

int cudaGetDeviceCount(int* count) {
    return *count = 1, 0;
}

int cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
    *total_bytes = (size_t)1 << 32;
    *free_bytes = *total_bytes - used;
    return 0;
}
