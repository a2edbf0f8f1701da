// What was: the memory of every device as the trace recorded it, event by event.
//
// Two layers. Device layer: segments of the framework's pool, other allocations of the process,
// reservations, physical handles and mappings. Block layer: the blocks inside the pool's segments.
// On a device without any block layer ("direct") every allocation of the device layer is a segment
// with one block; memory that has no address of its own has a stand-in. Sums are kept up to date
// with every event, the rest is computed on demand. The invariants of docs/metrics.md are checked
// on every event and violations counted; nothing aborts. Stream-ordered allocations are as others;
// managed and host memory is no part of a device's sums. Copyable (checkpoints); not thread-safe.
#pragma once

#include "analyzer/model/block_map.h"
#include "analyzer/model/contexts.h"
#include "analyzer/model/device_layer.h"
#include "analyzer/model/heap_snapshot.h"
#include "analyzer/model/physical_memory.h"
#include "analyzer/model/recorded_watch.h"
#include "analyzer/model/segment_map.h"
#include "analyzer/model/timeline.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace fragtrace::analyzer {

// docs/metrics.md has the definitions. allocated = requested + rounding + slack.
struct MemoryTotals {
    std::uint64_t requested = 0;  // live blocks; an unknown request counts as its whole block
    std::uint64_t rounding = 0;
    std::uint64_t slack = 0;
    std::uint64_t allocated = 0;
    std::uint64_t pending = 0;
    std::uint64_t reserved = 0;   // the pool's segments; of expandable ones what is mapped
    std::uint64_t other = 0;      // what this process has from the driver beside the pool
    std::uint64_t past_pool = 0;  // part of other: kFlagPastPool
    // All that this process has from the driver. Where there is no pool, all of it is allocated and
    // reserved.
    std::uint64_t own = 0;
    std::uint64_t blocks = 0;            // live
    std::uint64_t requests_unknown = 0;  // live blocks whose requested size is not known

    [[nodiscard]] std::uint64_t active() const { return allocated + pending; }

    [[nodiscard]] std::uint64_t free_pool() const { return reserved - active(); }

    // Of own: the pool's. More than reserved while its physical memory is not mapped.
    [[nodiscard]] std::uint64_t own_pool() const { return own - std::min(own, other); }
};

// The last report of the driver about a device; the last settled one once there is one.
struct MemorySample {
    EventIndex event = kNoEvent;  // kNoEvent = none yet
    std::uint64_t total_bytes = 0;
    std::uint64_t free_bytes = 0;
    std::uint64_t own_bytes = 0;  // MemoryTotals at that moment
    std::uint64_t own_pool_bytes = 0;
    std::uint64_t past_pool_bytes = 0;
    bool settled = false;  // no other thread was in a call that may change memory
};

struct Violations {
    std::uint64_t count = 0;
    std::vector<std::string> first;  // the first few, one line each
};

// Which devices a trace has, and which of them a caching pool: known before its first event is
// applied where all of it can be looked at.
struct RecordedDevices {
    explicit RecordedDevices(const std::map<std::string, std::string>& facts);
    // Of all events of the timeline.
    explicit RecordedDevices(const Timeline& timeline);

    void add(const Event& event) { add(event.kind, event.device, event.flags); }

    bool may_have_pool = true;
    std::array<bool, kMaxDevices + 1> used = {};
    std::array<bool, kMaxDevices + 1> has_pool = {};

  private:
    void add(EventKind kind, DeviceId device, std::uint8_t flags);
};

class RecordedState {
  public:
    // The timeline must outlive the state.
    explicit RecordedState(const Timeline& timeline);
    // For events that come one by one, and that nobody keeps: apply() instead of advance().
    RecordedState() = default;

    // The same, but all devices are known: follow() instead of advance().
    explicit RecordedState(const RecordedDevices& devices);
    void follow(const Event& event, std::uint32_t pool);

    // `pool`: the number of the event's pool. What a timeline tells from its start, which devices
    // there are and whether they have a block layer, is learned on the way.
    void apply(const Event& event, std::uint32_t pool);

    // Applies the next event.
    void advance();
    // Applies all events before `end`.
    void advance_to(EventIndex end);

    // Tells `watch`, which must live as long, of all that happens on a device from now on. Copies
    // of the state tell it too.
    void watch(DeviceId device, RecordedWatch* watch) { devices_[device].watch = watch; }

    // The pool's segments as they are now, ascending by address.
    [[nodiscard]] SegmentMap::View segments(DeviceId device) const {
        return devices_[device].segments.segments();
    }

    // The last of them that begins at or before this address; nullptr when there is none.
    [[nodiscard]] const RecordedSegment* segment_before(DeviceId device,
                                                        DeviceAddress address) const {
        return devices_[device].segments.at_or_before(address);
    }

    // The event that advance() would apply.
    [[nodiscard]] EventIndex position() const { return position_; }

    // Devices with any memory event in the whole trace (so far, with apply()), ascending.
    [[nodiscard]] const std::vector<DeviceId>& devices() const { return devices_used_; }

    // False: the device is "direct", its allocations are taken as blocks.
    [[nodiscard]] bool has_block_layer(DeviceId device) const;

    [[nodiscard]] const MemoryTotals& totals(DeviceId device) const;
    [[nodiscard]] const MemorySample& sample(DeviceId device) const;

    [[nodiscard]] const Violations& violations() const { return violations_; }

    // As violations, but consequences of times in which nothing was recorded.
    [[nodiscard]] std::uint64_t after_gap() const { return after_gap_; }

    // Blocks whose memory is not mapped or not known: no part of any sum.
    [[nodiscard]] std::uint64_t detached_blocks(DeviceId device) const;

    // What it holds, in entries of its tables: in proportion to what the process holds, however
    // many events there were.
    [[nodiscard]] std::size_t entries() const;

    // Computed on demand: cost in proportion to the number of blocks.
    [[nodiscard]] HeapSnapshot snapshot(DeviceId device) const;
    [[nodiscard]] std::uint64_t releasable_bytes(DeviceId device) const;
    [[nodiscard]] std::uint64_t largest_free_bytes(DeviceId device) const;
    // What the driver could still give, from the last sample; 0 if there was none.
    [[nodiscard]] std::uint64_t device_free_bytes(DeviceId device) const;

  private:
    struct Other {
        std::uint64_t size_bytes;
        bool past_pool;
        EventIndex allocated_by;
    };

    // Memory without an address of its own.
    struct Unaddressed {
        std::uint64_t size_bytes = 0;
        DeviceAddress place = 0;  // its stand-in address where it is a block; 0 = none
    };

    struct DeviceState {
        bool direct = true;
        MemoryTotals totals;
        MemorySample sample;
        SegmentMap segments;
        BlockMap blocks;
        std::map<DeviceAddress, RecordedBlock> detached;
        std::map<DeviceAddress, Other> others;                  // cudaMallocs outside the pool
        std::unordered_map<std::uint64_t, Unaddressed> arrays;  // by handle
        Unaddressed graphs;                                     // reserved by launched graphs
        DeviceAddress next_stand_in = kFirstStandInAddress;
        std::unordered_map<std::uint64_t, std::vector<DeviceAddress>> stand_ins;  // free, by room
        std::set<std::uint32_t> pools_released;  // private pools without a user
        // By private pool, where blocks in its segments have begun since its last rewind.
        std::unordered_map<std::uint32_t, std::set<DeviceAddress>> begun_in_pool;
        RecordedWatch* watch = nullptr;
    };

    struct Reservation {
        std::uint64_t size_bytes;
        EventIndex event;
        StreamId stream;             // kNoStream unless a checkpoint says it
        std::uint32_t private_pool;  // with it
    };

    struct Waiting {
        DeviceAddress address;
        EventIndex allocated_by;
        DeviceId device;
    };

    void know(const RecordedDevices& devices);
    void apply_known(const Event& event);
    void learn(const Event& event);
    void becomes_pool(DeviceId id);

    void device_alloc(DeviceState* device, const Event& event);
    void device_free(DeviceState* device, const Event& event);
    [[nodiscard]] bool went_with_context(DeviceId device, EventIndex allocated_by) const;
    static void forget_other(DeviceState* device, std::map<DeviceAddress, Other>::iterator other);
    void device_reset(DeviceId device);
    Unaddressed hold(DeviceState* device, std::uint64_t size_bytes);
    void let_go(DeviceState* device, const Unaddressed& held);
    void physical_create(const Event& event);
    void physical_release(const Event& event);
    void physical_begins(PhysicalPiece* piece, bool of_pool);
    void physical_ends(const PhysicalPiece& piece);
    void array_alloc(DeviceState* device, const Event& event);
    void array_free(DeviceState* device, const Event& event);
    void graph_memory(DeviceState* device, const Event& event);
    void forget_all();
    void map(const Event& event);
    void unmap(const Event& event);
    void block_alloc(DeviceState* device, const Event& event);
    void block_free(DeviceState* device, const Event& event);
    void pending_event(const Event& event);
    void event_complete(const Event& event);
    void pool_rewind(DeviceState* device, std::uint32_t pool);
    static void pool_changes(DeviceState* device, std::uint32_t pool, bool released);

    void add_segment(DeviceState* device, const RecordedSegment& segment);
    void remove_range(DeviceState* device, DeviceAddress begin, DeviceAddress end, bool unmapped);
    RecordedSegment* segment_for(DeviceState* device, const RecordedBlock& block);
    void clear_way(DeviceState* device, const RecordedBlock& block);
    void attach(DeviceState* device, RecordedSegment* segment, const RecordedBlock& block);
    void reattach(DeviceState* device, DeviceAddress begin, DeviceAddress end);
    void drop(DeviceState* device, BlockMap::Position position);
    void take_sample(DeviceState* device, const Event& event);
    void check_sums(const DeviceState& device);
    void violation(const std::string& what);
    template <typename Act>
    void for_device_or_all(DeviceId device, Act act);
    static bool may_release(const DeviceState& device, const RecordedSegment& segment);
    template <typename Visit>
    void visit_ranges(const DeviceState& device, Visit visit) const;

    const Timeline* timeline_ = nullptr;
    EventIndex position_ = 0;
    std::size_t pool_cursor_ = 0;
    std::uint32_t pool_ = 0;  // of the event at position_
    std::vector<DeviceId> devices_used_;
    std::array<DeviceState, kMaxDevices + 1> devices_;  // the last: not known
    std::map<DeviceAddress, Reservation> reservations_;
    PhysicalMemory physical_;
    Contexts contexts_;
    std::unordered_multimap<std::uint64_t, Waiting> waiting_;  // by event handle
    Violations violations_;
    std::uint64_t after_gap_ = 0;
    bool gap_ = false;
};

}  // namespace fragtrace::analyzer
