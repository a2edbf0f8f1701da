#include "analyzer/pools/others/best_fit_pool.h"

#include "analyzer/pools/pool_settings.h"

#include <algorithm>

namespace fragtrace::analyzer {

Result<std::unique_ptr<Pool>> BestFitPool::make(std::string_view config,
                                                std::unique_ptr<Device> device) {
    auto pool =
        std::unique_ptr<BestFitPool>(new BestFitPool(std::string(config), std::move(device)));
    const Status read =
        read_pool_settings("best-fit",
                           config,
                           {{"round_to", &pool->rounding_bytes_}, {"grow_by", &pool->page_bytes_}});
    if (!read) {
        return read.error();
    }
    if (pool->rounding_bytes_ == 0 || pool->page_bytes_ == 0 ||
        pool->page_bytes_ % pool->rounding_bytes_ != 0) {
        return Error{ErrorCode::kUsage,
                     "pool 'best-fit': grow_by must be a multiple of round_to, and neither 0"};
    }
    return std::unique_ptr<Pool>(std::move(pool));
}

std::uint64_t BestFitPool::rounded_bytes(std::uint64_t requested_bytes) const {
    return round_up(requested_bytes, rounding_bytes_);
}

AllocateResult BestFitPool::allocate(const Request& request) {
    const std::uint64_t size_bytes = rounded_bytes(request.requested_bytes);
    if (size_bytes < request.requested_bytes) {
        return out_of_memory();
    }
    BlockIndex index = holes_.at_least(size_bytes);
    Outcome outcome = Outcome::kHit;
    if (index != kNoBlock) {
        holes_.erase(index);
        if (block(index).size_bytes != size_bytes) {
            const BlockIndex rest = split(index, size_bytes);
            holes_.insert(rest, block(rest));
        }
        return hand_out(index, request, outcome);
    }
    if (size_of(end_) < size_bytes) {
        if (!grow(size_bytes, request.stream)) {
            return out_of_memory();
        }
        outcome = Outcome::kGrow;
    }
    index = end_;
    end_ = block(index).size_bytes == size_bytes ? kNoBlock : split(index, size_bytes);
    return hand_out(index, request, outcome);
}

// Grows the heap until the free block at its end has `size_bytes`.
bool BestFitPool::grow(std::uint64_t size_bytes, StreamId stream) {
    const std::uint64_t there = size_of(end_);
    const std::uint64_t missing = round_up(size_bytes - there, page_bytes_);
    const BlockIndex added = missing < size_bytes - there ? kNoBlock
                             : segment_count() == 0       ? add_segment(missing, stream)
                                                          : extend_segment(0, missing);
    if (added == kNoBlock) {
        return false;
    }
    if (end_ == kNoBlock) {
        end_ = added;
    } else {
        join_with_next(end_);
    }
    return true;
}

void BestFitPool::freed(BlockIndex index) {
    const BlockIndex next = block(index).next;
    if (next != kNoBlock && block(next).free) {
        if (next == end_) {
            end_ = kNoBlock;
        } else {
            holes_.erase(next);
        }
        join_with_next(index);
    }
    const BlockIndex previous = block(index).previous;
    if (previous != kNoBlock && block(previous).free) {
        holes_.erase(previous);
        join_with_next(previous);
        index = previous;
    }
    if (block(index).next == kNoBlock) {
        end_ = index;
    } else {
        holes_.insert(index, block(index));
    }
}

void BestFitPool::forget() {
    holes_ = {};
    end_ = kNoBlock;
}

std::uint64_t BestFitPool::largest_free_bytes(const Request&) const {
    return std::max(size_of(holes_.largest()), size_of(end_));
}

}  // namespace fragtrace::analyzer
