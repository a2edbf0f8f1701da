// The driver of a replay of the recorded settings: it answers as the recorded one did. Not
// thread-safe.
#pragma once

#include "analyzer/pools/device.h"
#include "analyzer/replay/script.h"

#include <cstdint>
#include <memory>
#include <span>

namespace fragtrace::analyzer {

// Grants what the recorded driver granted. It refuses a request where the recording has a refusal
// of the same size, in the same step, and after at least as many granted requests. It grants
// everything else.
class RecordedDevice final : public Device {
  public:
    RecordedDevice(std::uint64_t total_bytes, std::uint64_t capacity_bytes)
        : total_bytes_(total_bytes), capacity_bytes_(capacity_bytes) {}

    [[nodiscard]] std::uint64_t total_bytes() const override { return total_bytes_; }

    [[nodiscard]] std::uint64_t free_bytes() const override {
        return capacity_bytes_ > used_bytes_ ? capacity_bytes_ - used_bytes_ : 0;
    }

    bool take(std::uint64_t size_bytes) override;

    void give_back(std::uint64_t size_bytes) override { used_bytes_ -= size_bytes; }

    void give_back_all() override { used_bytes_ = 0; }

    [[nodiscard]] std::unique_ptr<Device> clone() const override {
        return std::make_unique<RecordedDevice>(*this);
    }

    // Call before each step, with the refusals recorded in it and the segments allocated in it.
    void expect(std::span<const RefusedTake> refusals, std::span<const ObtainedSegment> obtained) {
        refusals_ = refusals;
        granted_ = 0;
        obtained_ = obtained;
        address_ = 0;
    }

    [[nodiscard]] std::uint64_t recorded_address() const override { return address_; }

    [[nodiscard]] std::uint64_t capacity_bytes() const { return capacity_bytes_; }

    void set_capacity(std::uint64_t bytes) { capacity_bytes_ = bytes; }

    // From here on the capacity decides. Verdicts use it for requests that were not recorded.
    void decide_by_capacity() { by_capacity_ = true; }

  private:
    std::uint64_t total_bytes_;
    std::uint64_t capacity_bytes_;
    std::uint64_t used_bytes_ = 0;
    std::span<const RefusedTake> refusals_;  // not yet used in this step
    std::uint32_t granted_ = 0;              // grants in this step
    std::span<const ObtainedSegment> obtained_;
    std::uint64_t address_ = 0;
    bool by_capacity_ = false;
};

}  // namespace fragtrace::analyzer
