#include "analyzer/pools/others/cuda_async_pool.h"

#include "analyzer/pools/others/none_pool.h"
#include "analyzer/pools/pool_settings.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kAsyncQuantumBytes = 512;
constexpr std::uint64_t kStepBytes = std::uint64_t{32} << 20;  // observed, not documented
constexpr std::uint64_t kEndlessBytes = std::uint64_t{1} << 60;
constexpr DeviceAddress kRestAddress = DeviceAddress{1} << 62;  // beyond all blocks

}  // namespace

Result<std::unique_ptr<Pool>> make_cuda_async_pool(std::string_view config,
                                                   std::unique_ptr<Device> device) {
    bool remap = false;
    const Status read = read_pool_settings("cuda-async", config, {{"remap", &remap}});
    if (!read) {
        return read.error();
    }
    if (remap) {
        return std::unique_ptr<Pool>(
            std::make_unique<RemappingCudaAsyncPool>(std::string(config), std::move(device)));
    }
    return std::unique_ptr<Pool>(
        std::make_unique<CudaAsyncPool>(std::string(config), std::move(device)));
}

// ---- the upper bound ----------------------------------------------------------------------------

std::uint64_t CudaAsyncPool::rounded_bytes(std::uint64_t requested_bytes) const {
    return round_up(requested_bytes, kAsyncQuantumBytes);
}

AllocateResult CudaAsyncPool::allocate(const Request& request) {
    const std::uint64_t size_bytes = rounded_bytes(request.requested_bytes);
    const std::uint64_t segment_bytes = round_up(size_bytes, kStepBytes);
    if (size_bytes < request.requested_bytes || segment_bytes < size_bytes) {
        return out_of_memory();
    }
    Outcome outcome = Outcome::kHit;
    BlockIndex index = free_.at_least(size_bytes);
    if (index == kNoBlock) {
        outcome = Outcome::kGrow;
        index = add_segment(segment_bytes, request.stream);
        if (index == kNoBlock) {
            outcome = Outcome::kRetryOk;
            empty_cache();
            index = add_segment(segment_bytes, request.stream);
        }
        if (index == kNoBlock) {
            return out_of_memory();
        }
    } else {
        free_.erase(index);
    }
    if (block(index).size_bytes != size_bytes) {
        const BlockIndex rest = split(index, size_bytes);
        free_.insert(rest, block(rest));
    }
    return hand_out(index, request, outcome);
}

void CudaAsyncPool::freed(BlockIndex index) {
    file(index, &free_);
}

void CudaAsyncPool::forget() {
    free_ = {};
}

void CudaAsyncPool::empty_cache() {
    release_free_segments(&free_);
}

std::uint64_t CudaAsyncPool::largest_free_bytes(const Request&) const {
    return size_of(free_.largest());
}

std::uint64_t CudaAsyncPool::releasable_bytes() const {
    return free_segment_bytes();
}

bool CudaAsyncPool::relax(Relaxation relaxation) {
    if (relaxation != Relaxation::kReleaseFree) {
        return false;
    }
    empty_cache();
    return true;
}

// ---- the lower bound ----------------------------------------------------------------------------

RemappingCudaAsyncPool::RemappingCudaAsyncPool(std::string config, std::unique_ptr<Device> device)
    : config_(std::move(config)),
      device_(std::move(device)),
      blocks_(std::make_unique<NonePool>(
          std::make_unique<FixedDevice>(kEndlessBytes, kEndlessBytes, kAsyncQuantumBytes))) {}

// Reserves memory until `size_bytes` are reserved. Grows in the observed 32 MiB steps, or in pages
// when the card is nearly full.
bool RemappingCudaAsyncPool::reserve(std::uint64_t size_bytes) {
    const std::uint64_t reserved = statistics_.reserved.current;
    if (size_bytes <= reserved) {
        return true;
    }
    for (const std::uint64_t step : {kStepBytes, kDriverPageBytes}) {
        const std::uint64_t more = round_up(size_bytes, step) - reserved;
        const bool granted = device_->resize(reserved, reserved + more);
        driver_calls_->push_back({DriverCall::Kind::kMap, !granted, more});
        if (granted) {
            statistics_.reserved.add(more);
            ++statistics_.segments_allocated;
            return true;
        }
    }
    return false;
}

void RemappingCudaAsyncPool::trim_to(std::uint64_t size_bytes) {
    const std::uint64_t reserved = statistics_.reserved.current;
    const std::uint64_t kept = std::min(reserved, round_up(size_bytes, kStepBytes));
    if (kept < reserved) {
        device_->resize(reserved, kept);
        driver_calls_->push_back({DriverCall::Kind::kUnmap, false, reserved - kept});
        statistics_.reserved.subtract(reserved - kept);
        ++statistics_.segments_freed;
    }
}

void RemappingCudaAsyncPool::take_sums() {
    const PoolStatistics& sums = blocks_->statistics();
    statistics_.requested = sums.requested;
    statistics_.allocated = sums.allocated;
    statistics_.active = sums.active;
    statistics_.rounding_bytes = sums.rounding_bytes;
}

AllocateResult RemappingCudaAsyncPool::allocate(const Request& request) {
    const std::uint64_t size_bytes = rounded_bytes(request.requested_bytes);
    const std::uint64_t reserved = statistics_.reserved.current;
    if (size_bytes < request.requested_bytes || size_bytes >= kEndlessBytes / 2 ||
        !reserve(statistics_.allocated.current + size_bytes)) {
        ++statistics_.ooms;
        return {Outcome::kOutOfMemory, {}};
    }
    AllocateResult result = blocks_->allocate(request);
    if (statistics_.reserved.current == reserved) {
        result.outcome = Outcome::kHit;
    }
    take_sums();
    return result;
}

bool RemappingCudaAsyncPool::release(BlockId block, const std::vector<PendingOn>& pending) {
    const bool known = blocks_->release(block, pending);
    take_sums();
    return known;
}

void RemappingCudaAsyncPool::empty_cache() {
    trim_to(statistics_.allocated.current);
}

bool RemappingCudaAsyncPool::adopt(const HeapSnapshot& heap) {
    const PoolStatistics before = statistics_;
    device_->give_back_all();
    statistics_.reserved.current = 0;
    const bool adopted = blocks_->adopt(heap);
    take_sums();
    const bool reserved = adopted && reserve(statistics_.allocated.current);
    statistics_.segments_allocated = before.segments_allocated;
    driver_calls_->clear();
    return reserved;
}

HeapSnapshot RemappingCudaAsyncPool::snapshot() const {
    HeapSnapshot heap = blocks_->snapshot();
    heap.device_free_bytes = device_->free_bytes();
    const std::uint64_t rest = statistics_.reserved.current - statistics_.allocated.current;
    if (rest != 0) {
        heap.segments.push_back({.address = kRestAddress,
                                 .size_bytes = rest,
                                 .first_block = static_cast<std::uint32_t>(heap.blocks.size()),
                                 .block_count = 1});
        heap.blocks.push_back({.address = kRestAddress, .size_bytes = rest});
    }
    return heap;
}

// All reserved bytes that are not live can be mapped into one block.
std::uint64_t RemappingCudaAsyncPool::largest_free_bytes(const Request&) const {
    return statistics_.reserved.current - statistics_.allocated.current;
}

std::uint64_t RemappingCudaAsyncPool::releasable_bytes() const {
    const std::uint64_t reserved = statistics_.reserved.current;
    return reserved - std::min(reserved, round_up(statistics_.allocated.current, kStepBytes));
}

std::vector<DriverCall> RemappingCudaAsyncPool::take_driver_calls() {
    return std::exchange(*driver_calls_, {});
}

}  // namespace fragtrace::analyzer
