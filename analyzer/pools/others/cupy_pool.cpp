#include "analyzer/pools/others/cupy_pool.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kCupyQuantumBytes = 512;

}  // namespace

Result<std::unique_ptr<Pool>> CupyPool::make(std::string_view config,
                                             std::unique_ptr<Device> device) {
    auto pool = std::unique_ptr<CupyPool>(new CupyPool(std::string(config), std::move(device)));
    const Status read = read_pool_settings("cupy", config, {{"limit", &pool->limit_}});
    if (!read) {
        return read.error();
    }
    pool->limit_bytes_ = pool->limit_.of(pool->device().total_bytes());
    return std::unique_ptr<Pool>(std::move(pool));
}

std::uint64_t CupyPool::rounded_bytes(std::uint64_t requested_bytes) const {
    return round_up(requested_bytes, kCupyQuantumBytes);
}

FreeBlocks::List CupyPool::arena_of(StreamId stream) {
    const auto [at, created] = arenas_.try_emplace(stream, 0);
    if (created && arenas_.size() > 1) {
        at->second = free_.add_list();  // list 0 exists already
    }
    return at->second;
}

AllocateResult CupyPool::allocate(const Request& request) {
    const std::uint64_t size_bytes = rounded_bytes(request.requested_bytes);
    if (size_bytes < request.requested_bytes) {
        return out_of_memory();
    }
    const FreeBlocks::List arena = arena_of(request.stream);
    BlockIndex index = best_fit(free_, size_bytes, arena);
    if (index != kNoBlock) {
        free_.erase(index);
        if (block(index).size_bytes > size_bytes) {
            const BlockIndex rest = split(index, size_bytes);
            free_.insert(rest, block(rest));
        }
        return hand_out(index, request, Outcome::kHit);
    }
    Outcome outcome = Outcome::kGrow;
    const auto above_limit = [this, size_bytes] {
        return limit_bytes_ != 0 &&
               size_bytes > limit_bytes_ - std::min(limit_bytes_, reserved_bytes());
    };
    if (above_limit()) {
        if (size_bytes > limit_bytes_) {
            return out_of_memory();
        }
        empty_cache();
        outcome = Outcome::kRetryOk;
        if (above_limit()) {
            return out_of_memory();
        }
    }
    index = add_segment(size_bytes, request.stream);
    if (index == kNoBlock) {
        empty_cache();
        index = add_segment(size_bytes, request.stream);
        outcome = Outcome::kRetryOk;
    }
    if (index == kNoBlock) {
        return out_of_memory();
    }
    block(index).list = arena;
    return hand_out(index, request, outcome);
}

void CupyPool::freed(BlockIndex index) {
    file(index, &free_);
}

void CupyPool::forget() {
    free_ = {};
    arenas_.clear();
}

void CupyPool::empty_cache() {
    release_free_segments(&free_);
}

std::uint64_t CupyPool::largest_free_bytes(const Request& request) const {
    const auto arena = arenas_.find(request.stream);
    return arena == arenas_.end() ? 0 : size_of(free_.largest(arena->second));
}

std::uint64_t CupyPool::releasable_bytes() const {
    return free_segment_bytes();
}

bool CupyPool::relax(Relaxation relaxation) {
    switch (relaxation) {
        case Relaxation::kReleaseFree:
            empty_cache();
            return true;
        case Relaxation::kNoLimit:
            limit_bytes_ = 0;
            return true;
        default:
            return false;
    }
}

}  // namespace fragtrace::analyzer
