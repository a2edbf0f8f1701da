// Turns the history of one device of a snapshot into events: first the initial state, then one
// entry after the other.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/pools/pytorch/pytorch_config.h"
#include "analyzer/snapshot/expandable_ranges.h"
#include "analyzer/snapshot/snapshot.h"
#include "analyzer/snapshot/snapshot_start.h"

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

namespace fragtrace::analyzer {

class SnapshotHistory {
  public:
    // Receives an event and the label of its block, an index into Snapshot::labels.
    using Emit = std::function<void(const EventRecord&, std::uint32_t label)>;

    // All must outlive the history.
    SnapshotHistory(const Snapshot* snapshot,
                    const SnapshotStart* start,
                    std::uint32_t device,
                    const PytorchConfig* config,
                    const Emit& emit);

    void tell_start();

    [[nodiscard]] bool at_end() const { return next_ == entries_.size(); }

    [[nodiscard]] std::uint64_t next_time_us() const { return entries_[next_].time_us; }

    // Counts so far: frees that waited for streams, and releases without a known reason.
    [[nodiscard]] std::uint64_t pending_frees() const { return pending_frees_; }

    [[nodiscard]] std::uint64_t unexplained_releases() const { return unexplained_releases_; }

    [[nodiscard]] bool has_expandable() const { return has_expandable_; }

    // Emits the events of the next entry, with this time.
    void tell_next(std::uint64_t time_ns);

  private:
    void emit(const EventRecord& event, std::uint32_t label = 0) const { emit_(event, label); }

    EventRecord event_of(const SnapshotEntry& entry, EventKind kind) const;
    void tell_without_pool(const SnapshotEntry& entry);
    void free_requested(const SnapshotEntry& entry);
    void free_completed(const SnapshotEntry& entry);
    void tell_pending(EventRecord event);
    void tell_range(EventRecord event, bool small);
    void tell_reservation(EventRecord event);
    void tell_unmapped(EventRecord event);
    [[nodiscard]] std::size_t range_of(std::uint64_t address) const;
    void tell_free_memory(const SnapshotEntry& oom);
    void begin_release();
    void refuse(const SnapshotEntry& request);
    [[nodiscard]] std::uint64_t driver_bytes(const SnapshotEntry& request) const;

    const Snapshot& snapshot_;
    const SnapshotStart& start_;
    const PytorchConfig& config_;
    const Emit& emit_;
    std::uint16_t device_;
    bool has_pool_;
    std::span<const SnapshotEntry> entries_;
    std::size_t next_ = 0;
    std::uint64_t time_ns_ = 0;
    // Entries before this index belong to a release that was emitted already.
    std::size_t release_end_ = 0;
    std::unordered_map<std::uint64_t, std::uint64_t> pending_;  // address -> its pending event
    std::uint64_t next_event_ = 1;
    std::vector<ExpandableRange> ranges_;
    std::vector<std::uint64_t> range_mapped_bytes_;
    std::uint64_t reserved_bytes_ = 0;
    std::uint64_t pending_frees_ = 0;
    std::uint64_t unexplained_releases_ = 0;
    bool has_expandable_ = false;
    std::uint64_t counted_pages_ = 0;
};

}  // namespace fragtrace::analyzer
