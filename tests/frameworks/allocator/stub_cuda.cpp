// A stand-in for libcudart and libcuda: the functions that libc10_cuda calls, as bookkeeping only.
//
// Device memory is a number, addresses are never accessed, and events complete when the script says
// so. Functions that the allocator never reaches return an error or do nothing.
#include "stub_cuda.h"

#include "analyzer/pools/address_space.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <unordered_map>

namespace {

using fragtrace::analyzer::AddressOrder;
using fragtrace::analyzer::AddressSpace;

constexpr int kSuccess = 0;
constexpr int kOutOfMemory = 2;
constexpr int kNotReady = 600;
constexpr std::uint64_t kPageBytes = std::uint64_t{2} << 20;

struct StreamState {
    std::uint64_t recorded = 0;
    std::uint64_t done = 0;
};

struct Event {
    StreamState* stream = nullptr;
    std::uint64_t position = 0;
};

struct Card {
    std::uint64_t total_bytes = std::uint64_t{1} << 34;
    std::uint64_t free_bytes = std::uint64_t{1} << 34;
    AddressSpace addresses;
    std::unordered_map<std::uint64_t, std::uint64_t> sizes;  // cudaMalloc and cuMemCreate
    std::map<void*, StreamState> streams;
    unsigned long long capture = 0;
    std::uint64_t next_handle = 1;
    int last_error = 0;
    void (*refused)(std::size_t) = nullptr;
};

Card card;

std::uint64_t pages(std::uint64_t size_bytes) {
    return (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

bool take(std::uint64_t size_bytes) {
    if (size_bytes > card.free_bytes || pages(size_bytes) > card.free_bytes) {
        return false;
    }
    card.free_bytes -= pages(size_bytes);
    return true;
}

void give_back(std::uint64_t key) {
    const auto found = card.sizes.find(key);
    if (found == card.sizes.end()) {
        std::fprintf(stderr, "stub: freed what was not allocated\n");
        std::abort();
    }
    card.free_bytes += pages(found->second);
    card.sizes.erase(found);
}

[[noreturn]] int not_here() {
    std::fprintf(stderr, "stub: a function was called that has no stand-in\n");
    std::abort();
}

}  // namespace

extern "C" {

void stub_set_card(std::uint64_t total_bytes,
                   std::uint64_t capacity_bytes,
                   int address_order,
                   std::uint64_t seed,
                   void (*refused)(std::size_t)) {
    card = Card();
    card.total_bytes = total_bytes;
    card.free_bytes = capacity_bytes;
    card.addresses = AddressSpace(static_cast<AddressOrder>(address_order), seed);
    card.refused = refused;
}

void stub_complete(void* stream, std::size_t keep) {
    StreamState& state = card.streams[stream];
    if (state.recorded > keep && state.recorded - keep > state.done) {
        state.done = state.recorded - keep;
    }
}

void stub_set_capture(unsigned long long capture) {
    card.capture = capture;
}

// ---- runtime: devices

int cudaGetDeviceCount(int* count) {
    *count = 1;
    return kSuccess;
}

int cudaGetDevice(int* device) {
    *device = 0;
    return kSuccess;
}

int cudaSetDevice(int) {
    return kSuccess;
}

int cudaDriverGetVersion(int* version) {
    *version = 13020;
    return kSuccess;
}

// The fields before totalGlobalMem (name, uuid, luid, node mask) have the same size since CUDA 10.
int cudaGetDeviceProperties(void* properties, int) {
    constexpr std::size_t kOffsetOfTotal = 288;
    std::memset(properties, 0, kOffsetOfTotal);
    std::memcpy(static_cast<char*>(properties) + kOffsetOfTotal, &card.total_bytes, 8);
    return kSuccess;
}

int cudaGetDeviceProperties_v2(void* properties, int device) {
    return cudaGetDeviceProperties(properties, device);
}

int cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
    *free_bytes = card.free_bytes;
    *total_bytes = card.total_bytes;
    return kSuccess;
}

int cudaDeviceSynchronize() {
    return kSuccess;
}

int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    *least = 0;
    *greatest = 0;
    return kSuccess;
}

int cudaDeviceCanAccessPeer(int* can, int, int) {
    *can = 0;
    return kSuccess;
}

int cudaDeviceEnablePeerAccess(int, unsigned) {
    return kSuccess;
}

int cudaGetLastError() {
    const int error = card.last_error;
    card.last_error = 0;
    return error;
}

const char* cudaGetErrorString(int) {
    return "error of the stub";
}

const char* cudaGetErrorName(int) {
    return "stub";
}

// ---- runtime: memory

int cudaMalloc(void** address, std::size_t size_bytes) {
    if (!take(size_bytes)) {
        card.refused(size_bytes);
        card.last_error = kOutOfMemory;
        return kOutOfMemory;
    }
    const std::uint64_t begin = card.addresses.reserve(size_bytes, 0);
    card.sizes[begin] = size_bytes;
    *address = reinterpret_cast<void*>(begin);
    return kSuccess;
}

int cudaFree(void* address) {
    const auto begin = reinterpret_cast<std::uint64_t>(address);
    if (begin != 0) {
        give_back(begin);
        card.addresses.release(begin);
    }
    return kSuccess;
}

// ---- runtime: streams and events

int cudaEventCreateWithFlags(void** event, unsigned) {
    *event = new Event;
    return kSuccess;
}

int cudaEventDestroy(void* event) {
    delete static_cast<Event*>(event);
    return kSuccess;
}

int cudaEventRecord(void* event, void* stream) {
    StreamState& state = card.streams[stream];
    *static_cast<Event*>(event) = {&state, ++state.recorded};
    return kSuccess;
}

int cudaEventQuery(void* event) {
    const Event& one = *static_cast<Event*>(event);
    if (one.stream == nullptr || one.position <= one.stream->done) {
        return kSuccess;
    }
    card.last_error = kNotReady;
    return kNotReady;
}

// The allocator forgets an event that it waited for. Other events stay as the script wants them.
int cudaEventSynchronize(void*) {
    return kSuccess;
}

int cudaStreamCreateWithPriority(void** stream, unsigned, int) {
    *stream = reinterpret_cast<void*>(0x1000 + card.next_handle++);
    return kSuccess;
}

int cudaStreamSynchronize(void*) {
    return kSuccess;
}

int cudaStreamQuery(void*) {
    return kSuccess;
}

int cudaStreamWaitEvent(void*, void*, unsigned) {
    return kSuccess;
}

int cudaStreamIsCapturing(void*, int* status) {
    *status = card.capture != 0 ? 1 : 0;
    return kSuccess;
}

int cudaThreadExchangeStreamCaptureMode(int*) {
    return kSuccess;
}

// Its other results are not used if the captured graph itself does not matter.
int cudaStreamGetCaptureInfo(void*, int* status, unsigned long long* id) {
    *status = card.capture != 0 ? 1 : 0;
    if (id != nullptr) {
        *id = card.capture;
    }
    return kSuccess;
}

int cudaStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id) {
    return cudaStreamGetCaptureInfo(stream, status, id);
}

// ---- driver: what expandable segments are made of

int cuGetErrorString(int, const char** text) {
    *text = "error of the stub";
    return kSuccess;
}

int cuDeviceGet(int* device, int) {
    *device = 0;
    return kSuccess;
}

int cuDeviceGetAttribute(int* value, int, int) {
    *value = 0;
    return kSuccess;
}

int cuMemGetAllocationGranularity(std::size_t* granularity, const void*, int) {
    *granularity = kPageBytes;
    return kSuccess;
}

int cuMemAddressReserve(std::uint64_t* address,
                        std::size_t size_bytes,
                        std::size_t,
                        std::uint64_t,
                        unsigned long long) {
    *address = card.addresses.reserve(size_bytes, 0);
    return kSuccess;
}

int cuMemAddressFree(std::uint64_t address, std::size_t) {
    card.addresses.release(address);
    return kSuccess;
}

int cuMemCreate(unsigned long long* handle,
                std::size_t size_bytes,
                const void*,
                unsigned long long) {
    if (!take(size_bytes)) {
        return kOutOfMemory;
    }
    *handle = card.next_handle++;
    card.sizes[*handle] = size_bytes;
    return kSuccess;
}

int cuMemRelease(unsigned long long handle) {
    give_back(handle);
    return kSuccess;
}

int cuMemMap(std::uint64_t, std::size_t, std::size_t, unsigned long long, unsigned long long) {
    return kSuccess;
}

int cuMemSetAccess(std::uint64_t, std::size_t, const void*, std::size_t) {
    return kSuccess;
}

int cuMemUnmap(std::uint64_t, std::size_t) {
    return kSuccess;
}

// ---- NVML: asked for the text of an OutOfMemoryError

int nvmlInit_v2() {
    return kSuccess;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
    *device = nullptr;
    return kSuccess;
}

int nvmlDeviceGetComputeRunningProcesses(void*, unsigned* count, void*) {
    *count = 0;
    return kSuccess;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) {
    *count = 0;
    return kSuccess;
}

#define FRAGTRACE_NOT_HERE(name) \
    int name() {                 \
        return not_here();       \
    }

FRAGTRACE_NOT_HERE(cudaDeviceGetDefaultMemPool)
FRAGTRACE_NOT_HERE(cudaDeviceGetGraphMemAttribute)
FRAGTRACE_NOT_HERE(cudaDeviceSetGraphMemAttribute)
FRAGTRACE_NOT_HERE(cudaEventElapsedTime)
FRAGTRACE_NOT_HERE(cudaFreeAsync)
FRAGTRACE_NOT_HERE(cudaGraphAddEmptyNode)
FRAGTRACE_NOT_HERE(cudaGraphNodeGetDependencies)
FRAGTRACE_NOT_HERE(cudaGraphNodeGetType)
FRAGTRACE_NOT_HERE(cudaIpcCloseMemHandle)
FRAGTRACE_NOT_HERE(cudaIpcGetMemHandle)
FRAGTRACE_NOT_HERE(cudaIpcOpenMemHandle)
FRAGTRACE_NOT_HERE(cudaMallocAsync)
FRAGTRACE_NOT_HERE(cudaMemPoolGetAttribute)
FRAGTRACE_NOT_HERE(cudaMemPoolSetAccess)
FRAGTRACE_NOT_HERE(cudaMemPoolSetAttribute)
FRAGTRACE_NOT_HERE(cudaMemPoolTrimTo)
FRAGTRACE_NOT_HERE(cudaMemcpy)
FRAGTRACE_NOT_HERE(cudaMemcpyAsync)
FRAGTRACE_NOT_HERE(cudaMemcpyPeerAsync)
FRAGTRACE_NOT_HERE(cudaStreamUpdateCaptureDependencies)
FRAGTRACE_NOT_HERE(cuDevicePrimaryCtxGetState)
FRAGTRACE_NOT_HERE(cuMemExportToShareableHandle)
FRAGTRACE_NOT_HERE(cuMemGetAddressRange)
FRAGTRACE_NOT_HERE(cuMemGetAllocationPropertiesFromHandle)
FRAGTRACE_NOT_HERE(cuMemImportFromShareableHandle)
FRAGTRACE_NOT_HERE(cuMemRetainAllocationHandle)
FRAGTRACE_NOT_HERE(cuMemsetD32Async)
FRAGTRACE_NOT_HERE(cuMulticastAddDevice)
FRAGTRACE_NOT_HERE(cuMulticastBindMem)
FRAGTRACE_NOT_HERE(cuMulticastCreate)
FRAGTRACE_NOT_HERE(cuMulticastUnbind)
FRAGTRACE_NOT_HERE(cuStreamWriteValue32)
FRAGTRACE_NOT_HERE(nvmlDeviceGetGpuFabricInfoV)
FRAGTRACE_NOT_HERE(nvmlDeviceGetNvLinkRemoteDeviceType)
FRAGTRACE_NOT_HERE(nvmlDeviceGetNvLinkRemotePciInfo_v2)
FRAGTRACE_NOT_HERE(nvmlSystemGetCudaDriverVersion_v2)

// cudaGetDriverEntryPoint: 0 = found, 1 = not there.
int cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long, int* status) {
    struct Known {
        const char* name;
        void* function;
    };

#define FRAGTRACE_KNOWN(name) \
    { #name, reinterpret_cast < void*>(&(name)) }
    static const Known known[] = {FRAGTRACE_KNOWN(cuGetErrorString),
                                  FRAGTRACE_KNOWN(cuDeviceGet),
                                  FRAGTRACE_KNOWN(cuDeviceGetAttribute),
                                  FRAGTRACE_KNOWN(cuMemGetAllocationGranularity),
                                  FRAGTRACE_KNOWN(cuMemAddressReserve),
                                  FRAGTRACE_KNOWN(cuMemAddressFree),
                                  FRAGTRACE_KNOWN(cuMemCreate),
                                  FRAGTRACE_KNOWN(cuMemRelease),
                                  FRAGTRACE_KNOWN(cuMemMap),
                                  FRAGTRACE_KNOWN(cuMemSetAccess),
                                  FRAGTRACE_KNOWN(cuMemUnmap)};
    for (const Known& one : known) {
        if (std::strcmp(one.name, name) == 0) {
            *function = one.function;
            *status = 0;
            return kSuccess;
        }
    }
    // Newer releases look for log functions, which may be missing. All others must exist.
    const bool absent = std::strncmp(name, "cuLogs", 6) == 0;
    *function = absent ? nullptr : reinterpret_cast<void*>(&not_here);
    *status = absent ? 1 : 0;
    return kSuccess;
}

int cudaGetDriverEntryPointByVersion(
    const char* name, void** function, unsigned, unsigned long long flags, int* status) {
    return cudaGetDriverEntryPoint(name, function, flags, status);
}

}  // extern "C"
