/* A driver whose cuGetProcAddress returns other addresses than dlsym. The result of each function
 * shows which one was called. Old names have the old signatures. */
#include <stddef.h>
#include <string.h>

typedef unsigned long long address_t;

static address_t next_address = 0x500000000ull;

int cuInit(unsigned flags) {
    return (int)flags;
}

int cuCtxGetDevice(int* device) {
    return *device = 0;
}

int cuDeviceGetCount(int* count) {
    return *count = 1, 0;
}

int cuMemAlloc(unsigned* address, unsigned bytes) {
    return *address = 32, bytes == 64 ? 0 : 1;
}

int cuMemFree(unsigned address) {
    return address == 32 ? 0 : 1;
}

int cuMemAlloc_v2(address_t* address, size_t bytes) {
    *address = next_address;
    next_address += bytes;
    return 0;
}

int cuMemFree_v2(address_t address) {
    return address >= 0x500000000ull ? 0 : 1;
}

/* The width of the grid becomes the result. */
int cuLaunchKernel(void* function,
                   unsigned grid_x,
                   unsigned grid_y,
                   unsigned grid_z,
                   unsigned block_x,
                   unsigned block_y,
                   unsigned block_z,
                   unsigned shared_bytes,
                   void* stream,
                   void** arguments,
                   void** extra) {
    const int in_order = grid_y == 2 && grid_z == 3 && block_x == 4 && block_y == 5 &&
                         block_z == 6 && shared_bytes == 7 && stream == (void*)8 &&
                         arguments == (void**)9 && extra == (void**)10 && function == (void*)11;
    return in_order ? (int)grid_x : 99;
}

static int private_alloc(address_t* address, size_t bytes) {
    return cuMemAlloc_v2(address, bytes);
}

static int private_free(address_t address) {
    return cuMemFree_v2(address);
}

static int future_alloc(address_t* address, size_t bytes, int more) {
    *address = (address_t)more;
    return bytes == 1 ? 0 : 1;
}

int cuGetProcAddress_v2(
    const char* symbol, void** function, int version, unsigned long long flags, int* status);

int cuGetProcAddress(const char* symbol, void** function, int version, unsigned long long flags) {
    (void)flags;
    *function = NULL;
    if (strcmp(symbol, "cuMemAlloc") == 0) {
        *function = version >= 99000  ? (void*)future_alloc
                    : version >= 3020 ? (void*)private_alloc
                                      : (void*)cuMemAlloc;
    } else if (strcmp(symbol, "cuMemFree") == 0) {
        *function = version >= 3020 ? (void*)private_free : (void*)cuMemFree;
    } else if (strcmp(symbol, "cuGetProcAddress") == 0) {
        *function = version >= 12000 ? (void*)cuGetProcAddress_v2 : (void*)cuGetProcAddress;
    }
    return 0;
}

int cuGetProcAddress_v2(
    const char* symbol, void** function, int version, unsigned long long flags, int* status) {
    const int result = cuGetProcAddress(symbol, function, version, flags);
    if (status != NULL) {
        *status = *function == NULL ? 1 : 0;
    }
    return result;
}
