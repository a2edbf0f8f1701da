// Uses the shared CUDA runtime, as `nvcc -cudart shared` builds it. Prints every result.
#include "check.h"

#include <cuda_runtime.h>

int main() {
    int devices = 0;
    CHECK(cudaGetDeviceCount(&devices) == cudaSuccess && devices >= 1);
    CHECK(KEEPS_ERRNO(cudaFree(nullptr)) == 0);  // the usual way to create the context
    void* first = nullptr;
    void* second = nullptr;
    void* untouched = &first;
    CHECK(KEEPS_ERRNO(cudaMalloc(&first, 1000)) == 0);
    CHECK(KEEPS_ERRNO(cudaMalloc(&second, 5 << 20)) == 0);
    printf("alloc %p %p\n", first, second);
    const int too_much = KEEPS_ERRNO(cudaMalloc(&untouched, size_t{1} << 40));
    printf("too much %d %s\n", too_much, cudaGetErrorName(cudaGetLastError()));
    printf("then %s\n", cudaGetErrorName(cudaGetLastError()));
    CHECK(untouched == &first);
    void* nothing = &first;
    const int zero_bytes = KEEPS_ERRNO(cudaMalloc(&nothing, 0));
    printf("zero bytes %d %d\n", zero_bytes, nothing == nullptr);
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    CHECK(KEEPS_ERRNO(cudaMemGetInfo(&free_bytes, &total_bytes)) == 0);
    printf("info %zu %zu\n", free_bytes, total_bytes);
    cudaEvent_t event = nullptr;
    CHECK(cudaEventCreate(&event) == cudaSuccess);
    CHECK(KEEPS_ERRNO(cudaEventRecord(event, nullptr)) == 0);
    CHECK(KEEPS_ERRNO(cudaEventSynchronize(event)) == 0);
    CHECK(KEEPS_ERRNO(cudaEventQuery(event)) == 0);
    CHECK(KEEPS_ERRNO(cudaFree(first)) == 0);
    void* create = nullptr;
    cudaDriverEntryPointQueryResult status{};
    CHECK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &create, 12000, 0, &status) ==
          cudaSuccess);
    unsigned long long address = 0;
    CHECK(reinterpret_cast<int (*)(unsigned long long*, size_t)>(create)(&address, 4096) == 0);
    printf("entry point %llx\n", address);
    CHECK(KEEPS_ERRNO(cudaDeviceReset()) == 0);  // frees second
    return 5;
}
