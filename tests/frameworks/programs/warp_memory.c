// The functions of Warp's library that allocate and free memory on the card, over the CUDA runtime
// that the process has. warp_over_stand_ins.py puts them in place of Warp's own.
#include <stddef.h>

extern int cudaMalloc(void** address, size_t size);
extern int cudaFree(void* address);
extern int cudaMallocAsync(void** address, size_t size, void* stream);
extern int cudaFreeAsync(void* address, void* stream);

void* wp_alloc_device_default(void* context, size_t size, const char* tag) {
    void* address = NULL;
    (void)context;
    (void)tag;
    return cudaMalloc(&address, size) == 0 ? address : NULL;
}

void wp_free_device_default(void* context, void* address) {
    (void)context;
    cudaFree(address);
}

void* wp_alloc_device_async(void* context, size_t size, void* stream, const char* tag) {
    void* address = NULL;
    (void)context;
    (void)stream;  // Warp's value for its current stream
    (void)tag;
    return cudaMallocAsync(&address, size, NULL) == 0 ? address : NULL;
}

void wp_free_device_async(void* context, void* address, void* stream) {
    (void)context;
    (void)stream;
    cudaFreeAsync(address, NULL);
}
