// A program with the CUDA runtime linked statically, as nvcc does by default, for
// scripts/gpu-acceptance. Prints the address and size of each cudaMalloc, one per line.
#include <cuda_runtime_api.h>

#include <cstdio>

int main() {
    for (size_t i = 1; i <= 50; ++i) {
        void* address = nullptr;
        const cudaError_t error = cudaMalloc(&address, i * 100000);
        if (error != cudaSuccess) {
            std::fprintf(stderr, "cudaMalloc: %s\n", cudaGetErrorString(error));
            return 1;
        }
        std::printf("%llu %zu\n", reinterpret_cast<unsigned long long>(address), i * 100000);
        if (i % 2 == 0) {
            cudaFree(address);
        }
    }
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
