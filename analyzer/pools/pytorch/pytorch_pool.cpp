#include "analyzer/pools/pytorch/pytorch_blocks.h"
#include "analyzer/pools/pytorch/pytorch_sizes.h"

#include <utility>

namespace fragtrace::analyzer {

PytorchPool::PytorchPool(PytorchConfig config,
                         std::unique_ptr<Device> device,
                         std::vector<std::uint64_t> stream_handles,
                         const PytorchRules& rules)
    : config_(config),
      rules_(rules),
      device_(std::move(device)),
      pairs_(1),
      pools_(2),
      stream_handles_(std::move(stream_handles)) {
    pairs_[0].exists = true;
    pairs_[0].options.freeable = true;
    if (config_.per_process_memory_fraction < 1) {
        set_memory_fraction(config_.per_process_memory_fraction);
    }
}

std::uint64_t PytorchPool::rounded_bytes(std::uint64_t requested_bytes) const {
    return pytorch::round_request(config_, rules_, requested_bytes);
}

std::uint64_t PytorchPool::page_bytes(std::uint64_t rounded_bytes) const {
    return rounded_bytes <= pytorch::kSmallSizeBytes ? pytorch::kSmallSegmentBytes
                                                     : config_.large_segment_size_bytes;
}

std::uint64_t PytorchPool::driver_bytes(std::uint64_t rounded_bytes) const {
    return exact_segments_ ? rounded_bytes : pytorch::segment_bytes(config_, rounded_bytes);
}

void PytorchPool::set_memory_fraction(double fraction) {
    if (!(fraction >= 0)) {
        return;  // NaN or negative: PyTorch refuses it
    }
    if (limits_lifted_ || (fraction >= 1 && !rules_.fraction_one_limits)) {
        limit_bytes_ = kNoLimit;
        return;
    }
    limit_bytes_ = pytorch::limit_bytes(rules_, fraction, device_->total_bytes());
}

// Live blocks that were allocated with other settings keep their sizes. The new settings decide
// which of their bytes count as rounding and which as slack.
bool PytorchPool::change_settings(std::string_view config) {
    auto changed = change_pytorch_config(config_, config, rules_);
    if (!changed) {
        return false;
    }
    config_ = *changed;
    statistics_.rounding_bytes = 0;
    statistics_.slack_bytes = 0;
    for (Block& block : blocks_) {
        if (block.state == State::kLive) {
            const std::uint64_t rounded = rounded_part(block, block.requested_bytes);
            block.rounded_bytes = rounded;
            statistics_.rounding_bytes += rounded - block.requested_bytes;
            statistics_.slack_bytes += block.size_bytes - rounded;
        }
    }
    return true;
}

std::vector<DriverCall> PytorchPool::take_driver_calls() {
    return std::exchange(*driver_calls_, {});
}

AllocateResult PytorchPool::allocate(const Request& request) {
    if (request.requested_bytes == 0) {
        return {Outcome::kHit, {}};
    }
    if (request.requested_bytes >= pytorch::kAbsurdBytes) {
        return {Outcome::kRejected, {}};
    }
    Search search = make_search(request);
    if (!search.in_capture && (events_completed_ || !parked_.empty())) {
        process_events();
    }
    Outcome outcome = Outcome::kHit;
    BlockIndex block = take_free(search, search.pool, search.expandable);
    if (block == kNoBlock) {
        block = grow(search, outcome);
        if (block == kNoBlock) {
            return {outcome, {}};
        }
    }
    return {outcome, hand_out(search, block, request)};
}

inline PytorchPool::Search PytorchPool::make_search(const Request& request) {
    Search search{};
    search.requested_bytes = request.requested_bytes;
    search.rounded_bytes = pytorch::round_request(config_, rules_, request.requested_bytes);
    search.small = search.rounded_bytes <= pytorch::kSmallSizeBytes;
    search.in_capture = capturing_ || request.in_capture;
    std::uint32_t pair_index = 0;
    if (request.private_pool != 0) {
        pair_index = private_pair(request.private_pool);
        pair_index = pairs_[pair_index].merged ? 0 : pair_index;
    }
    // After merge_pools() a graph's pool keeps its separate small pool.
    const bool small_pool = search.small && !(one_pool_ && pair_index == 0);
    search.pool = 2 * pair_index + (small_pool ? 0 : 1);
    search.stream = request.stream;
    search.slot = slot_of(request.stream);
    search.expandable = config_.expandable_segments;
    return search;
}

// No free block fits: tries each other source of memory in PyTorch's order until one provides a
// block.
BlockIndex PytorchPool::grow(Search& search, Outcome& outcome) {
    // PyTorch runs callbacks here and searches again only if they freed memory. They never do.
    if (collects_garbage()) {
        collect_garbage();
    }
    outcome = Outcome::kGrow;
    BlockIndex block = allocate_segment(search, false);
    if (block != kNoBlock) {
        return block;
    }
    if (!rules_.fallback_last && !search.rejected) {
        block = take_from_fallback(search);
        if (block != kNoBlock) {
            outcome = Outcome::kRetryOk;
            return block;
        }
    }
    outcome = Outcome::kRetryOk;
    if (!search.rejected && release_available(search)) {
        block = allocate_segment(search, false);
        if (block != kNoBlock) {
            return block;
        }
    }
    if (!search.rejected && !search.in_capture) {
        release_cached_after_events();
        block = allocate_segment(search, true);
        if (block != kNoBlock) {
            return block;
        }
    }
    if (search.rejected) {
        outcome = Outcome::kRejected;
        return kNoBlock;
    }
    if (rules_.fallback_last) {
        block = take_from_fallback(search);
        if (block != kNoBlock) {
            return block;
        }
    }
    if (*history_ != nullptr) {
        (*history_)->push_back({PytorchTraceEntry::Action::kOutOfMemory, 0, search.rounded_bytes});
    }
    ++detail_.num_ooms;
    ++statistics_.ooms;
    outcome = Outcome::kOutOfMemory;
    return kNoBlock;
}

inline BlockIndex PytorchPool::take_free(const Search& search,
                                         PoolIndex pool_index,
                                         bool expandable) {
    BlockPool& pool = pools_[pool_index];
    pool.search_count += collects_garbage() ? 1 : 0;
    const SetIndex set = pool.free.find(search.slot);
    if (set == kNoSet) {
        return kNoBlock;
    }
    BlockIndex found = sets_.lower_bound(set, FreeKey::make(search.rounded_bytes, 0, 0));
    if (found != kNoBlock && blocks_[found].expandable) {
        found = pick_expandable(found, expandable);
    }
    if (found == kNoBlock) {
        return kNoBlock;
    }
    const std::uint64_t size_bytes = blocks_[found].size_bytes;
    // Keys distinguish sizes only up to 256 TiB. No real block is larger.
    if (size_bytes < search.rounded_bytes) {
        return kNoBlock;
    }
    if (search.rounded_bytes < config_.max_split_size_bytes
            ? size_bytes >= config_.max_split_size_bytes
            : size_bytes - search.rounded_bytes >= config_.max_non_split_rounding_bytes) {
        return kNoBlock;
    }
    erase_free(found);
    return found;
}

// `found` is the first free block that is large enough, and expandable. Returns the one to use.
BlockIndex PytorchPool::pick_expandable(BlockIndex found, bool expandable) const {
    if (!expandable) {
        do {
            found = sets_.next(found);
        } while (found != kNoBlock && blocks_[found].expandable);
        return found;
    }
    // An expandable block counts with the size that it could grow to.
    const auto grown = [this](BlockIndex block) {
        const BlockIndex next = blocks_[block].next;
        return blocks_[block].size_bytes +
               (next != kNoBlock && blocks_[next].state == State::kUnmapped
                    ? blocks_[next].size_bytes
                    : 0);
    };
    for (BlockIndex next = sets_.next(found);
         blocks_[found].expandable && next != kNoBlock && grown(next) < grown(found);
         next = sets_.next(next)) {
        found = next;
    }
    return found;
}

BlockIndex PytorchPool::take_from_fallback(Search& search) {
    if (pair(search.pool).private_pool != 0) {
        return kNoBlock;
    }
    for (std::uint32_t i = 1; i < pairs_.size(); ++i) {
        if (!pairs_[i].exists || !pairs_[i].options.use_on_oom) {
            continue;
        }
        const PoolIndex pool = 2 * i + (search.small ? 0 : 1);
        // Since 2.10, expandable blocks are not treated specially here. Before, they were.
        const bool expandable = search.expandable && rules_.fallback_last;
        const BlockIndex block = take_free(search, pool, expandable);
        if (block != kNoBlock) {
            search.pool = pool;
            search.expandable = expandable;  // the split rule uses it as well
            return block;
        }
    }
    return kNoBlock;
}

BlockIndex PytorchPool::allocate_segment(Search& search, bool retry) {
    const std::uint64_t size_bytes = driver_bytes(search.rounded_bytes);
    if (retry) {
        ++detail_.num_alloc_retries;
        ++statistics_.retries;
    }
    if (limit_bytes_ != kNoLimit && obtained_bytes_ + size_bytes > limit_bytes_) {
        return kNoBlock;
    }
    if (config_.throw_on_cudamalloc_oom && !limits_lifted_ &&
        obtained_bytes_ + size_bytes > pytorch::rejection_bytes(config_, device_->total_bytes())) {
        ++detail_.num_oom_rejections;
        search.rejected = true;
        return kNoBlock;
    }
    if (search.expandable && (pair(search.pool).private_pool == 0 || rules_.private_pools_expand)) {
        const BlockIndex block = allocate_expandable(search);
        pairs_[search.pool / 2].segments += block != kNoBlock ? 1 : 0;
        return block;
    }
    const bool granted = device_->take(size_bytes);
    log(DriverCall::Kind::kSegmentAlloc, !granted, size_bytes);
    if (!granted) {
        return kNoBlock;
    }
    const BlockIndex block = new_segment(size_bytes, search);
    note(PytorchTraceEntry::Action::kSegmentAlloc, blocks_[block], size_bytes);
    detail_.segment.increase(size_class(search.pool), 1);
    if (size_bytes >= config_.max_split_size_bytes) {
        detail_.oversize_segments.increase(1);
    }
    count_obtained(search.pool, size_bytes);
    ++pairs_[search.pool / 2].segments;
    return block;
}

}  // namespace fragtrace::analyzer
