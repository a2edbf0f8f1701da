// Uses the CUDA runtime and a kernel. Built with -cudart shared it runs on the virtual GPU; built
// with nvcc's default it must end in an ordinary CUDA error, status 3.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void scale(float* values) {
    values[threadIdx.x] *= 2.0F;
}

static int failed(cudaError_t error, const char* what) {
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    return 3;
}

int main() {
    float* device = nullptr;
    if (const cudaError_t error = cudaMalloc(&device, 64 * sizeof(float))) {
        return failed(error, "cudaMalloc");
    }
    float host[64] = {1.0F, 2.0F};
    cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
    float back[64] = {};
    cudaMemcpy(back, device, sizeof back, cudaMemcpyDeviceToHost);
    if (back[1] != 2.0F) return 1;
    scale<<<1, 64>>>(device);
    if (const cudaError_t error = cudaDeviceSynchronize()) return failed(error, "kernel");
    cudaMemcpy(back, device, sizeof back, cudaMemcpyDeviceToHost);
    if (back[1] != 0.0F) return 2;  // nothing is known after a kernel
    void* nothing = device;
    if (cudaMalloc(&nothing, 0) != cudaSuccess || nothing != nullptr) return 4;
    if (cudaFree(device) != cudaSuccess) return 5;
    const cudaChannelFormatDesc texels = cudaCreateChannelDesc<float4>();
    cudaArray_t array = nullptr;
    if (cudaMallocArray(&array, &texels, 16, 16) != cudaSuccess) return 6;
    if (cudaFreeArray(array) != cudaSuccess) return 7;
    std::printf("ran on the virtual GPU\n");
    return 0;
}
