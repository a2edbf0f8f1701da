// Compares the analyzer's decoder with the codec's, and decoding on two threads with decoding on
// one.
#include "analyzer/trace/event_decoder.h"

#include <fragtrace/codec.h>

#include "analyzer/trace/chunk_pipeline.h"
#include "tests/support/trace_writer.h"
#include "tests/unit/trace/event_payload.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <cstring>
#include <new>
#include <random>
#include <thread>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::encoded;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::TraceWriter;

namespace {

// Numbers of every length. Some columns have only small ones.
EventRecord any_record(std::mt19937_64* random, std::uint64_t sequence, bool small) {
    const auto any = [&]() -> std::uint64_t {
        return small ? (*random)() % 60 : (*random)() >> ((*random)() % 64);
    };
    EventRecord record = {};
    record.sequence = sequence;
    record.time_ns = any();
    record.address = any();
    record.size = any();
    record.extra = any();
    record.stream = any();
    record.native_stack = static_cast<std::uint32_t>(any());
    record.python_stack = static_cast<std::uint32_t>(any());
    record.thread = static_cast<std::uint32_t>(any());
    record.duration_ns = static_cast<std::uint32_t>(any());
    record.pool = static_cast<std::uint32_t>(any());
    record.device = static_cast<std::uint16_t>(any());
    record.kind = static_cast<EventKind>((*random)() % 256);
    record.flags = static_cast<std::uint8_t>((*random)());
    return record;
}

// Checks that both decoders give the same result for these bytes.
void require_same(const std::vector<std::uint8_t>& bytes, std::uint64_t first, std::size_t count) {
    std::vector<EventRecord> expected;
    const bool intact = decode_events(bytes.data(),
                                      bytes.size(),
                                      first,
                                      static_cast<std::uint32_t>(count),
                                      [&](const EventRecord& one) { expected.push_back(one); });
    std::vector<EventRecord> records(7);
    REQUIRE(decode_event_columns(
                bytes.data(), bytes.size(), first, static_cast<std::uint32_t>(count), &records) ==
            intact);
    if (intact) {
        REQUIRE(records.size() == expected.size());
        for (std::size_t i = 0; i < records.size(); ++i) {
            REQUIRE(std::memcmp(&records[i], &expected[i], sizeof records[i]) == 0);
        }
    }
}

}  // namespace

TEST_CASE("decoding by columns equals decoding one by one, even for damaged payloads") {
    std::mt19937_64 random(1);
    for (int round = 0; round < 300; ++round) {
        std::vector<EventRecord> records;
        std::uint64_t sequence = 1 + random() % 1000;
        const std::size_t count = 1 + random() % (round % 10 == 0 ? 1000 : 200);
        for (std::size_t i = 0; i < count; ++i) {
            records.push_back(any_record(&random, sequence, round % 3 == 0));
            sequence += 1 + (random() % 8 == 0 ? random() % 1000 : 0);
        }
        std::vector<std::uint8_t> bytes = encoded(records);
        require_same(bytes, records[0].sequence, count);
        for (int damage = 0; damage < 10; ++damage) {
            std::vector<std::uint8_t> damaged = bytes;
            damaged[random() % damaged.size()] ^= static_cast<std::uint8_t>(1u << random() % 8);
            require_same(damaged, records[0].sequence, count);
            damaged.resize(random() % damaged.size());
            require_same(damaged, records[0].sequence, count);
        }
    }
}

TEST_CASE("with a second thread the chunks of a file stay in order") {
    TraceWriter trace;
    std::mt19937_64 random(2);
    for (int chunk = 0; chunk < 60; ++chunk) {
        for (std::uint64_t i = 0; i < 1 + random() % 200; ++i) {
            trace.block_alloc(random() >> 20 << 9, 1000, 1024);
        }
        trace.fact("chunk", std::to_string(chunk));
        trace.flush();
    }
    const TemporaryFolder folder;
    trace.save(folder.file("t.ftrace"));
    for (int round = 0; round < 20; ++round) {
        const auto file = InputFile::open(folder.file("t.ftrace"));
        REQUIRE(file.ok());
        ChunkScanner alone(*file, sizeof(TraceHeader), false);
        ChunkScanner ahead(*file, sizeof(TraceHeader), false);
        ChunkPipeline<EventRecords> pipeline(&ahead);
        std::size_t events = 0;
        for (Chunk chunk; alone.next(&chunk);) {
            const auto* item = pipeline.next();
            REQUIRE(item != nullptr);
            REQUIRE(item->chunk.offset == chunk.offset);
            REQUIRE(std::memcmp(item->chunk.payload, chunk.payload, chunk.header.raw_bytes) == 0);
            if (chunk.header.type == ChunkType::kEvents) {
                REQUIRE(item->decoded);
                for (const EventRecord& record : item->events.all) {
                    REQUIRE(record.address == trace.events()[events++].address);
                }
            }
        }
        REQUIRE(pipeline.next() == nullptr);
        REQUIRE(events == trace.events().size());
    }
}

namespace {

Result<InputFile> file_of_forty_chunks(const TemporaryFolder& folder) {
    TraceWriter trace;
    for (int chunk = 0; chunk < 40; ++chunk) {
        trace.block_alloc(512, 512, 512);
        trace.flush();
    }
    trace.save(folder.file("t.ftrace"));
    return InputFile::open(folder.file("t.ftrace"));
}

}  // namespace

TEST_CASE("a pipeline destroyed before its end stops its thread") {
    const TemporaryFolder folder;
    const auto file = file_of_forty_chunks(folder);
    for (int chunks = 0; chunks < 10; ++chunks) {
        ChunkScanner scanner(*file, sizeof(TraceHeader), false);
        ChunkPipeline<EventRecords> pipeline(&scanner);
        for (int i = 0; i < chunks; ++i) {
            REQUIRE(pipeline.next() != nullptr);
        }
    }
}

TEST_CASE("a chunk whose decoding runs out of memory ends the reading on either thread") {
    struct Failing {
        static bool decode(const Chunk& /*chunk*/, std::uint64_t first_event) {
            if (first_event >= 20) {
                throw std::bad_alloc();
            }
            return true;
        }
    };

    const TemporaryFolder folder;
    const auto file = file_of_forty_chunks(folder);
    for (int round = 0; round < 100; ++round) {
        ChunkScanner scanner(*file, sizeof(TraceHeader), false);
        ChunkPipeline<Failing> pipeline(&scanner);
        if (round % 2 == 1) {  // the second thread has already taken this chunk
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        CHECK_THROWS_AS(
            [&] {
                while (pipeline.next() != nullptr) {
                }
            }(),
            std::bad_alloc);
    }
}
