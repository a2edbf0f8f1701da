// Carries the CUDA runtime inside, as nvcc links by default. Prints what it gets.
#include "check.h"

#include <cuda_runtime.h>

int main() {
    int devices = -1;
    void* address = nullptr;
    const cudaError_t counted = cudaGetDeviceCount(&devices);
    printf("devices %d %s\n", devices, cudaGetErrorName(counted));
    const cudaError_t allocated = static_cast<cudaError_t>(KEEPS_ERRNO(cudaMalloc(&address, 4096)));
    printf("allocated %s\n", cudaGetErrorName(allocated));
    printf("freed %s\n", cudaGetErrorName(cudaFree(address)));
    return 4;
}
