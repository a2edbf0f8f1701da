#include "analyzer/pools/others/bfc_pool.h"

#include "analyzer/pools/pool_settings.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kQuantumBytes = 256;
constexpr std::uint64_t kFirstRegionBytes = std::uint64_t{2} << 20;
constexpr std::uint64_t kMostWasteBytes = std::uint64_t{128} << 20;
constexpr double kShrink = 0.9;  // after a refusal the next attempt is smaller by this factor

}  // namespace

Result<std::unique_ptr<Pool>> BfcPool::make(std::string_view config,
                                            std::unique_ptr<Device> device) {
    auto pool = std::unique_ptr<BfcPool>(new BfcPool(std::string(config), std::move(device)));
    constexpr double kNotGiven = -1;
    pool->limit_ = kNotGiven;
    const Status read =
        read_pool_settings("bfc",
                           config,
                           {{"preallocate", &pool->preallocate_},
                            {"limit", &pool->limit_},
                            {"garbage_collection", &pool->garbage_collection_},
                            {"fragmentation_fraction", &pool->fragmentation_fraction_}});
    if (!read) {
        return read.error();
    }
    const bool grows = pool->preallocate_ == 0;
    if (pool->limit_ == kNotGiven) {
        pool->limit_ = grows ? 0.75 : pool->preallocate_;
    }
    if (!grows && pool->limit_ != pool->preallocate_) {
        return Error{
            ErrorCode::kUsage,
            "pool 'bfc': a preallocated pool does not grow; give limit with preallocate:0"};
    }
    if (pool->limit_ > 1 || pool->fragmentation_fraction_ > 1) {
        return Error{ErrorCode::kUsage,
                     "pool 'bfc': preallocate, limit and fragmentation_fraction "
                     "are fractions, at most 1"};
    }
    pool->limit_bytes_ = static_cast<std::uint64_t>(
        static_cast<double>(pool->device().total_bytes()) * pool->limit_);
    pool->forget();
    return std::unique_ptr<Pool>(std::move(pool));
}

std::uint64_t BfcPool::rounded_bytes(std::uint64_t requested_bytes) const {
    return round_up(requested_bytes, kQuantumBytes);
}

void BfcPool::forget() {
    free_ = {};
    const std::uint64_t first =
        preallocate_ == 0 ? std::min(limit_bytes_, kFirstRegionBytes) : limit_bytes_;
    next_region_bytes_ = round_up(std::max<std::uint64_t>(first, 1), kQuantumBytes);
}

AllocateResult BfcPool::allocate(const Request& request) {
    const std::uint64_t size_bytes = rounded_bytes(request.requested_bytes);
    if (size_bytes < request.requested_bytes) {
        return out_of_memory();
    }
    Outcome outcome = Outcome::kHit;
    BlockIndex index = best_fit(free_, size_bytes);
    if (index == kNoBlock) {
        outcome = Outcome::kGrow;
        bool extended = extend(size_bytes, request.stream);
        // Release all free regions, but only if the request then fits below the limit.
        if (!extended && garbage_collection_ && releasable_bytes() != 0 &&
            size_bytes <=
                limit_bytes_ - std::min(limit_bytes_, reserved_bytes()) + releasable_bytes()) {
            release_free_segments(&free_);
            extended = extend(size_bytes, request.stream);
            outcome = Outcome::kRetryOk;
        }
        if (!extended) {
            return out_of_memory();
        }
        index = free_.at_least(size_bytes);
    }
    free_.erase(index);
    const std::uint64_t there = block(index).size_bytes;
    const std::uint64_t most_waste =
        fragmentation_fraction_ > 0 ? static_cast<std::uint64_t>(fragmentation_fraction_ *
                                                                 static_cast<double>(limit_bytes_))
                                    : kMostWasteBytes;
    if (there >= 2 * size_bytes || (there > size_bytes && there - size_bytes >= most_waste)) {
        const BlockIndex rest = split(index, size_bytes);
        free_.insert(rest, block(rest));
    }
    return hand_out(index, request, outcome);
}

// Allocates a region from the driver that has room for `size_bytes`.
bool BfcPool::extend(std::uint64_t size_bytes, StreamId stream) {
    const std::uint64_t held = reserved_bytes();
    const std::uint64_t left =
        (limit_bytes_ - std::min(limit_bytes_, held)) / kQuantumBytes * kQuantumBytes;
    if (size_bytes > left) {
        return false;
    }
    bool doubled = false;
    while (size_bytes > next_region_bytes_) {
        next_region_bytes_ *= 2;
        doubled = true;
    }
    std::uint64_t bytes = std::min(next_region_bytes_, left);
    BlockIndex region = add_segment(bytes, stream);
    while (region == kNoBlock) {
        const std::uint64_t less = round_up(
            static_cast<std::uint64_t>(static_cast<double>(bytes) * kShrink), kQuantumBytes);
        bytes = less < bytes ? less : bytes - kQuantumBytes;
        if (bytes < size_bytes) {
            return false;
        }
        region = add_segment(bytes, stream);
    }
    if (!doubled) {
        next_region_bytes_ *= 2;
    }
    free_.insert(region, block(region));
    return true;
}

void BfcPool::freed(BlockIndex index) {
    file(index, &free_);
}

std::uint64_t BfcPool::largest_free_bytes(const Request&) const {
    return size_of(free_.largest());
}

std::uint64_t BfcPool::releasable_bytes() const {
    return free_segment_bytes();
}

bool BfcPool::relax(Relaxation relaxation) {
    switch (relaxation) {
        case Relaxation::kReleaseFree:
            release_free_segments(&free_);
            return true;
        case Relaxation::kNoLimit:
            limit_bytes_ = std::max(limit_bytes_, device().total_bytes());
            return true;
        default:
            return false;
    }
}

}  // namespace fragtrace::analyzer
