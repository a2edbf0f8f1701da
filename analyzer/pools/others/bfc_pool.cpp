#include "analyzer/pools/others/bfc_pool.h"

#include "analyzer/pools/pool_settings.h"

#include <algorithm>
#include <string>
#include <tuple>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kBfcQuantumBytes = 256;
constexpr double kShrink = 0.9;  // after a refusal the next attempt is smaller by this factor
constexpr std::uint64_t kLeastRetryBytes = 8192;  // ONNX Runtime requests no smaller region again
constexpr double kNotGiven = -1;
constexpr std::uint64_t kNoBytesGiven = ~std::uint64_t{0};

}  // namespace

Result<std::unique_ptr<Pool>> BfcPool::make(std::string_view config,
                                            std::unique_ptr<Device> device,
                                            const std::vector<std::uint64_t>& stream_handles) {
    auto pool = std::unique_ptr<BfcPool>(new BfcPool(std::string(config), std::move(device)));
    pool->limit_ = kNotGiven;
    pool->first_region_bytes_ = kNoBytesGiven;
    pool->most_doubled_bytes_ = kNoBytesGiven;
    const Status read =
        read_pool_settings("bfc",
                           config,
                           {{"preallocate", &pool->preallocate_},
                            {"limit", &pool->limit_},
                            {"garbage_collection", &pool->garbage_collection_},
                            {"fragmentation_fraction", &pool->fragmentation_fraction_},
                            {"partitioned", &pool->partitioned_},
                            {"onnxruntime", &pool->onnxruntime_},
                            {"exact_regions", &pool->exact_regions_},
                            {"first_region", &pool->first_region_bytes_},
                            {"most_waste", &pool->most_waste_bytes_},
                            {"most_doubled", &pool->most_doubled_bytes_},
                            {"region_after_shrink", &pool->region_after_shrink_bytes_}});
    if (!read) {
        return read.error();
    }
    if (const Status checked = pool->check_settings(); !checked) {
        return checked.error();
    }
    const auto zero = std::find(stream_handles.begin(), stream_handles.end(), 0u);
    pool->no_stream_ = static_cast<StreamId>(zero - stream_handles.begin());
    pool->limit_bytes_ = static_cast<std::uint64_t>(
        static_cast<double>(pool->device().total_bytes()) * pool->limit_);
    pool->forget();
    return std::unique_ptr<Pool>(std::move(pool));
}

// Also sets what was not given.
Status BfcPool::check_settings() {
    const auto wrong = [](std::string_view what) {
        return Error{ErrorCode::kUsage, "pool 'bfc': " + std::string(what)};
    };
    const bool grows = preallocate_ == 0;
    if (limit_ == kNotGiven) {
        limit_ = grows ? 0.75 : preallocate_;
    }
    if (first_region_bytes_ == kNoBytesGiven) {
        first_region_bytes_ = std::uint64_t{onnxruntime_ ? 1u : 2u} << 20;
    }
    if (most_doubled_bytes_ == kNoBytesGiven && onnxruntime_) {
        most_doubled_bytes_ = std::uint64_t{1} << 30;
    }
    if (!grows && limit_ != preallocate_) {
        return wrong("a preallocated pool does not grow; give limit with preallocate:0");
    }
    if (grows && partitioned_) {
        return wrong("a partitioned pool does not grow; do not give preallocate:0");
    }
    if (onnxruntime_ && !grows) {
        return wrong("a pool of ONNX Runtime grows; give preallocate:0");
    }
    if (limit_ > 1 || fragmentation_fraction_ > 1) {
        return wrong("preallocate, limit and fragmentation_fraction are fractions, at most 1");
    }
    if (first_region_bytes_ == 0 || most_doubled_bytes_ == 0 || region_after_shrink_bytes_ == 0) {
        return wrong("first_region, most_doubled and region_after_shrink are at least 1 byte");
    }
    return Ok{};
}

std::uint64_t BfcPool::rounded_bytes(std::uint64_t requested_bytes) const {
    return round_up(requested_bytes, kBfcQuantumBytes);
}

void BfcPool::forget() {
    free_ = {};
    if (partitioned_) {
        free_.add_list(FreeBlocks::Ties::kHighestFirst);
        free_.add_list();
    }
    lists_.clear();
    const std::uint64_t first =
        preallocate_ == 0 ? std::min(limit_bytes_, first_region_bytes_) : limit_bytes_;
    next_region_bytes_ = round_up(std::max<std::uint64_t>(first, 1), kBfcQuantumBytes);
}

FreeBlocks::List BfcPool::list_of(const Request& request) const {
    if (onnxruntime_) {
        const auto known = lists_.find(request.stream);
        return known == lists_.end() ? kLower : known->second;
    }
    return partitioned_ && request.upper_end ? kUpper : kLower;
}

FreeBlocks::List BfcPool::obtain_list(const Request& request) {
    if (onnxruntime_ && request.stream != no_stream_ && !lists_.contains(request.stream)) {
        lists_[request.stream] = free_.add_list();
    }
    return list_of(request);
}

// In a partitioned pool, the own free blocks of an end come before the gap. In ONNX Runtime's, the
// best fit among the blocks of the stream and those of no stream counts.
BlockIndex BfcPool::find_free(std::uint64_t size_bytes, FreeBlocks::List list) {
    const BlockIndex own = best_fit(free_, size_bytes, list);
    if (onnxruntime_ && list != kLower) {
        const BlockIndex shared = best_fit(free_, size_bytes, kLower);
        if (own == kNoBlock || shared == kNoBlock) {
            return own == kNoBlock ? shared : own;
        }
        const auto place = [this](BlockIndex index) {
            const PoolBlock& one = block(index);
            return std::tuple(one.size_bytes, one.segment, one.offset_bytes);
        };
        return place(shared) < place(own) ? shared : own;
    }
    return own == kNoBlock && partitioned_ ? free_.at_least(size_bytes, kGap) : own;
}

bool BfcPool::should_split(std::uint64_t block_bytes, std::uint64_t size_bytes) const {
    const std::uint64_t most_waste =
        fragmentation_fraction_ > 0 ? static_cast<std::uint64_t>(fragmentation_fraction_ *
                                                                 static_cast<double>(limit_bytes_))
                                    : most_waste_bytes_;
    return block_bytes / 2 >= size_bytes ||
           (block_bytes > size_bytes && block_bytes - size_bytes >= most_waste);
}

// The rules of the ends are those that JAX 0.12.0 sets: the lower end (memory for collectives)
// always splits, the upper end (all other memory) follows BFC's rule, also in the gap.
BlockIndex BfcPool::carve(BlockIndex index, std::uint64_t size_bytes, FreeBlocks::List list) {
    const std::uint64_t there = block(index).size_bytes;
    const bool exactly = partitioned_ && list == kLower;
    if (exactly ? there > size_bytes : should_split(there, size_bytes)) {
        const bool takes_end = partitioned_ && list == kUpper;
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
    const FreeBlocks::List list = obtain_list(request);
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

void BfcPool::double_next_region() {
    next_region_bytes_ =
        next_region_bytes_ < most_doubled_bytes_ / 2 ? 2 * next_region_bytes_ : most_doubled_bytes_;
}

std::uint64_t BfcPool::smaller_region(std::uint64_t bytes) const {
    if (onnxruntime_) {  // computes with single precision
        const auto less =
            static_cast<std::uint64_t>(static_cast<float>(bytes) * static_cast<float>(kShrink));
        const std::uint64_t rounded = round_up(less, kBfcQuantumBytes);
        return rounded < kLeastRetryBytes || rounded >= bytes ? 0 : rounded;
    }
    const std::uint64_t less = round_up(
        static_cast<std::uint64_t>(static_cast<double>(bytes) * kShrink), kBfcQuantumBytes);
    return less < bytes ? less : bytes - kBfcQuantumBytes;
}

// Allocates a region from the driver that has room for `size_bytes`.
bool BfcPool::extend(std::uint64_t size_bytes, StreamId stream) {
    const std::uint64_t held = reserved_bytes();
    const std::uint64_t left =
        (limit_bytes_ - std::min(limit_bytes_, held)) / kBfcQuantumBytes * kBfcQuantumBytes;
    if (size_bytes > left) {
        return false;
    }
    const bool doubles = size_bytes <= next_region_bytes_ && !exact_regions_;
    while (size_bytes > next_region_bytes_ && !exact_regions_) {
        next_region_bytes_ *= 2;
    }
    std::uint64_t bytes = exact_regions_ ? size_bytes : std::min(next_region_bytes_, left);
    if (doubles && onnxruntime_) {  // also if the driver refuses
        double_next_region();
    }
    BlockIndex region = add_segment(bytes, stream);
    while (region == kNoBlock) {
        bytes = smaller_region(bytes);
        if (bytes < size_bytes) {
            return false;
        }
        region = add_segment(bytes, stream);
    }
    if (doubles && !onnxruntime_) {
        double_next_region();
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
    if (onnxruntime_) {
        return std::max(own, size_of(free_.largest(kLower)));
    }
    return partitioned_ ? std::max(own, size_of(free_.largest(kGap))) : own;
}

std::uint64_t BfcPool::releasable_bytes() const {
    return free_segment_bytes();
}

// The first region stays, unless all regions have the sizes of requests.
void BfcPool::empty_cache() {
    if (onnxruntime_) {
        release_free_segments(&free_, exact_regions_ ? kNoSegment : 0);
        next_region_bytes_ = region_after_shrink_bytes_;
    }
}

void BfcPool::end_stream(StreamId stream) {
    if (const auto list = lists_.find(stream); list != lists_.end()) {
        move_list(list->second, kLower, &free_);
    }
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
