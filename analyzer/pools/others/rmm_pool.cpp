#include "analyzer/pools/others/rmm_pool.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kRmmQuantumBytes = 256;
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
    if (pool->initial_.bytes % kRmmQuantumBytes != 0 ||
        pool->maximum_bytes_ % kRmmQuantumBytes != 0) {
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
    return round_up(requested_bytes, kRmmQuantumBytes);
}

std::uint32_t RmmPool::number_of(StreamId stream) const {
    return stream < stream_handles_.size() && stream_handles_[stream] == 0 ? 0 : stream + 1U;
}

void RmmPool::ensure_list(std::uint32_t number) {
    while (lists_.size() <= number) {
        numbers_.push_back(static_cast<std::uint32_t>(lists_.size()));
        lists_.push_back(lists_.empty() ? 0 : free_.add_list());
    }
}

// Updates largest_ after a list has changed.
void RmmPool::note_largest(std::uint32_t number) {
    largest_.set(number, size_of(free_.largest(lists_[number])));
}

// Allocates the initial pool, which belongs to the default stream's list.
bool RmmPool::begin(StreamId stream) {
    if (begun_) {
        return true;
    }
    std::uint64_t bytes = initial_.of(device().free_bytes()) / kRmmQuantumBytes * kRmmQuantumBytes;
    if (maximum_bytes_ != 0) {
        bytes = std::min(bytes, maximum_bytes_);
    }
    ensure_list(0);
    if (bytes != 0) {
        const BlockIndex whole = add_segment(bytes, stream);
        if (whole == kNoBlock) {
            return false;
        }
        block(whole).list = lists_[0];
        free_.insert(whole, block(whole));
        note_largest(0);
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
    const std::uint32_t own = number_of(request.stream);
    ensure_list(own);
    Outcome outcome = first ? Outcome::kGrow : Outcome::kHit;
    BlockIndex index = best_fit(free_, size_bytes, lists_[own]);
    if (index == kNoBlock) {
        index = find_in_other_list(size_bytes);
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
    const std::uint32_t from = numbers_[block(index).list];
    free_.erase(index);
    if (block(index).size_bytes != size_bytes) {
        const BlockIndex rest = split(index, size_bytes);  // stays in its list
        free_.insert(rest, block(rest));
    }
    note_largest(from);
    return hand_out(index, request, outcome);
}

// Searches all lists. The stream's own list has no such block, so only others can be found.
BlockIndex RmmPool::find_in_other_list(std::uint64_t size_bytes) const {
    const std::uint32_t number = largest_.first_with(size_bytes);
    return number == LargestByList::kNone ? kNoBlock : free_.at_least(size_bytes, lists_[number]);
}

BlockIndex RmmPool::merge_other_lists(std::uint32_t own, std::uint64_t size_bytes) {
    for (std::uint32_t other = largest_.first_with(1); other != LargestByList::kNone;
         other = largest_.first_with(1, other + 1)) {
        if (other == own) {
            continue;
        }
        // Move the shorter list, so that streams that take turns do not make merging slow.
        if (free_.size(lists_[other]) > free_.size(lists_[own])) {
            std::swap(lists_[other], lists_[own]);
            std::swap(numbers_[lists_[other]], numbers_[lists_[own]]);
        }
        // Insert one by one: each block may merge with neighbours inserted before it.
        const std::vector<BlockIndex> blocks = free_.all(lists_[other]);
        for (const BlockIndex index : blocks) {
            free_.erase(index);
            block(index).list = kNoList;
        }
        for (const BlockIndex index : blocks) {
            block(index).list = lists_[own];
            file(index, &free_);
        }
        note_largest(other);
        note_largest(own);
        const BlockIndex found = free_.at_least(size_bytes, lists_[own]);
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
        bytes = round_up(std::max(size_bytes, left / 2), kRmmQuantumBytes);
    }
    BlockIndex added = add_segment(bytes, stream);
    while (added == kNoBlock && bytes > size_bytes) {
        bytes = std::max(size_bytes, round_up(bytes / 2, kRmmQuantumBytes));
        added = add_segment(bytes, stream);
    }
    if (added != kNoBlock) {
        block(added).list = lists_[own];
        free_.insert(added, block(added));
    }
    return added;
}

void RmmPool::freed(BlockIndex index) {
    const std::uint32_t number = number_of(block(index).stream);
    block(index).list = lists_[number];
    file(index, &free_);
    note_largest(number);
}

void RmmPool::forget() {
    free_ = {};
    lists_.clear();
    numbers_.clear();
    largest_.clear();
    begun_ = false;
}

// Searches all lists, because a stream may use other streams' lists.
std::uint64_t RmmPool::largest_free_bytes(const Request&) const {
    return largest_.largest();
}

bool RmmPool::relax(Relaxation relaxation) {
    if (relaxation != Relaxation::kNoLimit) {
        return false;
    }
    maximum_bytes_ = 0;
    return true;
}

// ---- the largest of each list -------------------------------------------------------------------

void LargestByList::set(std::uint32_t list, std::uint64_t size_bytes) {
    std::size_t room = tree_.size() / 2;
    if (list >= room) {
        const std::size_t more = std::bit_ceil(std::size_t{list} + 1);
        std::vector<std::uint64_t> grown(2 * more, 0);
        std::copy(tree_.begin() + static_cast<std::ptrdiff_t>(room),
                  tree_.end(),
                  grown.begin() + static_cast<std::ptrdiff_t>(more));
        for (std::size_t node = more - 1; node > 0; --node) {
            grown[node] = std::max(grown[2 * node], grown[2 * node + 1]);
        }
        tree_ = std::move(grown);
        room = more;
    }
    tree_[room + list] = size_bytes;
    for (std::size_t node = (room + list) / 2; node > 0; node /= 2) {
        tree_[node] = std::max(tree_[2 * node], tree_[2 * node + 1]);
    }
}

std::uint32_t LargestByList::first_with(std::uint64_t size_bytes, std::uint32_t from) const {
    const std::size_t room = tree_.size() / 2;
    if (from >= room) {
        return kNone;
    }
    std::size_t node = room + from;
    while (tree_[node] < size_bytes) {
        while (node % 2 == 1) {  // a right child has no sibling further to the right
            node /= 2;
        }
        if (node == 0) {
            return kNone;
        }
        ++node;
    }
    while (node < room) {
        node = tree_[2 * node] >= size_bytes ? 2 * node : 2 * node + 1;
    }
    return static_cast<std::uint32_t>(node - room);
}

}  // namespace fragtrace::analyzer
