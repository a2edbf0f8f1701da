// The device beneath a simulated pool: capacity and page granularity, nothing about time.
//
// Not thread-safe; one per replay.
#pragma once

#include "analyzer/model/event.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <cstdint>
#include <memory>

namespace fragtrace::analyzer {

// The capacity that stands for an unknown one: nothing runs out.
inline constexpr std::uint64_t kUnlimitedBytes = std::uint64_t{1} << 50;

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

    // At most so much more may be taken than is counted.
    [[nodiscard]] virtual std::uint64_t unsure_bytes() const { return 0; }

    // Where the memory of the last take() lay in the recorded run; 0 = not known.
    [[nodiscard]] virtual std::uint64_t recorded_address() const { return 0; }

    // cudaFree / cuMemRelease of what one take() was given: two of 1 MiB are not one of 2 MiB.
    virtual void give_back(std::uint64_t size_bytes) = 0;

    // One allocation grows or shrinks, 0 = is not there. False: there is not so much, and it stays
    // what it was.
    virtual bool resize(std::uint64_t from_bytes, std::uint64_t to_bytes) {
        if (to_bytes < from_bytes) {
            give_back(from_bytes - to_bytes);
        }
        return to_bytes <= from_bytes || take(to_bytes - from_bytes);
    }

    // All that was taken.
    virtual void give_back_all() = 0;

    [[nodiscard]] virtual std::unique_ptr<Device> clone() const = 0;
};

// A card with `capacity_bytes` left for the pool, out of `total_bytes`. The driver obtains memory
// in pages: a request of more than half a page takes whole ones, smaller ones share pages. Where in
// a page they lie is not modelled: they count as packed, rounded up to 512 bytes each.
class FixedDevice final : public Device {
  public:
    FixedDevice(std::uint64_t total_bytes, std::uint64_t capacity_bytes, std::uint64_t page_bytes)
        : total_bytes_(total_bytes), capacity_bytes_(capacity_bytes), page_bytes_(page_bytes) {}

    [[nodiscard]] std::uint64_t total_bytes() const override { return total_bytes_; }

    [[nodiscard]] std::uint64_t free_bytes() const override {
        return capacity_bytes_ - used_bytes_;
    }

    // At worst each small request lies in a page of its own.
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

    // The capacity from which on all calls so far have the same answers, wherever small requests
    // lie; the largest number once one was refused.
    [[nodiscard]] std::uint64_t enough_bytes() const { return enough_bytes_; }

    // The largest request that was granted.
    [[nodiscard]] std::uint64_t largest_bytes() const { return largest_bytes_; }

    void give_back_all() override { used_bytes_ = shared_bytes_ = shared_count_ = 0; }

    [[nodiscard]] std::unique_ptr<Device> clone() const override {
        return std::make_unique<FixedDevice>(*this);
    }

  private:
    static constexpr std::uint64_t kAlignmentBytes = 512;

    // What a request takes of shared pages; 0: it takes pages of its own.
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
    std::uint64_t shared_bytes_ = 0;  // of small requests
    std::uint64_t shared_count_ = 0;  // likewise
    std::uint64_t enough_bytes_ = 0;
    std::uint64_t largest_bytes_ = 0;
};

}  // namespace fragtrace::analyzer
