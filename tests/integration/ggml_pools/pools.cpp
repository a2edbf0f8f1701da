// A library with classes that have the names and the virtual functions of the pools of ggml's CUDA
// backend. One pool keeps freed buffers and serves a request with the first that is large enough.
// The other is a stack in memory that it maps.
#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

constexpr std::size_t kAddressBytes = std::size_t{1} << 30;
constexpr std::size_t kPageBytes = std::size_t{2} << 20;

std::size_t rounded(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): ggml's names
struct ggml_cuda_pool {
    virtual ~ggml_cuda_pool() = default;
    virtual void* alloc(std::size_t size, std::size_t* actual_size) = 0;
#ifdef FRAGTRACE_OTHER_PARAMETERS
    virtual void free(void* ptr, std::size_t size, int stream) = 0;
#else
    virtual void free(void* ptr, std::size_t size) = 0;
#endif
#ifdef FRAGTRACE_ADDED_FUNCTION
    virtual bool is_added() {
        return true;
    }
#endif
};

#ifdef FRAGTRACE_OTHER_PARAMETERS
#    define FREE(ptr, size)            free(ptr, size, int)
#    define CALL_FREE(pool, ptr, size) pool->free(ptr, size, 0)
#else
#    define FREE(ptr, size)            free(ptr, size)
#    define CALL_FREE(pool, ptr, size) pool->free(ptr, size)
#endif

struct ggml_cuda_pool_leg : public ggml_cuda_pool {
    struct Buffer {
        CUdeviceptr address;
        std::size_t size;
    };

    std::vector<Buffer> cached;

    ~ggml_cuda_pool_leg() override {
        for (const Buffer& buffer : cached) {
            cuMemFree(buffer.address);
        }
    }

    void* alloc(std::size_t size, std::size_t* actual_size) override {
        for (auto buffer = cached.begin(); buffer != cached.end(); ++buffer) {
            if (buffer->size >= size) {
                *actual_size = buffer->size;
                const CUdeviceptr address = buffer->address;
                cached.erase(buffer);
                return reinterpret_cast<void*>(address);
            }
        }
        CUdeviceptr address = 0;
        *actual_size = rounded(size + size / 20, 256);
        return cuMemAlloc(&address, *actual_size) == CUDA_SUCCESS ? reinterpret_cast<void*>(address)
                                                                  : nullptr;
    }

    void FREE(void* ptr, std::size_t size) override {
        cached.push_back({reinterpret_cast<CUdeviceptr>(ptr), size});
    }
};

struct ggml_cuda_pool_vmm : public ggml_cuda_pool {
    CUdeviceptr pool_addr = 0;
    std::size_t pool_used = 0;
    std::size_t pool_size = 0;

    ~ggml_cuda_pool_vmm() override {
        if (pool_addr != 0) {
            cuMemUnmap(pool_addr, pool_size);
            cuMemAddressFree(pool_addr, kAddressBytes);
        }
    }

    void* alloc(std::size_t size, std::size_t* actual_size) override {
        size = rounded(size, 128);
        if (pool_used + size > pool_size) {
            grow(rounded(pool_used + size - pool_size, kPageBytes));
        }
        void* address = reinterpret_cast<void*>(pool_addr + pool_used);
        pool_used += size;
        *actual_size = size;
        return address;
    }

    void FREE(void*, std::size_t size) override { pool_used -= size; }

    void grow(std::size_t bytes) {
        CUmemAllocationProp properties{};
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        CUmemGenericAllocationHandle handle = 0;
        if (pool_addr == 0) {
            cuMemAddressReserve(&pool_addr, kAddressBytes, 0, 0, 0);
        }
        cuMemCreate(&handle, bytes, &properties, 0);
        cuMemMap(pool_addr + pool_size, bytes, 0, handle, 0);
        cuMemRelease(handle);
        pool_size += bytes;
    }
};

// NOLINTEND(readability-identifier-naming)

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void ggml_backend_cuda_init() {
    CUcontext context = nullptr;
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
}

EXPORTED ggml_cuda_pool* create(int maps) {
    if (maps != 0) {
        return new ggml_cuda_pool_vmm;
    }
    return new ggml_cuda_pool_leg;
}

EXPORTED void* allocate(ggml_cuda_pool* pool, std::size_t bytes, std::size_t* size) {
    return pool->alloc(bytes, size);
}

EXPORTED void release(ggml_cuda_pool* pool, void* address, std::size_t size) {
    CALL_FREE(pool, address, size);
}

EXPORTED void destroy(ggml_cuda_pool* pool) {
    delete pool;
}
