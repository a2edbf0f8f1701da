// No pool: every request is one driver allocation, and every release frees it. Cross-stream events
// are ignored, because cudaFree waits for the device. Not thread-safe.
#pragma once

#include "analyzer/pools/pool.h"
#include "analyzer/support/copied_members.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace fragtrace::analyzer {

class NonePool final : public Pool {
  public:
    explicit NonePool(std::unique_ptr<Device> device) : device_(std::move(device)) {}

    [[nodiscard]] std::string_view name() const override { return "none"; }

    [[nodiscard]] std::string config() const override { return {}; }

    AllocateResult allocate(const Request& request) override;
    bool release(BlockId block, const std::vector<PendingOn>& pending) override;

    bool adopt(const HeapSnapshot& heap) override;

    [[nodiscard]] const PoolStatistics& statistics() const override { return statistics_; }

    [[nodiscard]] std::optional<Placement> find(BlockId block) const override;
    [[nodiscard]] HeapSnapshot snapshot() const override;

    [[nodiscard]] bool caches() const override { return false; }

    [[nodiscard]] std::uint64_t rounded_bytes(std::uint64_t requested_bytes) const override;
    std::vector<DriverCall> take_driver_calls() override;

    [[nodiscard]] Device& device() override { return *device_; }

    [[nodiscard]] std::unique_ptr<Pool> clone() const override {
        return std::make_unique<NonePool>(*this);
    }

  private:
    struct Held {
        std::uint64_t address = 0;
        std::uint64_t requested_bytes = 0;
        std::uint64_t size_bytes = 0;
        std::uint32_t segment = 0;
        StreamId stream = 0;
    };

    ClonePtr<Device> device_;
    std::unordered_map<BlockId, Held> held_;
    std::uint32_t segments_ = 0;
    std::uint64_t next_address_ = std::uint64_t{7} << 32;
    PoolStatistics statistics_;
    NotCopied<std::vector<DriverCall>> driver_calls_;
};

}  // namespace fragtrace::analyzer
