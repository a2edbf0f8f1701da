#include "analyzer/pools/rmm_pool.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kQuantumBytes = 256;
constexpr std::uint32_t kNoList = 0xffffffffu;  // while a list is merged into another

}  // namespace

Result<std::unique_ptr<Pool>> RmmPool::make(std::string_view config,
                                            std::unique_ptr<Device> device,
                                            std::vector<std::uint64_t> stream_handles) {
    auto pool = std::unique_ptr<RmmPool>(new RmmPool(std::string(config), std::move(device)));
    const Status read = read_pool_settings(
        "rmm-pool",
        config,
        {{"initial_pool_size", &pool->initial_}, {"maximum_pool_size", &pool->maximum_bytes_}});
    if (!read) {
        return read.error();
    }
    if (pool->initial_.bytes % kQuantumBytes != 0 || pool->maximum_bytes_ % kQuantumBytes != 0) {
        return Error{ErrorCode::kUsage, "pool 'rmm-pool': sizes must be multiples of 256"};
    }
    if (pool->maximum_bytes_ != 0 && pool->initial_.bytes > pool->maximum_bytes_) {
        return Error{ErrorCode::kUsage,
                     "pool 'rmm-pool': initial_pool_size is above maximum_pool_size"};
    }
    pool->stream_handles_ = std::move(stream_handles);
    return std::unique_ptr<Pool>(std::move(pool));
}

std::uint64_t RmmPool::rounded_bytes(std::uint64_t requested_bytes) const {
    return round_up(requested_bytes, kQuantumBytes);
}

std::uint32_t RmmPool::list_of(StreamId stream) const {
    return stream < stream_handles_.size() && stream_handles_[stream] == 0 ? 0 : stream + 1U;
}

// The initial pool belongs to the default stream's list.
bool RmmPool::begin(StreamId stream) {
    if (begun_) {
        return true;
    }
    std::uint64_t bytes = initial_.of(device().free_bytes()) / kQuantumBytes * kQuantumBytes;
    if (maximum_bytes_ != 0) {
        bytes = std::min(bytes, maximum_bytes_);
    }
    if (bytes != 0) {
        const BlockIndex whole = add_segment(bytes, stream);
        if (whole == kNoBlock) {
            return false;
        }
        block(whole).list = 0;
        lists_[0].insert(whole, block(whole));
    }
    begun_ = true;
    return true;
}

AllocateResult RmmPool::allocate(const Request& request) {
    const std::uint64_t size_bytes = rounded_bytes(request.requested_bytes);
    const bool first = !begun_;
    if (size_bytes < request.requested_bytes || !begin(request.stream)) {
        return out_of_memory();
    }
    const std::uint32_t own = list_of(request.stream);
    Outcome outcome = first ? Outcome::kGrow : Outcome::kHit;
    BlockIndex index = lists_[own].at_least(size_bytes);
    if (index == kNoBlock) {
        index = find_in_other_list(own, size_bytes);
    }
    if (index == kNoBlock) {
        index = merge_other_lists(own, size_bytes);
    }
    if (index == kNoBlock) {
        outcome = Outcome::kGrow;
        index = grow(own, size_bytes, request.stream);
    }
    if (index == kNoBlock) {
        return out_of_memory();
    }
    FreeBlocks& list = lists_[block(index).list];
    list.erase(index);
    if (block(index).size_bytes != size_bytes) {
        const BlockIndex rest = split(index, size_bytes);  // stays in the list that it was in
        list.insert(rest, block(rest));
    }
    return hand_out(index, request, outcome);
}

BlockIndex RmmPool::find_in_other_list(std::uint32_t own, std::uint64_t size_bytes) {
    for (const auto& [number, list] : lists_) {
        const BlockIndex found = number == own ? kNoBlock : list.at_least(size_bytes);
        if (found != kNoBlock) {
            return found;
        }
    }
    return kNoBlock;
}

BlockIndex RmmPool::merge_other_lists(std::uint32_t own, std::uint64_t size_bytes) {
    for (auto other = lists_.begin(); other != lists_.end();) {
        if (other->first == own) {
            ++other;
            continue;
        }
        // Filed one by one: each may join neighbours that came before.
        const std::vector<BlockIndex> blocks = other->second.all();
        other = lists_.erase(other);
        for (const BlockIndex index : blocks) {
            block(index).list = kNoList;
        }
        for (const BlockIndex index : blocks) {
            block(index).list = own;
            file(index, &lists_[own]);
        }
        const BlockIndex found = lists_[own].at_least(size_bytes);
        if (found != kNoBlock) {
            return found;
        }
    }
    return kNoBlock;
}

BlockIndex RmmPool::grow(std::uint32_t own, std::uint64_t size_bytes, StreamId stream) {
    std::uint64_t bytes = std::max(size_bytes, reserved_bytes());
    if (maximum_bytes_ != 0) {
        const std::uint64_t left = maximum_bytes_ - std::min(maximum_bytes_, reserved_bytes());
        if (size_bytes > left) {
            return kNoBlock;
        }
        bytes = round_up(std::max(size_bytes, left / 2), kQuantumBytes);
    }
    BlockIndex added = add_segment(bytes, stream);
    while (added == kNoBlock && bytes > size_bytes) {
        bytes = std::max(size_bytes, round_up(bytes / 2, kQuantumBytes));
        added = add_segment(bytes, stream);
    }
    if (added != kNoBlock) {
        block(added).list = own;
        lists_[own].insert(added, block(added));
    }
    return added;
}

void RmmPool::freed(BlockIndex index) {
    const std::uint32_t list = list_of(block(index).stream);
    block(index).list = list;
    file(index, &lists_[list]);
}

void RmmPool::forget() {
    lists_.clear();
    begun_ = false;
}

// Of all lists: a stream takes from the others what its own does not have.
std::uint64_t RmmPool::largest_free_bytes(const Request&) const {
    std::uint64_t largest = 0;
    for (const auto& [number, list] : lists_) {
        largest = std::max(largest, size_of(list.largest()));
    }
    return largest;
}

bool RmmPool::relax(Relaxation relaxation) {
    if (relaxation != Relaxation::kNoLimit) {
        return false;
    }
    maximum_bytes_ = 0;
    return true;
}

}  // namespace fragtrace::analyzer
