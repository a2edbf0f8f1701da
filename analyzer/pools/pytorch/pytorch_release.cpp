// Frees that wait for other streams, and the ways in which memory returns to the driver.
#include "analyzer/pools/pytorch/pytorch_blocks.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fragtrace::analyzer {

void PytorchPool::wait_for(BlockIndex block, const std::vector<PendingOn>& pending) {
    for (const PendingOn& on : pending) {
        PendingEvent& event = events_[on.id];
        ++event.waiting;
        ++blocks_[block].event_count;
        events_completed_ |= event.complete;
        waiting_[on.stream].push_back({on.id, block});
    }
}

void PytorchPool::complete(PendingId id) {
    const auto found = events_.find(id);
    if (found != events_.end()) {
        found->second.complete = true;
        events_completed_ = true;
        return;
    }
    if (!parked_.empty()) {
        events_[id].complete = true;  // a block freed during a capture may need it later
    }
}

void PytorchPool::finish_event(const Waiting& waiting) {
    const auto event = events_.find(waiting.id);
    if (--event->second.waiting == 0) {
        events_.erase(event);
    }
    if (--blocks_[waiting.block].event_count == 0) {
        table_.erase(blocks_[waiting.block].id);
        free_block(waiting.block);
    }
}

// Processes each stream's queue up to its first incomplete event.
void PytorchPool::process_events() {
    wait_for_parked();
    events_completed_ = false;
    for (auto queue = waiting_.begin(); queue != waiting_.end();) {
        while (!queue->second.empty() && events_.at(queue->second.front().id).complete) {
            const Waiting waiting = queue->second.front();
            queue->second.pop_front();
            finish_event(waiting);
        }
        queue = queue->second.empty() ? waiting_.erase(queue) : std::next(queue);
    }
}

void PytorchPool::synchronize() {
    wait_for_parked();
    ++detail_.num_sync_all_streams;
    for (const auto& [stream, queue] : waiting_) {
        for (const Waiting& waiting : queue) {
            finish_event(waiting);
        }
    }
    waiting_.clear();
    events_completed_ = false;
}

// Synchronizes only for blocks of one private pool. Other blocks in the queues continue to wait.
void PytorchPool::synchronize(std::uint32_t pair_index) {
    wait_for_parked();
    ++detail_.num_sync_all_streams;
    for (auto& [stream, queue] : waiting_) {
        std::deque<Waiting> others;
        for (const Waiting& waiting : queue) {
            if (blocks_[waiting.block].pool / 2 == pair_index) {
                finish_event(waiting);
            } else {
                others.push_back(waiting);
            }
        }
        queue = std::move(others);
    }
    std::erase_if(waiting_, [](const auto& queue) { return queue.second.empty(); });
}

void PytorchPool::set_capturing(bool capturing) {
    capturing_ = capturing;
}

// Adds frees of a finished capture to the queues. PyTorch does this at its next check, so they come
// after later frees.
void PytorchPool::wait_for_parked() {
    if (parked_.empty()) {
        return;
    }
    for (const Parked& parked : std::exchange(parked_, {})) {
        wait_for(table_.find(parked.block), parked.pending);
    }
    std::erase_if(events_, [](const auto& event) { return event.second.waiting == 0; });
}

// Free blocks in the order of PyTorch's free set: by raw stream handle, then by size and tie-break.
std::vector<BlockIndex> PytorchPool::free_blocks(PoolIndex pool) {
    std::vector<SlotIndex> slots = pools_[pool].free.in_use(sets_);
    if (slots.size() > 1) {
        const auto handle = [this](SlotIndex slot) -> std::uint64_t {
            const StreamId stream = stream_of_slot_[slot];
            return stream < stream_handles_.size() ? stream_handles_[stream] : stream;
        };
        std::sort(slots.begin(), slots.end(), [&](SlotIndex a, SlotIndex b) {
            return handle(a) != handle(b) ? handle(a) < handle(b) : a < b;
        });
    }
    std::vector<BlockIndex> blocks;
    for (const SlotIndex slot : slots) {
        sets_.append_to(pools_[pool].free.find(slot), blocks);
    }
    return blocks;
}

void PytorchPool::collect_garbage() {
    const auto threshold_bytes = static_cast<std::uint64_t>(config_.garbage_collection_threshold *
                                                            static_cast<double>(limit_bytes_));
    if (obtained_bytes_ <= threshold_bytes) {
        return;
    }
    const std::uint64_t target_bytes = obtained_bytes_ - threshold_bytes;
    constexpr PoolIndex kDefaultLarge = 1;
    const std::uint32_t now = pools_[kDefaultLarge].search_count;
    std::vector<BlockIndex> candidates = free_blocks(kDefaultLarge);
    std::erase_if(candidates, [this](BlockIndex block) { return is_split(blocks_[block]); });
    double total_age = 0;
    std::size_t count = candidates.size();
    for (const BlockIndex block : candidates) {
        total_age += now - blocks_[block].age_base;
    }
    std::uint64_t reclaimed_bytes = 0;
    bool freed = true;
    while (reclaimed_bytes < target_bytes && freed && count > 0) {
        freed = false;
        const double old = total_age / static_cast<double>(count);
        std::erase_if(candidates, [&](BlockIndex index) {
            const Block& block = blocks_[index];
            const double age = now - block.age_base;
            if (block.expandable || age < old) {
                return false;
            }
            freed = true;
            reclaimed_bytes += block.size_bytes;
            total_age -= age;
            --count;
            release_segment(index);
            return true;
        });
    }
}

// Works only with a finite max_split_size: releases one or several large free segments to make
// room.
bool PytorchPool::release_available(const Search& search) {
    if (config_.max_split_size_bytes == PytorchConfig::kUnlimited) {
        return false;
    }
    const std::uint64_t wanted_bytes = std::max(search.rounded_bytes, config_.max_split_size_bytes);
    const SetIndex set = pools_[search.pool].free.find(search.slot);
    if (set == kNoSet) {
        return false;
    }
    const BlockIndex enough = sets_.lower_bound(set, FreeKey::make(wanted_bytes, 0, 0));
    // If the program lowered max_split_size, a block of that size can be a part of a segment.
    // PyTorch frees it nevertheless and corrupts its chain. This simulation keeps the block.
    const auto whole = [this](BlockIndex block) {
        return !blocks_[block].expandable && !is_split(blocks_[block]);
    };
    if (enough != kNoBlock && whole(enough)) {
        release_segment(enough);
        return true;
    }
    std::vector<BlockIndex> victims;
    std::uint64_t released_bytes = 0;
    for (BlockIndex at = enough != kNoBlock ? sets_.previous(enough) : sets_.last(set);
         at != kNoBlock && released_bytes < wanted_bytes &&
         blocks_[at].size_bytes >= config_.max_split_size_bytes;
         at = sets_.previous(at)) {
        if (whole(at)) {
            released_bytes += blocks_[at].size_bytes;
            victims.push_back(at);
        }
    }
    for (const BlockIndex block : victims) {
        release_segment(block);
    }
    return released_bytes >= wanted_bytes;
}

void PytorchPool::empty_cache() {
    if (!capturing_) {
        release_cached_after_events();
    }
}

void PytorchPool::release_cached_after_events() {
    synchronize();
    release_cached();
}

void PytorchPool::empty_private_pool(std::uint32_t private_pool) {
    const auto found = find_pair(private_pool);
    if (private_pool != 0 && found && !capturing_ && pairs_[*found].exists &&
        pairs_[*found].options.freeable) {
        synchronize(*found);
        release_pair(*found);
    }
}

void PytorchPool::release_cached() {
    constexpr PoolIndex kSmall = 0;
    constexpr PoolIndex kLarge = 1;
    release_pool(kLarge);
    release_pool(kSmall);
    for (std::uint32_t i = 1; i < pairs_.size(); ++i) {
        release_pair(i);
    }
}

// Releases the cached memory of a private pool without users, and removes the pool once it is
// empty.
void PytorchPool::release_pair(std::uint32_t pair_index) {
    PoolPair& pair = pairs_[pair_index];
    if (!pair.exists || !pair.options.freeable) {
        return;
    }
    release_pool(2 * pair_index);
    release_pool(2 * pair_index + 1);
    statistics_.pool_lost |=
        pair.segments_known && pair.segments == 0 && pair.reserved.current != 0;
    if (pair.reserved.current == 0) {
        pair.exists = false;
        pair.options = {};
    }
}

// PyTorch counts segments only for private pools.
void PytorchPool::count_segment_gone(PoolIndex pool) {
    PoolPair& pair = pairs_[pool / 2];
    if (pair.private_pool == 0) {
        return;
    }
    statistics_.pool_lost |= pair.segments_known && pair.segments == 0;
    pair.segments -= pair.segments != 0 ? 1 : 0;
}

void PytorchPool::release_pool(PoolIndex pool) {
    if (pools_[pool].releasable_bytes == 0) {
        return;
    }
    std::vector<BlockIndex> to_unmap;
    for (const BlockIndex block : free_blocks(pool)) {
        if (blocks_[block].expandable) {
            to_unmap.push_back(block);
        } else if (!is_split(blocks_[block])) {
            release_segment(block);
        }
    }
    for (const BlockIndex block : to_unmap) {
        if (unmap(block) && !is_split(blocks_[block])) {
            sets_.erase(block);
            drop_segment(block);
        }
    }
}

// Releases a free block that is a whole segment with cudaFree.
void PytorchPool::release_segment(BlockIndex index) {
    const Block& block = blocks_[index];
    const std::uint64_t size_bytes = block.size_bytes;
    const PoolIndex pool = block.pool;
    note(PytorchTraceEntry::Action::kSegmentFree, block, size_bytes);
    erase_free(index);
    device_->give_back(size_bytes);
    log(DriverCall::Kind::kSegmentFree, false, size_bytes);
    count_returned(pool, size_bytes);
    count_segment_gone(pool);
    detail_.segment.decrease(size_class(pool), 1);
    if (size_bytes >= config_.max_split_size_bytes) {
        detail_.oversize_segments.decrease(1);
    }
    drop_segment(index);
}

}  // namespace fragtrace::analyzer
