/* Uses only the driver interface, found at run time, like a program that is not linked to CUDA.
 * Prints its checks. The exit status is the number of failed checks. */
#include <cuda.h>
#include <cudaTypedefs.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void check(int holds, const char* what) {
    printf("%s: %s\n", holds ? "ok" : "FAILED", what);
    if (!holds) ++failures;
}

#define FT_DRIVER(name, version)                                                 \
    PFN_##name##_v##version name##_ = NULL;                                      \
    get(#name, (void**)&name##_, version, CU_GET_PROC_ADDRESS_DEFAULT, &status); \
    check(name##_ != NULL, "entry point " #name)

int main(void) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    PFN_cuGetProcAddress_v12000 get =
        (PFN_cuGetProcAddress_v12000)dlsym(library, "cuGetProcAddress_v2");
    CUdriverProcAddressQueryResult status;
    FT_DRIVER(cuInit, 2000);
    FT_DRIVER(cuDeviceGetName, 2000);
    FT_DRIVER(cuDeviceTotalMem, 3020);
    FT_DRIVER(cuDevicePrimaryCtxRetain, 7000);
    FT_DRIVER(cuCtxSetCurrent, 4000);
    FT_DRIVER(cuMemAlloc, 3020);
    FT_DRIVER(cuMemFree, 3020);
    FT_DRIVER(cuMemGetInfo, 3020);
    FT_DRIVER(cuMemcpyHtoD, 3020);
    FT_DRIVER(cuMemcpyDtoH, 3020);

    void* unknown = &failures;
    check(get("cuNoSuchFunction", &unknown, 12000, 0, &status) == CUDA_SUCCESS && !unknown &&
              status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
          "an unknown name is not found");
    check(get("cuMemCreate", &unknown, 9000, 0, &status) == CUDA_SUCCESS && !unknown &&
              status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,
          "a version before the function is refused");

    check(cuInit_(0) == CUDA_SUCCESS, "cuInit");
    char name[256] = "";
    check(cuDeviceGetName_(name, sizeof name, 0) == CUDA_SUCCESS &&
              strstr(name, "fragtrace virtual GPU") != NULL,
          "the name says virtual");
    size_t total = 0;
    check(cuDeviceTotalMem_(&total, 0) == CUDA_SUCCESS && total > 0, "total memory");
    CUcontext context;
    CUdeviceptr address = 0;
    check(cuMemAlloc_(&address, 1) == CUDA_ERROR_INVALID_CONTEXT, "no context, no memory");
    check(cuDevicePrimaryCtxRetain_(&context, 0) == CUDA_SUCCESS, "primary context");
    check(cuCtxSetCurrent_(context) == CUDA_SUCCESS, "current context");

    size_t before = 0;
    size_t after = 0;
    size_t total_again = 0;
    cuMemGetInfo_(&before, &total_again);
    check(total_again == total, "both totals agree");
    check(cuMemAlloc_(&address, 3 << 20) == CUDA_SUCCESS, "allocate 3 MiB");
    cuMemGetInfo_(&after, &total_again);
    check(before - after == 4 << 20, "two pages of 2 MiB are taken");
    CUdeviceptr first = address;
    check(cuMemFree_(address) == CUDA_SUCCESS, "free");
    check(cuMemFree_(address) == CUDA_ERROR_INVALID_VALUE, "a second free is refused");
    check(cuMemAlloc_(&address, 3 << 20) == CUDA_SUCCESS && address == first,
          "the lowest address is used again");
    char out[16] = "written by host";
    char in[16] = "";
    check(cuMemcpyHtoD_(address, out, sizeof out) == CUDA_SUCCESS &&
              cuMemcpyDtoH_(in, address, sizeof in) == CUDA_SUCCESS && strcmp(in, out) == 0,
          "what the host wrote reads back");
    CUdeviceptr huge = 0;
    check(cuMemAlloc_(&huge, total) == CUDA_ERROR_OUT_OF_MEMORY && huge == 0,
          "more than is free is refused");
    return failures;
}
