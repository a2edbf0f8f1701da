// The device that a simulated pool allocates from. It models capacity and page granularity, but no
// time.
//
// Not thread-safe: use one per replay.
#pragma once

#include "analyzer/model/event.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <cstdint>
#include <memory>

namespace fragtrace::analyzer {

// Used when the real capacity is unknown (1 PiB): no request runs out of memory.
inline constexpr std::uint64_t kUnlimitedBytes = std::uint64_t{1} << 50;

// The driver, as a simulated pool sees it. Addresses are only names: a pool must not base decisions
// on them (PyTorch 2.13+ does not either).
class Device {
  public:
    virtual ~Device() = default;

    // The card's total memory in bytes, as the driver reports it. Memory fractions refer to it.
    [[nodiscard]] virtual std::uint64_t total_bytes() const = 0;
    // Bytes that can still be allocated.
    [[nodiscard]] virtual std::uint64_t free_bytes() const = 0;
    // cudaMalloc / cuMemCreate of `size_bytes`: false = out of memory.
    virtual bool take(std::uint64_t size_bytes) = 0;

    // Upper bound in bytes on how much more may really be in use than free_bytes() accounts for.
    [[nodiscard]] virtual std::uint64_t unsure_bytes() const { return 0; }

    // Address of the memory of the last take() in the recorded run; 0 = unknown.
    [[nodiscard]] virtual std::uint64_t recorded_address() const { return 0; }

    // cudaFree / cuMemRelease of one earlier take() of the same size. Release each take() on its
    // own: two of 1 MiB are not equivalent to one of 2 MiB, because small requests share pages.
    virtual void give_back(std::uint64_t size_bytes) = 0;

    // Changes the size of one allocation; 0 bytes = it does not exist. Returns false and changes
    // nothing if the device has too little free memory.
    virtual bool resize(std::uint64_t from_bytes, std::uint64_t to_bytes) {
        if (to_bytes < from_bytes) {
            give_back(from_bytes - to_bytes);
        }
        return to_bytes <= from_bytes || take(to_bytes - from_bytes);
    }

    // Releases everything that take() allocated.
    virtual void give_back_all() = 0;

    [[nodiscard]] virtual std::unique_ptr<Device> clone() const = 0;
};

// A card of `total_bytes`, of which the pool can use `capacity_bytes`. The driver allocates memory
// in pages. A request of more than half a page gets whole pages, and smaller requests share pages.
// Their position within a page is not modelled: they count as packed, each rounded up to 512 bytes.
class FixedDevice final : public Device {
  public:
    FixedDevice(std::uint64_t total_bytes, std::uint64_t capacity_bytes, std::uint64_t page_bytes)
        : total_bytes_(total_bytes), capacity_bytes_(capacity_bytes), page_bytes_(page_bytes) {}

    [[nodiscard]] std::uint64_t total_bytes() const override { return total_bytes_; }

    [[nodiscard]] std::uint64_t free_bytes() const override {
        return capacity_bytes_ - used_bytes_;
    }

    // In the worst case each small request occupies a page alone.
    [[nodiscard]] std::uint64_t unsure_bytes() const override {
        return shared_count_ * page_bytes_ - shared_pages(shared_bytes_);
    }

    bool take(std::uint64_t size_bytes) override {
        const std::uint64_t share = shared_part(size_bytes);
        const std::uint64_t pages =
            share == 0 ? round_up(size_bytes, page_bytes_)
                       : shared_pages(shared_bytes_ + share) - shared_pages(shared_bytes_);
        if ((share == 0 && pages < size_bytes) || pages > free_bytes()) {
            enough_bytes_ = ~std::uint64_t{0};
            return false;
        }
        used_bytes_ += pages;
        shared_bytes_ += share;
        shared_count_ += share != 0 ? 1 : 0;
        enough_bytes_ = std::max(enough_bytes_, used_bytes_ + unsure_bytes());
        largest_bytes_ = std::max(largest_bytes_, size_bytes);
        return true;
    }

    void give_back(std::uint64_t size_bytes) override {
        const std::uint64_t share = shared_part(size_bytes);
        used_bytes_ -= share == 0
                           ? round_up(size_bytes, page_bytes_)
                           : shared_pages(shared_bytes_) - shared_pages(shared_bytes_ - share);
        shared_bytes_ -= share;
        shared_count_ -= share != 0 ? 1 : 0;
    }

    bool resize(std::uint64_t from_bytes, std::uint64_t to_bytes) override {
        const FixedDevice before = *this;
        give_back(from_bytes);
        if (!take(to_bytes)) {
            *this = before;
            enough_bytes_ = ~std::uint64_t{0};
            return false;
        }
        return true;
    }

    // The smallest capacity at which all calls so far would have had the same answers, wherever
    // small requests lie within pages. 2^64-1 if a call was refused.
    [[nodiscard]] std::uint64_t enough_bytes() const { return enough_bytes_; }

    // Size in bytes of the largest request that was granted.
    [[nodiscard]] std::uint64_t largest_bytes() const { return largest_bytes_; }

    void give_back_all() override { used_bytes_ = shared_bytes_ = shared_count_ = 0; }

    [[nodiscard]] std::unique_ptr<Device> clone() const override {
        return std::make_unique<FixedDevice>(*this);
    }

  private:
    static constexpr std::uint64_t kAlignmentBytes = 512;

    // Bytes of shared pages that a request uses; 0: it gets pages of its own.
    [[nodiscard]] std::uint64_t shared_part(std::uint64_t size_bytes) const {
        return size_bytes <= page_bytes_ / 2 ? round_up(size_bytes, kAlignmentBytes) : 0;
    }

    [[nodiscard]] std::uint64_t shared_pages(std::uint64_t shared_bytes) const {
        return round_up(shared_bytes, page_bytes_);
    }

    std::uint64_t total_bytes_;
    std::uint64_t capacity_bytes_;
    std::uint64_t page_bytes_;
    std::uint64_t used_bytes_ = 0;    // whole pages
    std::uint64_t shared_bytes_ = 0;  // bytes of small requests
    std::uint64_t shared_count_ = 0;  // number of small requests
    std::uint64_t enough_bytes_ = 0;
    std::uint64_t largest_bytes_ = 0;
};

}  // namespace fragtrace::analyzer
