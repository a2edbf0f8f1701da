// A library with an allocator that has the name and the virtual functions of JAX's:
// tsl::BFCAllocator. It divides memory from the driver into blocks of 256 bytes and more. Like
// JAX's plug-in it does not export the class.
#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tsl {

#ifdef FRAGTRACE_OTHER_FUNCTIONS
using Bytes = unsigned;
#else
using Bytes = size_t;
#endif

struct AllocationAttributes {
    bool retry = true;
};

struct AllocatorStats {
    std::int64_t num_allocs = 0;
    std::int64_t bytes_in_use = 0;
    std::int64_t peak_bytes_in_use = 0;
    std::int64_t largest_alloc_size = 0;
    std::optional<std::int64_t> bytes_limit;
    std::int64_t more[10] = {};
};

class Allocator {
  public:
    virtual ~Allocator();
    virtual std::string Name() = 0;
    virtual void* AllocateRaw(size_t alignment, Bytes bytes) = 0;
    virtual void* AllocateRaw(size_t alignment,
                              size_t bytes,
                              const AllocationAttributes& attributes) = 0;
    virtual void DeallocateRaw(void* address) = 0;
    virtual size_t AllocatedSize(const void* address) const = 0;
    virtual std::optional<AllocatorStats> GetStats() = 0;
};

class BFCAllocator : public Allocator {
  public:
    explicit BFCAllocator(size_t limit);
    ~BFCAllocator() override;
    std::string Name() override;
    void* AllocateRaw(size_t alignment, Bytes bytes) override;
    void* AllocateRaw(size_t alignment,
                      size_t bytes,
                      const AllocationAttributes& attributes) override;
    void DeallocateRaw(void* address) override;
    size_t AllocatedSize(const void* address) const override;
    std::optional<AllocatorStats> GetStats() override;

  private:
    size_t limit_;
    CUdeviceptr region_ = 0;
    std::map<std::uintptr_t, size_t> blocks_;
};

Allocator::~Allocator() = default;

BFCAllocator::BFCAllocator(size_t limit) : limit_(limit) {}

BFCAllocator::~BFCAllocator() {
    cuMemFree(region_);
}

std::string BFCAllocator::Name() {
    return "GPU_0_bfc, with a name that is longer than a short string";
}

void* BFCAllocator::AllocateRaw(size_t alignment, Bytes bytes) {
    Allocator* self = this;  // through the table, as the real one
    return self->AllocateRaw(alignment, bytes, AllocationAttributes());
}

void* BFCAllocator::AllocateRaw(size_t, size_t bytes, const AllocationAttributes&) {
    if (region_ == 0 && cuMemAlloc(&region_, limit_) != CUDA_SUCCESS) return nullptr;
    const size_t size = (bytes + 255) / 256 * 256;
    std::uintptr_t at = region_;
    for (const auto& [address, taken] : blocks_) {
        if (address - at >= size) break;
        at = address + taken;
    }
    if (bytes == 0 || at + size > region_ + limit_) return nullptr;
    blocks_[at] = size;
    return reinterpret_cast<void*>(at);
}

void BFCAllocator::DeallocateRaw(void* address) {
    blocks_.erase(reinterpret_cast<std::uintptr_t>(address));
}

size_t BFCAllocator::AllocatedSize(const void* address) const {
    return blocks_.at(reinterpret_cast<std::uintptr_t>(address));
}

std::optional<AllocatorStats> BFCAllocator::GetStats() {
    AllocatorStats stats;
    stats.bytes_limit = static_cast<std::int64_t>(limit_);
    return stats;
}

}  // namespace tsl

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED tsl::Allocator* create(size_t limit) {
    CUcontext context = nullptr;
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    return new tsl::BFCAllocator(limit);
}

EXPORTED void* allocate(tsl::Allocator* allocator, size_t bytes, int with_attributes) {
    return with_attributes != 0 ? allocator->AllocateRaw(256, bytes, tsl::AllocationAttributes())
                                : allocator->AllocateRaw(256, static_cast<tsl::Bytes>(bytes));
}

EXPORTED void release(tsl::Allocator* allocator, void* address) {
    allocator->DeallocateRaw(address);
}

EXPORTED void destroy(tsl::Allocator* allocator) {
    delete allocator;
}
