/* A plug-in that makes CUDA calls; see unloading.c. */
#include <stddef.h>

int cudaMalloc(void** address, size_t bytes);
int cudaFree(void* address);
void* plugin_alloc(size_t bytes);
int plugin_free(void* address);

void* plugin_alloc(size_t bytes) {
    void* address = NULL;
    return cudaMalloc(&address, bytes) == 0 ? address : NULL;
}

int plugin_free(void* address) {
    const volatile int result = cudaFree(address); /* prevents a tail call (preload/README.md) */
    return result;
}
