/* A library that uses the runtime it is linked to, like a framework's library. */
#include <stddef.h>

int cudaMalloc(void** address, size_t bytes);
int cudaFree(void* address);

void* toy_use(size_t bytes) {
    void* address = NULL;
    const int result = cudaMalloc(&address, bytes);
    return result == 0 ? address : NULL;
}

int toy_release(void* address) {
    const int result = cudaFree(address);
    return result;
}
