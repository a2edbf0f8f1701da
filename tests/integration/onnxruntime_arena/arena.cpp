// A library with classes that have the names, the virtual functions and the members of ONNX
// Runtime's arena. The arena has one region, serves requests from its start, and merges nothing.
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

extern "C" void* device_alloc(std::size_t bytes);
extern "C" void device_free(void* address);

namespace onnxruntime {

struct AllocatorStats {
    std::int64_t requests = 0;
    std::int64_t reserves = 0;
    std::int64_t extensions = 0;
    std::int64_t shrinkages = 0;
    std::int64_t bytes_in_use = 0;
    std::int64_t unused = 0;
    std::int64_t total_bytes = 0;
    std::int64_t more[2] = {};
    std::int64_t limit = 0;
};

class Stream {
  public:
    explicit Stream(std::uint64_t handle) : handle_(handle) {}

    virtual ~Stream() = default;

  private:
    [[maybe_unused]] std::uint64_t handle_;
};

class IAllocator {
  public:
    explicit IAllocator(const char* name) : name_(name) {}

    virtual ~IAllocator() = default;
    virtual void* Alloc(std::size_t bytes) = 0;

    virtual bool IsStreamAware() const { return false; }

    virtual void* AllocOnStream(std::size_t bytes, Stream*) { return Alloc(bytes); }

    virtual void Free(void* address) = 0;
    virtual void* Reserve(std::size_t bytes) = 0;
    virtual void GetStats(AllocatorStats* stats) = 0;

    virtual IAllocator* AsArena() { return this; }

    virtual const IAllocator* AsArena() const { return this; }

#ifdef FRAGTRACE_OTHER_FUNCTIONS
    virtual int Added() const {
        return 1;
    }
#endif

  private:
    std::string name_;
    std::uint64_t device_[3] = {};
};

class IArena : public IAllocator {
  public:
    using IAllocator::IAllocator;

    // Returns an object in memory of the caller, as the real function does.
    virtual std::string Shrink() = 0;

    virtual void ReleaseStreamBuffers(Stream*) {}
};

constexpr std::size_t kRegionBytes = std::size_t{1} << 20;

class BFCArena : public IArena {
  public:
    BFCArena(const char* name, std::size_t limit) : IArena(name), limit_(limit) {
        stats_.limit = static_cast<std::int64_t>(limit);
    }

    ~BFCArena() override { device_free(region_); }

    void* Alloc(std::size_t bytes) override { return serve(bytes); }

    void Free(void* address) override {
        const std::lock_guard lock(mutex_);
        const auto block = blocks_.find(address);
        if (block == blocks_.end()) {
            device_free(address);
            stats_.total_bytes -= static_cast<std::int64_t>(reserved_bytes_);
            return;
        }
        stats_.bytes_in_use -= static_cast<std::int64_t>(block->second);
        blocks_.erase(block);
    }

    void* Reserve(std::size_t bytes) override {
        const std::lock_guard lock(mutex_);
        ++stats_.requests;
        stats_.total_bytes += static_cast<std::int64_t>(bytes);
        reserved_bytes_ = bytes;
        return device_alloc(bytes);
    }

    void GetStats(AllocatorStats* stats) override {
        const std::lock_guard lock(mutex_);
        *stats = stats_;
    }

    std::string Shrink() override { return "shrunk"; }

  protected:
    void* serve(std::size_t bytes) {
        const std::lock_guard lock(mutex_);
        const std::size_t size = (bytes + 255) / 256 * 256;
        if (region_ == nullptr) {
            region_ = static_cast<char*>(device_alloc(kRegionBytes));
            stats_.total_bytes += static_cast<std::int64_t>(kRegionBytes);
        }
        if (used_ + size > kRegionBytes) {
            throw std::runtime_error("Available memory is smaller than requested");
        }
        void* address = region_ + used_;
        used_ += size;
        blocks_[address] = size;
        ++stats_.requests;
        stats_.bytes_in_use += static_cast<std::int64_t>(size);
        return address;
    }

  private:
    std::size_t limit_;
    std::int32_t strategy_ = 1;
    char* region_ = nullptr;
    std::size_t used_ = 0;
    std::size_t reserved_bytes_ = 0;
    std::mutex mutex_;
    std::map<void*, std::size_t> blocks_;
    char bins_[0x560 - 0x50 - 24 - sizeof(std::mutex) - sizeof(std::map<void*, std::size_t>)] = {};
    AllocatorStats stats_;
    char reserved_[0x5e8 - 0x560 - sizeof(AllocatorStats)] = {};
    std::int32_t first_region_bytes_ = 1 << 20;
    std::int32_t most_waste_bytes_ = 128 << 20;
    std::int32_t region_after_shrink_bytes_ = 2 << 20;
    std::int64_t most_doubled_bytes_ = 1 << 30;
};

class StreamAwareBFCArena : public BFCArena {
  public:
    using BFCArena::BFCArena;

    bool IsStreamAware() const override { return true; }

    void* AllocOnStream(std::size_t bytes, Stream*) override { return serve(bytes); }

    void ReleaseStreamBuffers(Stream*) override {}
};

}  // namespace onnxruntime

using onnxruntime::IArena;
using onnxruntime::Stream;

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED IArena* create(const char* name, std::size_t limit, int with_streams) {
    return with_streams != 0 ? new onnxruntime::StreamAwareBFCArena(name, limit)
                             : new onnxruntime::BFCArena(name, limit);
}

EXPORTED void* allocate(IArena* arena, std::size_t bytes, std::uint64_t stream) {
    if (stream == 0) {
        return arena->Alloc(bytes);
    }
    Stream object(stream);
    return arena->AllocOnStream(bytes, &object);
}

EXPORTED void* reserve(IArena* arena, std::size_t bytes) {
    return arena->Reserve(bytes);
}

EXPORTED void release(IArena* arena, void* address) {
    arena->Free(address);
}

EXPORTED void end_stream(IArena* arena, std::uint64_t stream) {
    Stream object(stream);
    arena->ReleaseStreamBuffers(&object);
}

EXPORTED int shrink(IArena* arena) {
    return arena->Shrink() == "shrunk" ? 1 : 0;
}

EXPORTED void destroy(IArena* arena) {
    delete arena;
}
