#include "analyzer/replay/validation/placement_check.h"

#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// The alignment that every CUDA allocator guarantees.
constexpr std::uint64_t kAlignmentBytes = 256;

bool served(Outcome outcome) {
    return outcome != Outcome::kOutOfMemory && outcome != Outcome::kRejected;
}

// An expandable reservation counts as one segment in placements.
DeviceAddress base(const HeapSegment& segment) {
    return segment.expandable ? segment.reservation : segment.address;
}

}  // namespace

void PlacementCheck::report(std::string what) {
    if (violation_.empty()) {
        violation_ = std::move(what);
    }
}

// ---- what happens -------------------------------------------------------------------------------

void PlacementCheck::take(const Request& request, const Placement& place, const Pool& pool) {
    ++placements_;
    const std::uint64_t end = place.offset_bytes + place.block_bytes;
    const std::string name = fmt::format("block {} (segment {}, bytes {} to {})",
                                         request.block,
                                         place.segment,
                                         place.offset_bytes,
                                         end);
    if (place.block_bytes < request.requested_bytes || end <= place.offset_bytes) {
        report(fmt::format("{} is too small for {} bytes", name, request.requested_bytes));
        return;
    }
    if (place.offset_bytes % kAlignmentBytes != 0) {
        report(fmt::format("{} is not aligned to {} bytes", name, kAlignmentBytes));
    }
    if (blocks_.contains(request.block)) {
        report(fmt::format("{} has the number of a live block", name));
        return;
    }
    if (const auto other = segments_[place.segment].take(place.offset_bytes, end, request.block)) {
        report(fmt::format(
            "{} overlaps {} block {} (bytes {} to {})",
            name,
            blocks_.at(static_cast<BlockId>(other->id)).waits_for == 0 ? "live" : "waiting",
            other->id,
            other->begin,
            other->end));
        return;
    }
    const auto found = pool.find(request.block);
    if (!found || found->segment != place.segment || found->offset_bytes != place.offset_bytes ||
        found->block_bytes != place.block_bytes) {
        report(fmt::format("{}: the pool reports another place", name));
    }
    const auto [stream, first] = segment_streams_.try_emplace(place.segment, request.stream);
    if (streams_ == StreamRule::kSegments && stream->second != request.stream) {
        report(fmt::format("{} belongs to stream {}, its segment to stream {}",
                           name,
                           request.stream,
                           stream->second));
    }
    blocks_[request.block] = {place, request.requested_bytes, request.stream, 0};
    requested_bytes_ += request.requested_bytes;
    allocated_bytes_ += place.block_bytes;
}

void PlacementCheck::allocated(const Request& request, const AllocateResult& result, Pool& pool) {
    if (result.outcome == Outcome::kRetryOk || result.outcome == Outcome::kOutOfMemory) {
        all_complete();  // the pool waited for all events before it failed or retried
    }
    if (served(result.outcome)) {
        take(request, result.placement, pool);
    } else if (!blocks_.contains(request.block) && pool.find(request.block)) {
        report(fmt::format("block {} was refused but exists", request.block));
    }
    follow_driver(pool);
    compare_sums(pool.statistics());
}

void PlacementCheck::released(BlockId id, const std::vector<Pool::PendingOn>& pending, Pool& pool) {
    const auto found = blocks_.find(id);
    if (found != blocks_.end() && found->second.waits_for == 0) {
        Block& block = found->second;
        requested_bytes_ -= block.requested_bytes;
        allocated_bytes_ -= block.place.block_bytes;
        if (streams_ == StreamRule::kSegments && !pending.empty()) {
            block.waits_for = pending.size();
            pending_bytes_ += block.place.block_bytes;
            ++pending_blocks_;
            for (const Pool::PendingOn& event : pending) {
                waiting_[event.id].push_back(id);
            }
        } else {
            forget(id);
        }
    }
    follow_driver(pool);
    compare_sums(pool.statistics());
}

void PlacementCheck::forget(BlockId id) {
    const auto found = blocks_.find(id);
    segments_[found->second.place.segment].give_back(found->second.place.offset_bytes);
    blocks_.erase(found);
}

void PlacementCheck::completed(PendingId pending) {
    const auto found = waiting_.find(pending);
    if (found == waiting_.end()) {
        return;
    }
    for (const BlockId id : found->second) {
        Block& block = blocks_.at(id);
        if (--block.waits_for == 0) {
            pending_bytes_ -= block.place.block_bytes;
            --pending_blocks_;
            forget(id);
        }
    }
    waiting_.erase(found);
}

void PlacementCheck::all_complete() {
    while (!waiting_.empty()) {
        completed(waiting_.begin()->first);
    }
}

void PlacementCheck::emptied(Pool& pool) {
    all_complete();
    follow_driver(pool);
    compare_sums(pool.statistics());
}

void PlacementCheck::placed(const Request& request, Pool& pool) {
    if (const auto place = pool.find(request.block)) {
        take(request, *place, pool);
    }
    follow_driver(pool);
    compare_sums(pool.statistics());
}

void PlacementCheck::adopted(const HeapSnapshot& heap, Pool& pool) {
    blocks_.clear();
    segments_.clear();
    segment_streams_.clear();
    waiting_.clear();
    requested_bytes_ = allocated_bytes_ = pending_bytes_ = 0;
    pending_blocks_ = 0;
    pool.take_driver_calls();
    reserved_bytes_ = pool.statistics().reserved.current;
    for (const HeapBlock& block : heap.blocks) {
        if (block.state == BlockState::kFree) {
            continue;
        }
        const auto place = pool.find(block.allocated_by);
        if (!place) {
            report(fmt::format("block {} was live at a checkpoint but is missing",
                               block.allocated_by));
            return;
        }
        take({.block = block.allocated_by,
              .requested_bytes = std::min(block.requested_bytes, block.size_bytes),
              .stream = block.stream},
             *place,
             pool);
    }
    compare(pool);
}

void PlacementCheck::follow_driver(Pool& pool) {
    for (const DriverCall& call : pool.take_driver_calls()) {
        if (call.refused) {
            continue;
        }
        if (call.kind == DriverCall::Kind::kSegmentAlloc || call.kind == DriverCall::Kind::kMap) {
            reserved_bytes_ += call.size_bytes;
        } else if (call.size_bytes > reserved_bytes_) {
            report(fmt::format("{} bytes are returned to the driver, only {} were allocated",
                               call.size_bytes,
                               reserved_bytes_));
        } else {
            reserved_bytes_ -= call.size_bytes;
        }
        if (reserved_bytes_ > capacity_bytes_) {
            report(fmt::format(
                "{} bytes are reserved, the device has {}", reserved_bytes_, capacity_bytes_));
        }
    }
}

// ---- comparisons --------------------------------------------------------------------------------

void PlacementCheck::compare_sums(const PoolStatistics& statistics) {
    const auto compare_one = [this](std::string_view what, std::uint64_t pool, std::uint64_t own) {
        if (pool != own) {
            report(fmt::format("{} are {} bytes, the pool says {}", what, own, pool));
        }
    };
    compare_one("live requests", statistics.requested.current, requested_bytes_);
    compare_one("live blocks", statistics.allocated.current, allocated_bytes_);
    compare_one("segments", statistics.reserved.current, reserved_bytes_);
    compare_one("live requests with rounding and slack",
                statistics.allocated.current,
                statistics.requested.current + statistics.rounding_bytes + statistics.slack_bytes);
    // A pool notices completed events only at its next check, so its active bytes may be too high.
    const std::uint64_t active = allocated_bytes_ + pending_bytes_;
    if (statistics.active.current < active ||
        (streams_ == StreamRule::kIgnored && statistics.active.current != active)) {
        compare_one("live and waiting blocks", statistics.active.current, active);
    }
    if (statistics.active.current > statistics.reserved.current) {
        report(fmt::format("{} bytes are in use, of {} reserved",
                           statistics.active.current,
                           statistics.reserved.current));
    }
}

void PlacementCheck::compare(const Pool& pool) {
    ++comparisons_;
    compare_sums(pool.statistics());
    const HeapSnapshot heap = pool.snapshot();
    std::uint64_t reserved = 0;
    std::size_t found = 0;
    DeviceAddress end = 0;
    for (const HeapSegment& segment : heap.segments) {
        if (segment.address < end) {
            report(fmt::format("segments overlap at address {:#x}", segment.address));
        }
        end = segment.address + segment.size_bytes;
        reserved += segment.size_bytes;
        compare_segment(heap, segment);
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            const HeapBlock& block = heap.blocks[segment.first_block + i];
            found += block.state != BlockState::kFree && blocks_.contains(block.allocated_by);
        }
    }
    if (reserved != reserved_bytes_) {
        report(fmt::format("the segments of the address map have {} bytes, {} were allocated",
                           reserved,
                           reserved_bytes_));
    }
    if (found != blocks_.size()) {
        report(fmt::format(
            "{} blocks are live or wait, the address map has {} of them", blocks_.size(), found));
    }
}

void PlacementCheck::compare_segment(const HeapSnapshot& heap, const HeapSegment& segment) {
    DeviceAddress at = segment.address;
    for (std::uint32_t i = 0; i < segment.block_count; ++i) {
        const HeapBlock& block = heap.blocks[segment.first_block + i];
        if (block.address != at || block.size_bytes == 0) {
            report(fmt::format("the address map has a gap at {:#x}", at));
        }
        at = block.address + block.size_bytes;
        if (block.state != BlockState::kFree) {
            compare_block(segment, block);
        }
    }
    if (at != segment.address + segment.size_bytes) {
        report(fmt::format("the blocks of the segment at {:#x} do not fill it", segment.address));
    }
}

void PlacementCheck::compare_block(const HeapSegment& segment, const HeapBlock& block) {
    const auto found = blocks_.find(block.allocated_by);
    if (found == blocks_.end()) {
        if (block.state == BlockState::kLive) {
            report(fmt::format("block {} is in the address map but was freed", block.allocated_by));
        }
        return;  // pending: the pool has not yet noticed that its events completed
    }
    const Block& own = found->second;
    if (own.place.segment != segment.obtained_by ||
        own.place.offset_bytes != block.address - base(segment) ||
        own.place.block_bytes != block.size_bytes || own.requested_bytes != block.requested_bytes) {
        report(
            fmt::format("block {} was placed in segment {} at {}, {} bytes; the address map has "
                        "it in segment {} at {}, {} bytes",
                        block.allocated_by,
                        own.place.segment,
                        own.place.offset_bytes,
                        own.place.block_bytes,
                        segment.obtained_by,
                        block.address - base(segment),
                        block.size_bytes));
    }
}

}  // namespace fragtrace::analyzer
