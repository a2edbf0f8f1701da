/* Two cards in one process: their properties, their own memory, peer access, and NVML's view of
 * both. The argument lists the physical numbers that CUDA_VISIBLE_DEVICES selects, such as 01, 10,
 * 1. The exit status is the number of failed checks. */
#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { kMiB = 1 << 20 };

static int failures;

static void check(int holds, const char* what) {
    printf("%s: %s\n", holds ? "ok" : "FAILED", what);
    if (!holds) ++failures;
}

#define EXPECT(result, call) check((call) == (result), #call " is " #result)
#define WELL(call)           EXPECT(cudaSuccess, call)

static size_t free_on(int device) {
    size_t free_bytes = 0;
    size_t total = 0;
    cudaSetDevice(device);
    cudaMemGetInfo(&free_bytes, &total);
    return free_bytes;
}

static void two_devices(void) {
    int can = 0;
    WELL(cudaDeviceCanAccessPeer(&can, 0, 1));
    check(can == 1, "the two reach each other");
    WELL(cudaDeviceCanAccessPeer(&can, 0, 0));
    check(can == 0, "a device is no peer of itself");
    EXPECT(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&can, 0, 2));
    const size_t first = free_on(0);
    const size_t second = free_on(1);
    void* here = NULL;
    void* there = NULL;
    WELL(cudaMalloc(&there, 64 * kMiB));
    check(free_on(0) == first, "memory on device 1 takes nothing from device 0");
    check(second - free_on(1) == 64 * kMiB, "but from its own card");
    WELL(cudaSetDevice(0));
    WELL(cudaMalloc(&here, 64 * kMiB));
    struct cudaPointerAttributes attributes;
    WELL(cudaPointerGetAttributes(&attributes, there));
    check(attributes.device == 1, "a pointer knows its device");
    WELL(cudaPointerGetAttributes(&attributes, here));
    check(attributes.device == 0, "whichever is current");
    WELL(cudaMemcpyPeer(here, 0, there, 1, kMiB));
    EXPECT(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(0, 0));
    EXPECT(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
    EXPECT(cudaErrorInvalidValue, cudaDeviceEnablePeerAccess(1, 1));
    WELL(cudaDeviceEnablePeerAccess(1, 0));
    EXPECT(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(1, 0));
    WELL(cudaDeviceDisablePeerAccess(1));
    WELL(cudaFree(there)); /* while the other device is current */
    WELL(cudaFree(here));
    check(free_on(0) == first && free_on(1) == second, "each card has its own back");
    void* more = NULL;
    WELL(cudaSetDevice(0));
    WELL(cudaMalloc(&here, first - 64 * kMiB));
    WELL(cudaSetDevice(1));
    WELL(cudaMalloc(&more, second - 64 * kMiB));
    WELL(cudaFree(more));
    WELL(cudaFree(here));
}

static void management(const char* physical, int count) {
    void* nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    check(nvml != NULL, "libnvidia-ml.so.1");
    if (nvml == NULL) return;
    int (*init)(void) = (int (*)(void))dlsym(nvml, "nvmlInit_v2");
    int (*present)(unsigned*) = (int (*)(unsigned*))dlsym(nvml, "nvmlDeviceGetCount_v2");
    int (*by_bus)(const char*, void**) =
        (int (*)(const char*, void**))dlsym(nvml, "nvmlDeviceGetHandleByPciBusId_v2");
    int (*index_of)(void*, unsigned*) =
        (int (*)(void*, unsigned*))dlsym(nvml, "nvmlDeviceGetIndex");
    int (*memory_of)(void*, unsigned long long*) =
        (int (*)(void*, unsigned long long*))dlsym(nvml, "nvmlDeviceGetMemoryInfo");
    unsigned devices = 0;
    check(init() == 0 && present(&devices) == 0 && devices == 2, "NVML counts what is there");
    for (int i = 0; i < count; ++i) {
        char bus[32] = "";
        void* handle = NULL;
        unsigned index = 99;
        unsigned long long memory[3] = {0, 0, 0}; /* total, free, used */
        WELL(cudaDeviceGetPCIBusId(bus, sizeof bus, i));
        check(by_bus(bus, &handle) == 0 && index_of(handle, &index) == 0 &&
                  index == (unsigned)(physical[i] - '0'),
              "NVML's number of the device is the physical one");
        struct cudaDeviceProp properties;
        WELL(cudaGetDeviceProperties(&properties, i));
        check(properties.uuid.bytes[15] == physical[i], "its UUID too");
        check(memory_of(handle, memory) == 0 && memory[0] == properties.totalGlobalMem &&
                  memory[2] > 0,
              "its memory, with this process's context");
    }
}

int main(int argc, char** argv) {
    if (argc != 2) return 98;
    const int expected = (int)strlen(argv[1]);
    int count = -1;
    const cudaError_t result = cudaGetDeviceCount(&count);
    if (expected == 0) {
        check(result == cudaErrorNoDevice && count == 0, "no device");
        return failures;
    }
    check(result == cudaSuccess && count == expected, "as many devices as are visible");
    EXPECT(cudaErrorInvalidDevice, cudaSetDevice(count));
    for (int i = 0; i < count; ++i)
        (void)free_on(i);
    if (count == 2) two_devices();
    management(argv[1], count);
    return failures;
}
