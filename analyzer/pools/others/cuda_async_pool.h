// A model of cudaMallocAsync's pool. The driver's policy is not public, so the model gives an upper
// and a lower bound and never a single number.
//
// The upper bound (the default) never remaps pages. It uses best fit with merging, in segments of
// multiples of 32 MiB, and never merges across segments. The lower bound ("remap:True") maps
// perfectly: the pool reserves its live bytes, rounded up to a multiple of 32 MiB. Both round to
// 512 bytes and reuse memory on any stream immediately. Both keep free memory until empty_cache or
// a refusal, because PyTorch and RMM configure the driver that way. A request that fits in the
// upper bound also fits in the lower bound, with at most the same memory. Not thread-safe.
#pragma once

#include "analyzer/pools/others/segment_pool.h"
#include "analyzer/support/copied_members.h"
#include "analyzer/support/result.h"

namespace fragtrace::analyzer {

Result<std::unique_ptr<Pool>> make_cuda_async_pool(std::string_view config,
                                                   std::unique_ptr<Device> device);

class CudaAsyncPool final : public SegmentPool {
  public:
    CudaAsyncPool(std::string config, std::unique_ptr<Device> device)
        : SegmentPool(std::move(config), std::move(device)) {}

    [[nodiscard]] std::string_view name() const override { return "cuda-async"; }

    AllocateResult allocate(const Request& request) override;
    void empty_cache() override;
    [[nodiscard]] std::uint64_t largest_free_bytes(const Request& request) const override;
    [[nodiscard]] std::uint64_t releasable_bytes() const override;
    [[nodiscard]] std::uint64_t rounded_bytes(std::uint64_t requested_bytes) const override;
    // Supports kReleaseFree.
    bool relax(Relaxation relaxation) override;

    [[nodiscard]] std::unique_ptr<Pool> clone() const override {
        return std::make_unique<CudaAsyncPool>(*this);
    }

  private:
    void freed(BlockIndex index) override;
    void forget() override;

    FreeBlocks free_;
};

// The lower bound. Each block is shown as a segment with its own address. Reserved memory beyond
// the blocks is shown as one more segment.
class RemappingCudaAsyncPool final : public Pool {
  public:
    RemappingCudaAsyncPool(std::string config, std::unique_ptr<Device> device);

    [[nodiscard]] std::string_view name() const override { return "cuda-async"; }

    [[nodiscard]] std::string config() const override { return config_; }

    AllocateResult allocate(const Request& request) override;
    bool release(BlockId block, const std::vector<PendingOn>& pending) override;

    void empty_cache() override;

    bool adopt(const HeapSnapshot& heap) override;

    [[nodiscard]] const PoolStatistics& statistics() const override { return statistics_; }

    [[nodiscard]] std::optional<Placement> find(BlockId block) const override {
        return blocks_->find(block);
    }

    [[nodiscard]] HeapSnapshot snapshot() const override;
    [[nodiscard]] std::uint64_t largest_free_bytes(const Request& request) const override;
    [[nodiscard]] std::uint64_t releasable_bytes() const override;

    [[nodiscard]] std::uint64_t rounded_bytes(std::uint64_t requested_bytes) const override {
        return blocks_->rounded_bytes(requested_bytes);
    }

    std::vector<DriverCall> take_driver_calls() override;

    [[nodiscard]] Device& device() override { return *device_; }

    [[nodiscard]] std::unique_ptr<Pool> clone() const override {
        return std::make_unique<RemappingCudaAsyncPool>(*this);
    }

  private:
    bool reserve(std::uint64_t size_bytes);
    void trim_to(std::uint64_t size_bytes);
    void take_sums();

    std::string config_;
    ClonePtr<Device> device_;
    ClonePtr<Pool> blocks_;  // the blocks, on a device with unlimited memory
    PoolStatistics statistics_;
    NotCopied<std::vector<DriverCall>> driver_calls_;
};

}  // namespace fragtrace::analyzer
