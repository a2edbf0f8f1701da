// Compares events packed chunk by chunk with the same events added one by one.
#include "analyzer/trace/event_piece.h"

#include <fragtrace/codec.h>

#include "analyzer/trace/builder.h"
#include "tests/unit/trace/event_payload.h"

#include <catch2/catch.hpp>

#include <random>
#include <vector>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::encoded;

namespace {

// Mostly allocations and frees of blocks. Sometimes any other event, so that every kind of packing
// is used.
class Program {
  public:
    explicit Program(std::uint64_t seed) : random_(seed) {}

    EventRecord next() {
        EventRecord record = {};
        sequence_ += one_in(500) ? 1 + random_() % 5 : 1;
        time_ns_ += one_in(300) ? random_() >> 30 : random_() % 5000;
        record.sequence = sequence_;
        record.time_ns = time_ns_;
        record.address = 0x7f0000000000 + (random_() % 300 << 9);
        record.kind = one_in(2) ? EventKind::kBlockAlloc : EventKind::kBlockFree;
        record.size = one_in(20) ? any() : random_() % 100'000;
        record.extra = (record.size + 511) & ~std::uint64_t{511};
        record.stream = one_in(50) ? any() : random_() % 3;
        record.thread = static_cast<std::uint32_t>(1 + random_() % 3);
        record.native_stack = static_cast<std::uint32_t>(random_() % 400);
        record.python_stack = static_cast<std::uint32_t>(random_() % 3);
        record.device = static_cast<std::uint16_t>(one_in(40) ? kDeviceUnknown : random_() % 2);
        if (one_in(15)) {
            record.kind = static_cast<EventKind>(random_() % 70);
            record.address = any();
            record.extra = any();
            record.flags = static_cast<std::uint8_t>(random_());
            record.duration_ns = static_cast<std::uint32_t>(any());
            record.pool = static_cast<std::uint32_t>(random_() % 4);
        }
        return record;
    }

    bool one_in(std::uint64_t count) { return random_() % count == 0; }

    std::uint64_t any() { return random_() >> (random_() % 64); }

    // Makes a sequence number appear twice or late.
    void step_back() { sequence_ -= random_() % std::min<std::uint64_t>(sequence_, 40); }

    // If true, no event is out of order and recording was never stopped, so pairs are found chunk
    // by chunk.
    bool regular = false;

  private:
    std::mt19937_64 random_;
    std::uint64_t sequence_ = 0;
    std::uint64_t time_ns_ = 0;
};

bool same(const Event& a, const Event& b) {
    return a.time_ns == b.time_ns && a.address == b.address && a.size_bytes == b.size_bytes &&
           a.extra == b.extra && a.origin == b.origin && a.stream == b.stream &&
           a.device == b.device && a.flags == b.flags && a.kind == b.kind;
}

void require_same(const Timeline& pieces, const Timeline& singly) {
    REQUIRE(pieces.events.size() == singly.events.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < singly.events.size(); ++i) {
        different += same(pieces.events[i], singly.events[i]) ? 0 : 1;
        different += pieces.partner[i] == singly.partner[i] ? 0 : 1;
    }
    REQUIRE(different == 0);
    REQUIRE(pieces.origins == singly.origins);
    REQUIRE(pieces.streams == singly.streams);
    REQUIRE(pieces.durations == singly.durations);
    REQUIRE(pieces.event_pools.entries() == singly.event_pools.entries());
    REQUIRE(pieces.damage.notes == singly.damage.notes);
    REQUIRE(pieces.damage.frees_without_alloc == singly.damage.frees_without_alloc);
    REQUIRE(pieces.damage.allocs_over_live == singly.damage.allocs_over_live);
    REQUIRE(pieces.damage.after_gap == singly.damage.after_gap);
    REQUIRE(pieces.gaps.size() == singly.gaps.size());
    REQUIRE(pieces.checkpoints.size() == singly.checkpoints.size());
    REQUIRE(pieces.phases.size() == singly.phases.size());
    for (std::size_t i = 0; i < singly.phases.size(); ++i) {
        REQUIRE(pieces.phases[i].begin == singly.phases[i].begin);
        REQUIRE(pieces.phases[i].end == singly.phases[i].end);
        REQUIRE(pieces.phases[i].name == singly.phases[i].name);
    }
}

}  // namespace

TEST_CASE("chunks packed separately give the same timeline as single events") {
    for (std::uint64_t round = 0; round < 40; ++round) {
        Program program(round);
        program.regular = round % 2 == 0;
        TimelineBuilder pieces(std::uint64_t{1} << 30);
        TimelineBuilder singly(std::uint64_t{1} << 30);
        EventPiece piece;
        std::uint64_t announced = 0;
        std::size_t kept = 0;
        for (int chunk_count = 0; chunk_count < 12; ++chunk_count) {
            std::vector<EventRecord> records;
            for (std::uint64_t left = 1 + program.any() % 1500; left != 0; --left) {
                records.push_back(program.next());
                if (program.regular && records.back().kind >= EventKind::kCheckpointBegin &&
                    records.back().kind <= EventKind::kRecordingStarted) {
                    records.back().kind = EventKind::kMark;
                }
            }
            std::vector<std::uint8_t> bytes = encoded(records);
            if (program.one_in(8)) {
                bytes.resize(bytes.size() / 2);  // announced, but missing
            }
            Chunk chunk;
            chunk.header.type = ChunkType::kEvents;
            chunk.header.count = static_cast<std::uint32_t>(records.size());
            chunk.header.raw_bytes = static_cast<std::uint32_t>(bytes.size());
            chunk.header.first = records[0].sequence;
            chunk.payload = bytes.data();
            std::vector<EventRecord> decoded;
            const bool intact =
                decode_events(bytes.data(),
                              bytes.size(),
                              chunk.header.first,
                              chunk.header.count,
                              [&](const EventRecord& one) { decoded.push_back(one); });
            REQUIRE(piece.decode(chunk, announced) == intact);
            announced += records.size();
            if (intact) {
                REQUIRE(piece.size() == decoded.size());
                pieces.add_piece(piece);
                for (const EventRecord& record : decoded) {
                    singly.add_event(record);
                }
                kept += decoded.size();
            }
            if (!program.regular && program.one_in(6)) {
                program.step_back();
            }
        }
        const Timeline by_pieces = pieces.finish();
        require_same(by_pieces, singly.finish());
        REQUIRE((by_pieces.events.size() == kept || !program.regular));
    }
}

TEST_CASE("events that do not fit are left out and counted") {
    TimelineBuilder pieces(std::uint64_t{1} << 30, 250);
    TimelineBuilder singly(std::uint64_t{1} << 30, 250);
    EventPiece piece;
    std::uint64_t sequence = 0;
    for (int chunk_count = 0; chunk_count < 3; ++chunk_count) {
        std::vector<EventRecord> records(100);
        for (EventRecord& record : records) {
            record.sequence = ++sequence;
            record.kind = EventKind::kMark;  // one of the kinds with a list of its events
            record.duration_ns = 7;
            singly.add_event(record);
        }
        const std::vector<std::uint8_t> bytes = encoded(records);
        Chunk chunk;
        chunk.header.type = ChunkType::kEvents;
        chunk.header.count = 100;
        chunk.header.raw_bytes = static_cast<std::uint32_t>(bytes.size());
        chunk.header.first = records[0].sequence;
        chunk.payload = bytes.data();
        REQUIRE(piece.decode(chunk, records[0].sequence - 1));
        pieces.add_piece(piece);
    }
    const Timeline by_pieces = pieces.finish();  // a chunk is kept as a whole or not at all
    CHECK(by_pieces.events.size() == 200);
    CHECK(by_pieces.durations.size() == 200);
    CHECK(by_pieces.damage.notes ==
          std::vector<std::string>{"100 events were left out: at most 250 are kept"});
    const Timeline one_by_one = singly.finish();
    CHECK(one_by_one.events.size() == 250);
    CHECK(one_by_one.durations.size() == 250);
    CHECK(one_by_one.damage.notes ==
          std::vector<std::string>{"50 events were left out: at most 250 are kept"});
}

TEST_CASE("streams beyond a piece's limit are unknown, as for single events") {
    TimelineBuilder pieces(std::uint64_t{1} << 30);
    TimelineBuilder singly(std::uint64_t{1} << 30);
    EventPiece piece;
    std::uint64_t sequence = 0;
    for (int chunk_count = 0; chunk_count < 2; ++chunk_count) {
        std::vector<EventRecord> records;
        for (std::uint32_t i = 0; i < kMaxChunkEvents; ++i) {
            EventRecord record = {};
            record.sequence = ++sequence;
            record.kind = EventKind::kAsyncAlloc;
            record.address = sequence << 9;
            record.stream = 0x1000 + (i ^ (chunk_count == 0 ? 0 : 0xaaaa));
            records.push_back(record);
            singly.add_event(record);
        }
        const std::vector<std::uint8_t> bytes = encoded(records);
        Chunk chunk;
        chunk.header.type = ChunkType::kEvents;
        chunk.header.count = kMaxChunkEvents;
        chunk.header.raw_bytes = static_cast<std::uint32_t>(bytes.size());
        chunk.header.first = records[0].sequence;
        chunk.payload = bytes.data();
        REQUIRE(piece.decode(chunk, records[0].sequence - 1));
        pieces.add_piece(piece);
    }
    const Timeline by_pieces = pieces.finish();
    REQUIRE(by_pieces.streams.size() == kNoStream);
    require_same(by_pieces, singly.finish());
}
