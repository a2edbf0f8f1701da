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
                            {"fragmentation_fraction", &pool->fragmentation_fraction_},
                            {"partitioned", &pool->partitioned_}});
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
    if (grows && pool->partitioned_) {
        return Error{ErrorCode::kUsage,
                     "pool 'bfc': a partitioned pool does not grow; do not give preallocate:0"};
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
    if (partitioned_) {
        free_.add_list(FreeBlocks::Ties::kHighestFirst);
        free_.add_list();
    }
    const std::uint64_t first =
        preallocate_ == 0 ? std::min(limit_bytes_, kFirstRegionBytes) : limit_bytes_;
    next_region_bytes_ = round_up(std::max<std::uint64_t>(first, 1), kQuantumBytes);
}

// In a partitioned pool, the own free blocks of an end come before the gap.
BlockIndex BfcPool::find_free(std::uint64_t size_bytes, FreeBlocks::List list) {
    const BlockIndex own = best_fit(free_, size_bytes, list);
    return own == kNoBlock && partitioned_ ? free_.at_least(size_bytes, kGap) : own;
}

bool BfcPool::should_split(std::uint64_t block_bytes, std::uint64_t size_bytes) const {
    const std::uint64_t most_waste =
        fragmentation_fraction_ > 0 ? static_cast<std::uint64_t>(fragmentation_fraction_ *
                                                                 static_cast<double>(limit_bytes_))
                                    : kMostWasteBytes;
    return block_bytes / 2 >= size_bytes ||
           (block_bytes > size_bytes && block_bytes - size_bytes >= most_waste);
}

// The rules of the ends are those that JAX 0.12.0 sets: the lower end (memory for collectives)
// always splits, the upper end (all other memory) follows BFC's rule, also in the gap.
BlockIndex BfcPool::carve(BlockIndex index, std::uint64_t size_bytes, FreeBlocks::List list) {
    const std::uint64_t there = block(index).size_bytes;
    const bool exactly = partitioned_ && list == kLower;
    if (exactly ? there > size_bytes : should_split(there, size_bytes)) {
        const bool takes_end = list == kUpper;
        const BlockIndex second = split(index, takes_end ? there - size_bytes : size_bytes);
        const BlockIndex rest = takes_end ? index : second;
        index = takes_end ? second : index;
        free_.insert(rest, block(rest));
    }
    block(index).list = list;
    return index;
}

AllocateResult BfcPool::allocate(const Request& request) {
    const std::uint64_t size_bytes = rounded_bytes(request.requested_bytes);
    if (size_bytes < request.requested_bytes) {
        return out_of_memory();
    }
    Outcome outcome = Outcome::kHit;
    const FreeBlocks::List list = list_of(request);
    BlockIndex index = find_free(size_bytes, list);
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
        index = free_.at_least(size_bytes, partitioned_ ? kGap : kLower);
    }
    free_.erase(index);
    return hand_out(carve(index, size_bytes, list), request, outcome);
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
    block(region).list = partitioned_ ? kGap : kLower;
    free_.insert(region, block(region));
    return true;
}

void BfcPool::freed(BlockIndex index) {
    if (partitioned_) {
        freed_in_partitions(index);
    } else {
        file(index, &free_);
    }
}

// Free neighbours always merge. What belongs to different partitions becomes a part of the gap.
void BfcPool::freed_in_partitions(BlockIndex index) {
    const FreeBlocks::List end = block(index).list;
    const BlockIndex towards_gap = end == kLower ? block(index).next : block(index).previous;
    if (towards_gap == kNoBlock || block(towards_gap).list != end) {
        block(index).list = kGap;
    }
    const auto joins = [this](BlockIndex neighbour) {
        return neighbour != kNoBlock && block(neighbour).free;
    };
    const auto merge = [this](BlockIndex low) {
        const FreeBlocks::List other = block(block(low).next).list;
        block(low).list = block(low).list == other ? other : kGap;
        join_with_next(low);
    };
    if (const BlockIndex next = block(index).next; joins(next)) {
        free_.erase(next);
        merge(index);
    }
    if (const BlockIndex previous = block(index).previous; joins(previous)) {
        free_.erase(previous);
        merge(previous);
        index = previous;
    }
    free_.insert(index, block(index));
}

std::uint64_t BfcPool::largest_free_bytes(const Request& request) const {
    const std::uint64_t own = size_of(free_.largest(list_of(request)));
    return partitioned_ ? std::max(own, size_of(free_.largest(kGap))) : own;
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
