// Turns the dicts of a snapshot's pickle into the columns of a Snapshot.
//
// The input is untrusted: every number is checked, and every table has a limit. Errors go to the
// reader. Not thread-safe.
#pragma once

#include "analyzer/snapshot/pickle.h"
#include "analyzer/snapshot/snapshot.h"
#include "analyzer/snapshot/snapshot_dict.h"
#include "analyzer/snapshot/snapshot_settings.h"
#include "analyzer/snapshot/snapshot_stacks.h"
#include "analyzer/snapshot/snapshot_words.h"
#include "analyzer/support/touched_ahead.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// The histories and states of devices with a higher number are left out.
inline constexpr std::uint32_t kDevicesKept = kMaxDevices;

// The content of an entry in a block's list of former uses.
struct FormerUse {
    std::uint64_t requested_bytes = 0;
    std::uint32_t stack = 0;
};

class SnapshotRows final : public PickleSink {
  public:
    // Growing the entries would copy them.
    explicit SnapshotRows(std::size_t expected_entries) {
        auto& entries = snapshot_.entries;
        entries.reserve(expected_entries);
        touched_entries_.start(entries.data(), entries.capacity() * sizeof(SnapshotEntry));
    }

    PickleValue dict(PickleReader& reader, std::span<const PickleValue> items) override;

    // A snapshot is a dict, or, from memory_snapshot(), only the list of segments.
    bool finish(PickleReader& reader, const PickleValue& value);

    Snapshot take() {
        touched_entries_.stop();
        return std::move(snapshot_);
    }

  private:
    [[nodiscard]] bool has(Word word) const { return dict_.has(word); }

    PickleReader& reader() { return dict_.reader(); }

    PickleValue fail(std::string_view what) {
        reader().fail(what);
        return {};
    }

    // Values of the current dict.
    std::uint64_t stream();
    std::uint32_t pool(Word word);
    // The label that the thread, or an annotation, gives the block.
    std::uint32_t label();
    // Pinned memory has no device: the value is -1.
    std::uint32_t device();
    std::uint32_t stack();

    template <typename Rows>
    PickleValue add(Rows* rows,
                    const typename Rows::value_type& row,
                    SnapshotRowKind kind,
                    std::size_t most) {
        if (rows->size() >= most) {
            return fail("more entries than a snapshot has");
        }
        rows->push_back(row);
        return PickleValue::row(kind, static_cast<std::uint32_t>(rows->size() - 1));
    }

    // The current dict becomes a row.
    PickleValue entry();
    PickleValue frame();
    PickleValue block();
    PickleValue former_use();
    PickleValue segment();
    PickleValue annotation();
    PickleValue settings();
    // Handles all remaining dicts: divisions are kept, others are ignored.
    PickleValue divisions(std::span<const PickleValue> items);

    // snapshot_whole.cpp: the dict of the whole snapshot.
    PickleValue whole();
    bool take_segments(Word key, std::vector<SnapshotSegment>* segments);
    bool history(Word key, const PickleValue& list, std::pair<std::uint32_t, std::uint32_t>* range);
    void finish_columns();
    std::map<std::string, std::uint64_t> by_name(
        const std::map<std::uint32_t, std::uint64_t>& counts);

    SnapshotDict dict_;
    Snapshot snapshot_;
    TouchedAhead touched_entries_;
    SnapshotStacks stacks_;
    std::vector<SnapshotSegment> segments_;  // includes the host's segments
    std::vector<FormerUse> former_uses_;
    std::vector<SnapshotDivisions> divisions_;
    std::optional<SnapshotSettings> settings_;
    std::string release_;
    std::vector<std::uint32_t> frames_;
    std::map<std::uint32_t, std::uint32_t> labels_;  // key: text number
    std::map<std::uint32_t, std::uint64_t> unknown_actions_;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> pool_numbers_;
    bool times_known_ = true;
    bool found_ = false;
};

}  // namespace fragtrace::analyzer
