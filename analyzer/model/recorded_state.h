// The recorded memory of every device, event by event.
//
// There are two layers. Device layer: segments of the framework's pool, other allocations of the
// process, reservations, physical handles and mappings. Block layer: the blocks inside the pool's
// segments. On a device without a block layer ("direct"), every allocation of the device layer is a
// segment with one block; memory without an address of its own gets a stand-in address.
//
// Sums are updated with every event; everything else is computed on demand. Every event is checked
// against the invariants of docs/metrics.md. Violations are counted; nothing aborts. Stream-ordered
// allocations are treated like other allocations. Managed and host memory is not part of a device's
// sums. Copyable (checkpoints); not thread-safe.
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
    // The pool's segments; of expandable ones the mapped bytes. Other segments count also while a
    // sleep mode has unmapped them.
    std::uint64_t reserved = 0;
    std::uint64_t unmapped = 0;   // part of reserved: segments without memory
    std::uint64_t other = 0;      // driver memory of this process outside the pool
    std::uint64_t past_pool = 0;  // part of other: kFlagPastPool
    // All driver memory of this process. Without a pool, all of it counts as allocated and
    // reserved.
    std::uint64_t own = 0;
    std::uint64_t blocks = 0;            // live blocks
    std::uint64_t requests_unknown = 0;  // live blocks whose requested size is not known

    [[nodiscard]] std::uint64_t active() const { return allocated + pending; }

    [[nodiscard]] std::uint64_t free_pool() const { return reserved - active(); }

    // The pool's part of own. It exceeds reserved while some of the pool's physical memory is
    // unmapped, and is less while segments have no memory (sleep modes).
    [[nodiscard]] std::uint64_t own_pool() const { return own - std::min(own, other); }
};

// The driver's last report about a device; from the first settled report on, the last settled one.
struct MemorySample {
    EventIndex event = kNoEvent;  // kNoEvent = none yet
    std::uint64_t total_bytes = 0;
    std::uint64_t free_bytes = 0;  // as reported, less kept_bytes
    std::uint64_t own_bytes = 0;   // MemoryTotals at that moment
    std::uint64_t own_pool_bytes = 0;
    std::uint64_t past_pool_bytes = 0;
    bool settled = false;  // no other thread was in a call that may change memory
    // At least this much of the reported free memory cannot be allocated: the driver refused a
    // request that was smaller than what it reported as free. A real driver keeps a few MiB.
    std::uint64_t kept_bytes = 0;
};

struct Violations {
    std::uint64_t count = 0;
    std::vector<std::string> first;  // one line for each of the first few
};

// The devices of a trace, and which of them have a caching pool. If the whole trace is available,
// this is known before its first event is applied.
struct RecordedDevices {
    explicit RecordedDevices(const std::map<std::string, std::string>& facts);
    // Reads all events of the timeline.
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
    // For events that arrive one by one and are not stored: use apply() instead of advance().
    RecordedState() = default;

    // For the same kind of events when all devices are known: use follow() instead of advance().
    explicit RecordedState(const RecordedDevices& devices);
    void follow(const Event& event, std::uint32_t pool);

    // `pool` is the number of the event's pool. The set of devices, and whether they have a block
    // layer, is learned from the events as they arrive.
    void apply(const Event& event, std::uint32_t pool);

    // Applies the next event.
    void advance();
    // Applies all events before `end`.
    void advance_to(EventIndex end);

    // Reports all further changes on a device to `watch`, which must outlive the state. Copies of
    // the state report to it, too.
    void watch(DeviceId device, RecordedWatch* watch) { devices_[device].watch = watch; }

    // The current segments of the pool, ascending by address.
    [[nodiscard]] SegmentMap::View segments(DeviceId device) const {
        return devices_[device].segments.segments();
    }

    // The last segment that begins at or before this address; nullptr if there is none.
    [[nodiscard]] const RecordedSegment* segment_before(DeviceId device,
                                                        DeviceAddress address) const {
        return devices_[device].segments.at_or_before(address);
    }

    // The event that advance() would apply.
    [[nodiscard]] EventIndex position() const { return position_; }

    // Devices with any memory event in the whole trace (with apply(): so far), ascending.
    [[nodiscard]] const std::vector<DeviceId>& devices() const { return devices_used_; }

    // Returns false for a "direct" device: each of its allocations counts as one block.
    [[nodiscard]] bool has_block_layer(DeviceId device) const;

    [[nodiscard]] const MemoryTotals& totals(DeviceId device) const;
    [[nodiscard]] const MemorySample& sample(DeviceId device) const;

    [[nodiscard]] const Violations& violations() const { return violations_; }

    // Like violations, but only those that follow from a gap in recording.
    [[nodiscard]] std::uint64_t after_gap() const { return after_gap_; }

    // Blocks whose memory is unmapped or unknown. No sum includes them.
    [[nodiscard]] std::uint64_t detached_blocks(DeviceId device) const;

    // The size of this object in table entries. It grows with the memory that the process has, not
    // with the number of events.
    [[nodiscard]] std::size_t entries() const;

    // Computed on demand; the cost grows with the number of blocks.
    [[nodiscard]] HeapSnapshot snapshot(DeviceId device) const;
    [[nodiscard]] std::uint64_t releasable_bytes(DeviceId device) const;
    [[nodiscard]] std::uint64_t largest_free_bytes(DeviceId device) const;
    // The memory that the driver could still allocate, from the last sample; 0 if there was none.
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
        DeviceAddress place = 0;  // stand-in address if it is a block; 0 = none
    };

    struct Refusal {
        EventIndex event = kNoEvent;
        std::uint64_t size_bytes = 0;
        std::uint64_t own_bytes = 0;  // MemoryTotals at that moment
    };

    struct DeviceState {
        bool direct = true;
        MemoryTotals totals;
        MemorySample sample;
        Refusal refusal;               // the driver's last one
        std::uint64_t kept_bytes = 0;  // see MemorySample
        SegmentMap segments;
        BlockMap blocks;
        std::map<DeviceAddress, RecordedBlock> detached;
        std::map<DeviceAddress, Other> others;                  // cudaMallocs outside the pool
        std::unordered_map<std::uint64_t, Unaddressed> arrays;  // by array handle
        Unaddressed graphs;                                     // reserved by launched graphs
        DeviceAddress next_stand_in = kFirstStandInAddress;
        std::unordered_map<std::uint64_t, std::vector<DeviceAddress>> stand_ins;  // free, by size
        std::set<std::uint32_t> pools_released;  // private pools without a user
        // Per private pool: addresses of blocks allocated in its segments since its last rewind.
        std::unordered_map<std::uint32_t, std::set<DeviceAddress>> begun_in_pool;
        RecordedWatch* watch = nullptr;
    };

    struct Reservation {
        DeviceAddress address;
        std::uint64_t size_bytes;
        EventIndex event;
        StreamId stream;             // kNoStream unless a checkpoint states it
        std::uint32_t private_pool;  // known only together with the stream
        bool is_segment;             // one segment of the pool covers it, mapped or not
        DeviceId device;             // is_segment: of its memory
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
    [[nodiscard]] std::uint64_t kept_at(const DeviceState& device, const Event& info) const;
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
    Reservation* reservation_of(DeviceAddress address);
    Reservation* own_reservation(DeviceAddress address, std::uint64_t size_bytes);
    void map(const Event& mapped);
    void address_free(const Event& event);
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
    BlockMap::Position clear_way(DeviceState* device, const RecordedBlock& block);
    void attach(DeviceState* device,
                RecordedSegment* segment,
                const RecordedBlock& block,
                BlockMap::Position next = {});
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
    std::uint32_t pool_ = 0;  // pool of the event at position_
    std::vector<DeviceId> devices_used_;
    std::array<DeviceState, kMaxDevices + 1> devices_;  // the last entry: device not known
    std::map<DeviceAddress, Reservation> reservations_;
    PhysicalMemory physical_;
    Contexts contexts_;
    std::unordered_multimap<std::uint64_t, Waiting> waiting_;  // by handle of the CUDA event
    Violations violations_;
    std::uint64_t after_gap_ = 0;
    bool gap_ = false;
};

}  // namespace fragtrace::analyzer
