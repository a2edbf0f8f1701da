// The device beneath a simulated pool: capacity and page granularity, nothing about time.
//
// Not thread-safe; one per replay.
#pragma once

#include "analyzer/model/event.h"

#include <cstdint>
#include <memory>

namespace fragtrace::analyzer {

// What a simulated pool asks of the driver. Addresses are only names: a pool must not let them
// decide anything (PyTorch 2.13+ does not either).
class Device {
  public:
    virtual ~Device() = default;

    // Bytes the card reports as its total (what fractions refer to).
    [[nodiscard]] virtual std::uint64_t total_bytes() const = 0;
    // Bytes still to be had.
    [[nodiscard]] virtual std::uint64_t free_bytes() const = 0;
    // cudaMalloc / cuMemCreate of `size_bytes`: false = out of memory.
    virtual bool take(std::uint64_t size_bytes) = 0;

    // Where the memory of the last take() lay in the recorded run; 0 = not known.
    [[nodiscard]] virtual std::uint64_t recorded_address() const { return 0; }

    // cudaFree / cuMemRelease.
    virtual void give_back(std::uint64_t size_bytes) = 0;

    [[nodiscard]] virtual std::unique_ptr<Device> clone() const = 0;
};

// A card with `capacity_bytes` left for the pool, out of `total_bytes`. The driver hands out whole
// pages: small requests share pages of 2 MiB, so a sum of small ones is rounded as a whole by the
// pool's own segment sizes; `page_bytes` is what one request is rounded up to.
class FixedDevice final : public Device {
  public:
    FixedDevice(std::uint64_t total_bytes, std::uint64_t capacity_bytes, std::uint64_t page_bytes)
        : total_bytes_(total_bytes), capacity_bytes_(capacity_bytes), page_bytes_(page_bytes) {}

    [[nodiscard]] std::uint64_t total_bytes() const override { return total_bytes_; }

    [[nodiscard]] std::uint64_t free_bytes() const override {
        return capacity_bytes_ - used_bytes_;
    }

    bool take(std::uint64_t size_bytes) override {
        const std::uint64_t pages = round_up(size_bytes);
        if (pages < size_bytes || pages > free_bytes()) {
            return false;
        }
        used_bytes_ += pages;
        return true;
    }

    void give_back(std::uint64_t size_bytes) override { used_bytes_ -= round_up(size_bytes); }

    [[nodiscard]] std::unique_ptr<Device> clone() const override {
        return std::make_unique<FixedDevice>(*this);
    }

  private:
    [[nodiscard]] std::uint64_t round_up(std::uint64_t size_bytes) const {
        return (size_bytes + page_bytes_ - 1) / page_bytes_ * page_bytes_;
    }

    std::uint64_t total_bytes_;
    std::uint64_t capacity_bytes_;
    std::uint64_t page_bytes_;
    std::uint64_t used_bytes_ = 0;
};

}  // namespace fragtrace::analyzer
