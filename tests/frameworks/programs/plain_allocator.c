// Code that a user writes for torch.cuda.memory.CUDAPluggableAllocator.
#include <stddef.h>
#include <sys/types.h>

extern int cudaMalloc(void** address, size_t bytes);  // from the runtime that PyTorch has loaded
extern int cudaFree(void* address);

void* plain_alloc(ssize_t bytes, int device, void* stream) {
    (void)device;
    (void)stream;
    void* address = NULL;
    return cudaMalloc(&address, (size_t)bytes) == 0 ? address : NULL;
}

void plain_free(void* address, ssize_t bytes, int device, void* stream) {
    (void)bytes;
    (void)device;
    (void)stream;
    cudaFree(address);
}
