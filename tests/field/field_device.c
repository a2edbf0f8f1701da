// Adds two things that the virtual GPU lacks: a device whose work takes time, and a communication
// library that allocates outside PyTorch's pool. Preloaded after the recorder, before CUDA's
// runtime.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

enum { kNotReady = 600 };

static int busy;

__attribute__((visibility("default"))) void field_device_is_busy(int is_busy) {
    busy = is_busy;
}

// An event that nobody waited for has not completed.
__attribute__((visibility("default"))) int cudaEventQuery(void* event) {
    static int (*query)(void*);
    if (query == NULL) {
        query = (int (*)(void*))dlsym(RTLD_NEXT, "cudaEventQuery");
    }
    return busy ? kNotReady : query(event);
}

__attribute__((visibility("default"))) int field_collective_buffer(size_t bytes) {
    int (*allocate)(void**, size_t) = (int (*)(void**, size_t))dlsym(RTLD_DEFAULT, "cudaMalloc");
    int (*last_error)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "cudaGetLastError");
    void* buffer = NULL;
    const int error = allocate(&buffer, bytes);
    last_error();
    return error;
}
