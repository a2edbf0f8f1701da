// The history of one device as entries of a PyTorch memory snapshot, and the state at its end.
#pragma once

#include "analyzer/export/snapshot_stack_writer.h"
#include "analyzer/model/recorded_state.h"
#include "analyzer/model/recorded_watch.h"
#include "analyzer/model/request_outcomes.h"
#include "analyzer/model/timeline.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// The request for which the pool called the driver, by the event of that call.
class DriverCallRequests {
  public:
    // Reads all events.
    explicit DriverCallRequests(const Timeline& timeline);

    // kNoEvent = not known. Call it with ascending events.
    EventIndex of(EventIndex call);

  private:
    std::vector<std::pair<EventIndex, EventIndex>> requests_;  // descending
};

// Facts about a segment that the recorded state does not keep.
struct SegmentOwner {
    std::uint64_t size_bytes = 0;
    OriginId origin = 0;
    StreamId stream = kNoStream;
    std::uint32_t pool = 0;
    bool expandable = false;
};

struct DeviceEnd {
    DeviceId device = 0;
    bool has_pool = false;
    HeapSnapshot heap;
    std::map<DeviceAddress, SegmentOwner> owners;  // may divide an expandable segment
};

class SnapshotEntries : public RecordedWatch {
  public:
    // All must outlive the object.
    SnapshotEntries(PickleWriter* pickle,
                    SnapshotStackWriter* stacks,
                    const Timeline& timeline,
                    DeviceId device);

    // Writes the items of a list, which is open.
    DeviceEnd write();

    void block_begins(const RecordedBlock& block) override;
    void block_waits(const RecordedBlock& block) override;
    void block_ends(const RecordedBlock& block) override;
    void segment_begins(const RecordedSegment& segment) override;
    void range_ends(const RecordedSegment* segment,
                    DeviceAddress begin,
                    DeviceAddress end) override;
    void all_ends() override;

    void pool_changes(std::uint32_t, bool) override {}

  private:
    struct Entry {
        Word action = kAllocWord;
        DeviceAddress address = 0;
        std::uint64_t size_bytes = 0;
        StreamId stream = kNoStream;
        std::uint32_t pool = 0;
        OriginId origin = 0;
        std::uint64_t time_ns = 0;
        std::uint64_t device_free_bytes = 0;  // kOomWord
    };

    // The state that a checkpoint replaces.
    struct Former {
        HeapSnapshot heap;
        std::map<DeviceAddress, SegmentOwner> owners;
        bool first = false;  // no event before the checkpoint concerns memory
    };

    void step(EventIndex index);
    void tell(const Entry& entry);
    void write_range();
    void write_entry(const Entry& entry);
    void tell_block(Word action, const HeapBlock& block);
    void tell_segment(Word action, DeviceAddress address, const SegmentOwner& owner);
    void tell_end_of(const HeapBlock& block);
    void tell_out_of_memory();
    void begin_checkpoint();
    void end_checkpoint();
    [[nodiscard]] static HeapBlock as_heap_block(const RecordedBlock& block);
    [[nodiscard]] OriginId origin_of(EventIndex event) const;
    [[nodiscard]] std::uint32_t label_of(OriginId origin) const;

    PickleWriter& pickle_;
    SnapshotStackWriter& stacks_;
    const Timeline& timeline_;
    DeviceId device_;
    bool has_times_;
    RecordedState state_;
    RequestOutcomes outcomes_;
    DriverCallRequests requests_;
    EventIndex now_ = 0;
    Event event_ = {};               // the current one
    EventIndex request_ = kNoEvent;  // for which the current event calls the driver
    bool refused_ = false;           // the driver refused the pool's request in progress
    bool any_memory_ = false;        // an event before the current one concerns memory
    std::optional<Former> former_;   // in a checkpoint
    bool silent_ = false;            // in a checkpoint
    std::optional<Entry> range_;     // mapped or unmapped; the next entry may continue it
    std::map<DeviceAddress, SegmentOwner> owners_;  // of all segments
};

// The address that a snapshot shows. Memory without an address of its own has a stand-in that is
// higher than the addresses that readers accept.
DeviceAddress shown_address(DeviceAddress address);
// The raw handle; 0 = the default stream, or not known.
std::uint64_t raw_stream(const Timeline& timeline, StreamId stream);
// PyTorch's id of a pool; (0, 0) = the default pool, or a pool of another allocator.
std::pair<std::uint64_t, std::uint64_t> pool_id(const Timeline& timeline, std::uint32_t pool);
// Microseconds since 1970.
std::uint64_t unix_us(const Timeline& timeline, std::uint64_t time_ns);
// The requested bytes; the block's bytes if they are not known.
std::uint64_t known_request(const HeapBlock& block);

}  // namespace fragtrace::analyzer
