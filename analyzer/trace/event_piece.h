// The events of one chunk, packed as in the table of a timeline. Origins, streams and wide values
// depend on the whole trace, so a piece has its own numbers for them.
//
// Pieces can be made on any thread and in any order. TimelineBuilder joins them in the file's
// order. A piece can be reused for other chunks and then keeps its memory.
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
        std::uint64_t first = 0;  // first of successive sequence numbers
        std::uint32_t count = 0;
    };

    // `first_event` is the expected index of the first event in the table. If it is correct, most
    // of the events need not be packed again. Returns false if the payload is damaged.
    bool decode(const Chunk& chunk, std::uint64_t first_event);

    [[nodiscard]] std::size_t size() const { return head_.size() + packed_.size(); }

    // The events before the first one that begins a group of the table.
    [[nodiscard]] const std::vector<Event>& head() const { return head_; }

    // The events after head(), in groups of PackingBase::kEvents; the last group may be shorter.
    [[nodiscard]] const std::vector<PackedEvent>& packed() const { return packed_; }

    [[nodiscard]] const std::vector<PackingBase>& bases() const { return bases_; }

    [[nodiscard]] const std::vector<std::uint64_t>& wide() const { return wide_; }

    // Any event, from head() or packed().
    [[nodiscard]] Event event(std::size_t at) const;

    // In the order in which the events first refer to them.
    [[nodiscard]] const std::vector<Origin>& origins() const { return origins_; }

    // If there are more than kNoStream streams, only the last event refers to the last one.
    [[nodiscard]] const std::vector<std::uint64_t>& streams() const { return streams_; }

    [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }

    // (index in the piece, value) of all values other than 0, ascending.
    using Sparse = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

    [[nodiscard]] const Sparse& durations() const { return durations_; }

    [[nodiscard]] const Sparse& pools() const { return pools_; }

    // Indices of remark events in the piece, ascending.
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

    // A small cache of recent look-ups, indexed by hash, because events of many origins alternate.
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
