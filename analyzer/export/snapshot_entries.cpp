#include "analyzer/export/snapshot_entries.h"

#include "analyzer/model/device_layer.h"
#include "analyzer/support/terminal.h"
#include "analyzer/trace/possible_event.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace fragtrace::analyzer {
namespace {

// Readers refuse larger requests.
constexpr std::uint64_t kMostRequestBytes = std::uint64_t{1} << 60;

bool calls_for_pool(const EventTable& events, EventIndex index) {
    const EventKind kind = events.kind(index);
    return kind == EventKind::kDeviceAlloc || kind == EventKind::kMap ||
           kind == EventKind::kDeviceFree || kind == EventKind::kUnmap;
}

bool same_block(const HeapBlock& one, const HeapBlock& other) {
    return one.address == other.address && one.size_bytes == other.size_bytes &&
           one.requested_bytes == other.requested_bytes;
}

// The block at an address; nullptr = there is none, or it is free.
const HeapBlock* block_at(const HeapSnapshot& heap, DeviceAddress address) {
    const auto found = std::lower_bound(
        heap.blocks.begin(), heap.blocks.end(), address, [](const HeapBlock& block, auto value) {
            return block.address < value;
        });
    return found == heap.blocks.end() || found->address != address ||
                   found->state == BlockState::kFree
               ? nullptr
               : &*found;
}

bool has_segment(const std::map<DeviceAddress, SegmentOwner>& owners,
                 DeviceAddress address,
                 const SegmentOwner& owner) {
    const auto found = owners.find(address);
    return found != owners.end() && found->second.size_bytes == owner.size_bytes &&
           found->second.expandable == owner.expandable;
}

}  // namespace

DeviceAddress shown_address(DeviceAddress address) {
    constexpr DeviceAddress kFirstShown = DeviceAddress{1} << 56;
    return address < kFirstStandInAddress ? address : address - kFirstStandInAddress + kFirstShown;
}

std::uint64_t raw_stream(const Timeline& timeline, StreamId stream) {
    return stream < timeline.streams.size() ? timeline.streams[stream] : 0;
}

std::pair<std::uint64_t, std::uint64_t> pool_id(const Timeline& timeline, std::uint32_t pool) {
    const auto found = timeline.pools.find(pool);
    if (found == timeline.pools.end() || found->second.owner != PoolIdentity::Owner::kPytorch) {
        return {0, 0};
    }
    return {found->second.first, found->second.second};
}

std::uint64_t unix_us(const Timeline& timeline, std::uint64_t time_ns) {
    return timeline.start_unix_ns / 1000 + (timeline.start_unix_ns % 1000 + time_ns) / 1000;
}

std::uint64_t known_request(const HeapBlock& block) {
    return std::min(block.requested_bytes, block.size_bytes);
}

// ---- requests of driver calls -------------------------------------------------------------------

// The pool's calls of the driver come before the event of the request, on the same thread.
DriverCallRequests::DriverCallRequests(const Timeline& timeline) {
    // The stacks of a snapshot are those of the requests already.
    if (timeline.fact("source") == "pytorch snapshot") {
        return;
    }
    const EventTable& events = timeline.events;
    const auto thread_of = [&timeline](EventIndex index) {
        const OriginId origin = timeline.events[index].origin;
        return origin < timeline.origins.size() ? timeline.origins[origin].thread : 0;
    };
    std::unordered_map<std::uint32_t, EventIndex> next;  // by thread
    for (auto i = static_cast<EventIndex>(events.size()); i-- > 0;) {
        const EventKind kind = events.kind(i);
        if (kind == EventKind::kBlockAlloc || kind == EventKind::kBlockOutOfMemory) {
            next[thread_of(i)] = i;
        } else if (kind == EventKind::kBlockFree || kind == EventKind::kEmptyCache) {
            next.erase(thread_of(i));
        } else if (calls_for_pool(events, i) && !next.empty()) {
            const auto request = next.find(thread_of(i));
            if (request != next.end()) {
                requests_.emplace_back(i, request->second);
            }
        }
    }
}

EventIndex DriverCallRequests::of(EventIndex call) {
    while (!requests_.empty() && requests_.back().first < call) {
        requests_.pop_back();
    }
    return requests_.empty() || requests_.back().first != call ? kNoEvent : requests_.back().second;
}

// ---- the walk -----------------------------------------------------------------------------------

SnapshotEntries::SnapshotEntries(PickleWriter* pickle,
                                 SnapshotStackWriter* stacks,
                                 const Timeline& timeline,
                                 DeviceId device)
    : pickle_(*pickle),
      stacks_(*stacks),
      timeline_(timeline),
      device_(device),
      has_times_(timeline.start_unix_ns != 0),
      state_(timeline),
      outcomes_([this](DeviceId id) { return state_.has_block_layer(id); }),
      requests_(timeline) {
    state_.watch(device_, this);
}

DeviceEnd SnapshotEntries::write() {
    Progress progress("writing events");
    for (EventIndex i = 0; i < timeline_.events.size(); ++i) {
        progress.show_sometimes(i, timeline_.events.size());
        step(i);
    }
    if (former_) {
        end_checkpoint();
    }
    write_range();
    return {device_, state_.has_block_layer(device_), state_.snapshot(device_), std::move(owners_)};
}

void SnapshotEntries::step(EventIndex index) {
    now_ = index;
    event_ = timeline_.events[index];
    if (event_.kind == EventKind::kCheckpointBegin) {
        begin_checkpoint();
    }
    request_ = requests_.of(index);
    // A checkpoint lists memory, and calls nothing.
    if (former_ || (request_ != kNoEvent && timeline_.events.device(request_) != device_)) {
        request_ = kNoEvent;
    }
    state_.advance();
    if (event_.kind == EventKind::kCheckpointEnd && former_) {
        end_checkpoint();
    }
    any_memory_ = any_memory_ || is_device_allocation(event_.kind) ||
                  event_.kind == EventKind::kMap || event_.kind == EventKind::kBlockAlloc;
    const RequestOutcome outcome = outcomes_.visit(index, event_);
    if (event_.device != device_) {
        return;
    }
    if (outcome == RequestOutcome::kOutOfMemory) {
        tell_out_of_memory();
    }
    if (event_.kind == EventKind::kAllocRefused) {
        refused_ = (event_.flags & kFlagFromAllocator) != 0;
    } else if (event_.kind == EventKind::kBlockAlloc ||
               event_.kind == EventKind::kBlockOutOfMemory) {
        refused_ = false;
    }
}

void SnapshotEntries::tell_out_of_memory() {
    Entry entry = {.action = kOomWord, .stream = event_.stream, .origin = event_.origin};
    entry.time_ns = event_.time_ns;
    entry.size_bytes =
        event_.size_bytes == kUnknown64 ? 0 : std::min(event_.size_bytes, kMostRequestBytes);
    const bool told =
        event_.kind == EventKind::kBlockOutOfMemory && event_.extra <= kMostDeviceBytes;
    entry.device_free_bytes = told ? event_.extra : state_.device_free_bytes(device_);
    tell(entry);
}

// ---- changes of the state -----------------------------------------------------------------------

HeapBlock SnapshotEntries::as_heap_block(const RecordedBlock& block) {
    return {.address = block.address,
            .size_bytes = block.size_bytes,
            .requested_bytes = block.requested_bytes,
            .allocated_by = block.allocated_by,
            .stream = block.stream,
            .state = block.state};
}

OriginId SnapshotEntries::origin_of(EventIndex event) const {
    return event < timeline_.events.size() ? timeline_.events[event].origin : 0;
}

// N of the fact "text.N"; 0 = no label.
std::uint32_t SnapshotEntries::label_of(OriginId origin) const {
    return origin < timeline_.origins.size() ? timeline_.origins[origin].label : 0;
}

void SnapshotEntries::block_begins(const RecordedBlock& block) {
    tell_block(kAllocWord, as_heap_block(block));
}

void SnapshotEntries::block_waits(const RecordedBlock& block) {
    tell_block(kFreeRequestedWord, as_heap_block(block));
}

void SnapshotEntries::block_ends(const RecordedBlock& block) {
    tell_end_of(as_heap_block(block));
}

void SnapshotEntries::tell_end_of(const HeapBlock& block) {
    if (block.state != BlockState::kPending) {
        tell_block(kFreeRequestedWord, block);
    }
    tell_block(kFreeCompletedWord, block);
}

void SnapshotEntries::tell_block(Word action, const HeapBlock& block) {
    const bool frees = action == kFreeRequestedWord || action == kFreeCompletedWord;
    const OriginId freed_by = frees ? event_.origin : 0;
    Entry entry = {.action = action,
                   .address = block.address,
                   .size_bytes = known_request(block),
                   .stream = block.stream,
                   .origin = freed_by != 0 ? freed_by : origin_of(block.allocated_by),
                   .time_ns = event_.time_ns};
    if (const auto owner = owners_.upper_bound(block.address); owner != owners_.begin()) {
        entry.pool = std::prev(owner)->second.pool;
    }
    tell(entry);
}

void SnapshotEntries::segment_begins(const RecordedSegment& segment) {
    SegmentOwner owner = {.size_bytes = segment.size_bytes,
                          .origin = event_.origin,
                          .stream = segment.stream,
                          .pool = segment.private_pool,
                          .expandable = segment.expandable()};
    if (request_ != kNoEvent) {
        const Event request = timeline_.events[request_];
        owner.origin = request.origin;
        owner.stream = request.stream;
        owner.pool = timeline_.event_pools.at(request_);
    } else if (owner.stream == kNoStream) {
        owner.stream = event_.stream;
        owner.pool = timeline_.event_pools.at(now_);
    }
    owners_[segment.address] = owner;
    tell_segment(owner.expandable ? kSegmentMapWord : kSegmentAllocWord, segment.address, owner);
}

void SnapshotEntries::range_ends(const RecordedSegment* segment,
                                 DeviceAddress begin,
                                 DeviceAddress end) {
    // The pool releases segments to serve a request that the driver refused. Otherwise the program
    // asked for it.
    const OriginId origin = refused_ && request_ != kNoEvent ? origin_of(request_) : event_.origin;
    auto at = owners_.upper_bound(begin);
    if (at != owners_.begin() && std::prev(at)->first + std::prev(at)->second.size_bytes > begin) {
        --at;
    }
    while (at != owners_.end() && at->first < end) {
        const DeviceAddress from = at->first;
        const SegmentOwner whole = at->second;
        const DeviceAddress to = from + whole.size_bytes;
        at = owners_.erase(at);
        SegmentOwner part = whole;
        part.origin = origin;
        if (part.stream == kNoStream && segment != nullptr) {
            part.stream = segment->stream;
            part.pool = segment->private_pool;
        }
        const DeviceAddress cut_from = whole.expandable ? std::max(from, begin) : from;
        const DeviceAddress cut_to = whole.expandable ? std::min(to, end) : to;
        part.size_bytes = cut_to - cut_from;
        tell_segment(whole.expandable ? kSegmentUnmapWord : kSegmentFreeWord, cut_from, part);
        // If a recording out of order ends only a part of a cudaMalloc, the rest counts as another
        // one.
        const auto keep = [&](DeviceAddress rest_begin, DeviceAddress rest_end) {
            if (rest_begin < rest_end) {
                SegmentOwner rest = whole;
                rest.size_bytes = rest_end - rest_begin;
                owners_[rest_begin] = rest;
                if (!whole.expandable) {
                    tell_segment(kSegmentAllocWord, rest_begin, rest);
                }
            }
        };
        keep(from, std::min(begin, to));
        keep(std::max(end, from), to);
    }
}

void SnapshotEntries::tell_segment(Word action, DeviceAddress address, const SegmentOwner& owner) {
    tell({.action = action,
          .address = address,
          .size_bytes = owner.size_bytes,
          .stream = owner.stream,
          .pool = owner.pool,
          .origin = owner.origin,
          .time_ns = event_.time_ns});
}

// Called before the state forgets its content.
void SnapshotEntries::all_ends() {
    if (!silent_) {
        for (const HeapBlock& block : state_.snapshot(device_).blocks) {
            if (block.state != BlockState::kFree) {
                tell_end_of(block);
            }
        }
        for (const auto& [address, owner] : owners_) {
            tell_segment(owner.expandable ? kSegmentUnmapWord : kSegmentFreeWord, address, owner);
        }
    }
    owners_.clear();
}

// ---- checkpoints --------------------------------------------------------------------------------

// A checkpoint lists the whole state again. Only the differences are changes.
void SnapshotEntries::begin_checkpoint() {
    former_ = Former{state_.snapshot(device_), owners_, !any_memory_};
    silent_ = true;
}

void SnapshotEntries::end_checkpoint() {
    const Former former = *std::move(former_);
    former_.reset();
    silent_ = false;
    const HeapSnapshot heap = state_.snapshot(device_);
    event_.origin = 0;  // the checkpoint's events freed nothing
    if (former.first) {
        // Memory from before the recording. A history has no entries for it, only for its labels.
        for (const HeapBlock& block : heap.blocks) {
            if (block.state != BlockState::kFree && label_of(origin_of(block.allocated_by)) != 0) {
                tell_block(kAnnotateWord, block);
            }
        }
        return;
    }
    for (const HeapBlock& block : former.heap.blocks) {
        const HeapBlock* const now = block_at(heap, block.address);
        if (block.state != BlockState::kFree &&
            (now == nullptr || !same_block(block, *now) ||
             (block.state == BlockState::kPending && now->state == BlockState::kLive))) {
            tell_end_of(block);
        }
    }
    for (const auto& [address, owner] : former.owners) {
        if (!has_segment(owners_, address, owner)) {
            tell_segment(owner.expandable ? kSegmentUnmapWord : kSegmentFreeWord, address, owner);
        }
    }
    for (const auto& [address, owner] : owners_) {
        if (!has_segment(former.owners, address, owner)) {
            tell_segment(owner.expandable ? kSegmentMapWord : kSegmentAllocWord, address, owner);
        }
    }
    for (const HeapBlock& block : heap.blocks) {
        if (block.state == BlockState::kFree) {
            continue;
        }
        const HeapBlock* const before = block_at(former.heap, block.address);
        const bool same = before != nullptr && same_block(block, *before);
        if (!same || (before->state == BlockState::kPending && block.state == BlockState::kLive)) {
            tell_block(kAllocWord, block);
        }
        if (block.state == BlockState::kPending && (!same || before->state == BlockState::kLive)) {
            tell_block(kFreeRequestedWord, block);
        }
    }
}

// ---- entries ------------------------------------------------------------------------------------

void SnapshotEntries::tell(const Entry& entry) {
    if (silent_) {
        return;
    }
    // The driver maps and unmaps page by page, but a history has whole ranges.
    if (range_ && range_->action == entry.action && range_->origin == entry.origin &&
        range_->stream == entry.stream && range_->pool == entry.pool &&
        range_->address + range_->size_bytes == entry.address) {
        range_->size_bytes += entry.size_bytes;
        return;
    }
    write_range();
    if (entry.action == kSegmentMapWord || entry.action == kSegmentUnmapWord) {
        range_ = entry;
    } else {
        write_entry(entry);
    }
}

void SnapshotEntries::write_range() {
    if (range_) {
        write_entry(*range_);
        range_.reset();
    }
}

void SnapshotEntries::write_entry(const Entry& entry) {
    const auto number = [this](Word key, std::uint64_t value) {
        pickle_.item();
        stacks_.word(key);
        pickle_.number(value);
    };
    pickle_.item();
    pickle_.begin_dict();
    pickle_.item();
    stacks_.word(kAction);
    stacks_.word(entry.action);
    if (entry.action == kOomWord) {
        number(kDeviceFree, entry.device_free_bytes);
    } else {
        number(kAddr, shown_address(entry.address));
    }
    number(kSize, entry.size_bytes);
    number(kStream, raw_stream(timeline_, entry.stream));
    if (has_times_) {
        number(kTimeUs, unix_us(timeline_, entry.time_ns));
    }
    const auto pool = pool_id(timeline_, entry.pool);
    if (pool != std::pair<std::uint64_t, std::uint64_t>{}) {
        pickle_.item();
        stacks_.word(kPoolId);
        pickle_.pair(pool.first, pool.second);
    }
    if (const std::uint32_t label = label_of(entry.origin); label != 0) {
        pickle_.item();
        stacks_.word(kUserMetadata);
        stacks_.text(text_of(timeline_, label));
    }
    pickle_.item();
    stacks_.word(kFrames);
    stacks_.frames(entry.origin);
    pickle_.end_dict();
}

}  // namespace fragtrace::analyzer
