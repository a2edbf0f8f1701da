// Turns the chunks of a trace into a Timeline: interns, orders, removes duplicates, pairs.
//
// The input is untrusted: ids out of range become 0, and tables cannot grow beyond what the size of
// the file allows. Not thread-safe.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/model/pair_map.h"
#include "analyzer/model/timeline.h"
#include "analyzer/trace/chunk_scanner.h"
#include "analyzer/trace/event_piece.h"
#include "analyzer/trace/pairing.h"
#include "analyzer/trace/sequence_numbers.h"

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

class TimelineBuilder {
  public:
    static constexpr std::uint64_t kMaxEvents = 0xfffffff0u;  // an EventIndex has 32 bits

    // `file_bytes`, the size of the file in bytes, limits the tables. Events beyond the first
    // `max_events` are left out, and a note says how many.
    explicit TimelineBuilder(std::uint64_t file_bytes, std::uint64_t max_events = kMaxEvents);

    // Returns false, and adds nothing, if the payload cannot be decoded.
    bool add_chunk(const Chunk& chunk);

    void add_event(const EventRecord& event);
    // Adds the decoded events of one chunk.
    void add_piece(const EventPiece& piece);
    // Adds those of the nodes [first, first + nodes.size()) that are not known yet.
    bool add_nodes(std::uint64_t first, const std::vector<StackNode>& nodes);
    bool add_codes(const std::uint8_t* payload, std::size_t size_bytes, std::uint32_t count);
    void add_facts(std::string_view text);

    void add_fact(const std::string& key, std::string value) {
        timeline_.facts[key] = std::move(value);
    }

    // Sorts the events and drops duplicates (the first one stays).
    void put_in_order();
    // Call after put_in_order(). The last stop or start event decides.
    [[nodiscard]] bool recording_is_stopped() const;
    // Call after put_in_order(). Whether there is an event with this sequence number.
    [[nodiscard]] bool has_event(std::uint64_t sequence) const;
    // The number of leading stack nodes without a missing one, including the root.
    [[nodiscard]] std::uint32_t whole_nodes() const;
    [[nodiscard]] bool has_code(std::uint32_t id) const;

    [[nodiscard]] std::size_t event_count() const { return timeline_.events.size(); }

    [[nodiscard]] bool ended() const { return ended_; }

    // Valid only if ended() is true.
    [[nodiscard]] Ending ending() const { return timeline_.ending; }

    // When the process exited, since the start of the trace. nullopt: not known, or it did not
    // exit.
    [[nodiscard]] std::optional<std::uint64_t> end_ns() const { return end_ns_; }

    [[nodiscard]] const std::map<std::string, std::string>& facts() const {
        return timeline_.facts;
    }

    // Returns the finished timeline, including damage from pairing and gaps. The builder is empty
    // afterwards.
    Timeline finish();

  private:
    void append(const EventPiece& piece);
    [[nodiscard]] bool any_of(std::initializer_list<EventKind> kinds) const;
    bool add_modules(const Chunk& chunk);
    bool add_end(const Chunk& chunk);
    StreamId stream_id(std::uint64_t raw);
    std::uint32_t pool_number(std::uint32_t raw);
    OriginId origin_id(const Origin& origin);
    void check_references();
    void count_missing();
    void add_call_times();
    void pair();
    void forget_pairs();

    Timeline timeline_;
    std::uint64_t file_bytes_;
    std::uint64_t max_events_;
    std::uint64_t events_left_out_ = 0;
    SequenceNumbers sequences_;        // parallel to timeline_.events
    std::bitset<256> kinds_;           // kinds that occur
    std::vector<EventIndex> remarks_;  // indices of remark events, ascending
    // Pairs the events so far. Empty once events arrive out of order.
    std::optional<EventPairing> pairing_;
    bool in_order_ = true;
    bool ended_ = false;
    std::optional<std::uint64_t> end_ns_;
    std::vector<std::uint8_t> node_known_;
    std::vector<std::uint8_t> code_known_;
    PairMap stream_ids_;
    PairMap origin_ids_;
    Origin last_origin_;
    OriginId last_origin_id_ = 0;
    bool too_many_streams_ = false;
    std::unordered_set<std::uint32_t> known_pools_;
    std::uint32_t last_pool_ = 0;
    bool too_many_pools_ = false;
    std::uint64_t nodes_missing_ = 0;  // skipped numbers
    std::uint64_t codes_missing_ = 0;  // skipped numbers
    EventPiece piece_;
    std::vector<OriginId> piece_origins_;  // for the piece that is being appended
    std::vector<StreamId> piece_streams_;
};

}  // namespace fragtrace::analyzer
