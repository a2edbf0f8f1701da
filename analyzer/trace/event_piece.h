// The events of one chunk, packed as the table of a timeline keeps them, but for what only the
// whole trace knows: origins, streams and wide values are numbered within the piece.
//
// Pieces can be made on any thread, in any order, and are put together in the file's order by
// TimelineBuilder. A piece is used again for other chunks and keeps its memory.
#pragma once

#include "analyzer/model/packed_event.h"
#include "analyzer/model/pair_map.h"
#include "analyzer/model/timeline.h"
#include "analyzer/trace/chunk_scanner.h"
#include "analyzer/trace/event_columns.h"

#include <array>
#include <bitset>
#include <cstdint>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

class EventPiece {
  public:
    struct Run {
        std::uint64_t first = 0;  // successive sequence numbers from here on
        std::uint32_t count = 0;
    };

    // `first_event`: where the events will lie in the table, as far as one can tell; where that
    // comes true, most of them need not be packed again. False: the payload is damaged.
    bool decode(const Chunk& chunk, std::uint64_t first_event);

    [[nodiscard]] std::size_t size() const { return head_.size() + packed_.size(); }

    // Events in front of the first that begins a group of the table.
    [[nodiscard]] const std::vector<Event>& head() const { return head_; }

    // Those behind, in groups of PackingBase::kEvents, the last maybe shorter.
    [[nodiscard]] const std::vector<PackedEvent>& packed() const { return packed_; }

    [[nodiscard]] const std::vector<PackingBase>& bases() const { return bases_; }

    [[nodiscard]] const std::vector<std::uint64_t>& wide() const { return wide_; }

    // Any event, head or packed.
    [[nodiscard]] Event event(std::size_t at) const;

    // In the order in which events name them.
    [[nodiscard]] const std::vector<Origin>& origins() const { return origins_; }

    // If they are more than kNoStream, the last event alone has the last of them.
    [[nodiscard]] const std::vector<std::uint64_t>& streams() const { return streams_; }

    [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }

    // (place in the piece, value) of what is not 0, ascending.
    using Sparse = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

    [[nodiscard]] const Sparse& durations() const { return durations_; }

    [[nodiscard]] const Sparse& pools() const { return pools_; }

    // Places of events that are remarks, ascending.
    [[nodiscard]] const std::vector<std::uint32_t>& remarks() const { return remarks_; }

    [[nodiscard]] const std::bitset<256>& kinds() const { return kinds_; }

  private:
    void clear();
    void add_head(const EventBlock& block);
    void add_group(const EventBlock& block);
    void add_columns(const EventBlock& block, std::uint32_t first);
    void number(const EventBlock& block);
    [[nodiscard]] Event event_of(const EventBlock& block, std::uint32_t i) const;
    OriginId new_origin_id(const Origin& origin, std::uint64_t stacks);
    StreamId new_stream_id(std::uint64_t raw);

    EventColumns columns_;
    EventBlock block_;
    EventBlock::Column<OriginId> block_origins_;
    EventBlock::Column<StreamId> block_streams_;
    std::vector<Event> head_;
    std::vector<PackedEvent> packed_;
    std::vector<PackingBase> bases_;
    std::vector<std::uint64_t> wide_;
    std::vector<Origin> origins_;
    std::vector<std::uint64_t> streams_;
    std::vector<Run> runs_;
    Sparse durations_;
    Sparse pools_;
    std::vector<std::uint32_t> remarks_;
    std::bitset<256> kinds_;
    PairMap origin_ids_;
    PairMap stream_ids_;

    // What was looked up last, by hash: events of many origins alternate.
    struct KnownOrigin {
        std::uint64_t stacks;
        std::uint32_t thread;
        OriginId id;
    };

    static constexpr int kKnownOriginBits = 10;
    std::array<KnownOrigin, std::size_t{1} << kKnownOriginBits> known_origins_;
    std::uint64_t last_stream_ = kStreamUnknown;
    StreamId last_stream_id_ = kNoStream;
};

}  // namespace fragtrace::analyzer
