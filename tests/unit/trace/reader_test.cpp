// Reading complete, cut, damaged and foreign traces.
#include "analyzer/trace/reader.h"

#include <fragtrace/codec.h>

#include "analyzer/support/units.h"
#include "analyzer/trace/chunk_writer.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <filesystem>
#include <random>
#include <unistd.h>

using fragtrace::EndReason;
using fragtrace::EventKind;
using fragtrace::kMiB;
using fragtrace::analyzer::Ending;
using fragtrace::analyzer::ErrorCode;
using fragtrace::analyzer::Event;
using fragtrace::analyzer::EventIndex;
using fragtrace::analyzer::kNoStream;
using fragtrace::analyzer::PoolIdentity;
using fragtrace::analyzer::read_trace;
using fragtrace::analyzer::Result;
using fragtrace::analyzer::Timeline;
using fragtrace::testing::read_file;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::TraceWriter;
using fragtrace::testing::write_file;

namespace {

// A few chunks of every type.
TraceWriter rich_trace() {
    TraceWriter trace;
    trace.fact("process", "train.py\twith\nodd \\ characters");
    const auto outer = trace.native_node(0, 0x5555000010);
    const auto inner = trace.native_node(outer, 0x5555000020);
    const auto code = trace.code("forward", "/home/user/net.py", 40);
    const auto line = trace.python_node(0, code, 42);
    trace.module(0x5555000000, 0x5555001000, 0x5555000000, "/usr/bin/nothing", "\x12\xab");
    trace.set_native_stack(inner);
    trace.set_python_stack(line);
    for (std::uint64_t segment = 0; segment < 5; ++segment) {
        const std::uint64_t base = 0x7000000000 + segment * 64 * kMiB;
        trace.device_alloc(base, 20 * kMiB, true);
        for (std::uint64_t i = 0; i < 30; ++i) {
            trace.block_alloc(base + i * 4096, 4000, 4096, 0xabc0);
        }
        for (std::uint64_t i = 0; i < 30; i += 2) {
            trace.block_free(base + i * 4096, 4096);
        }
        trace.flush();
    }
    return trace;
}

Timeline read(const std::string& bytes) {
    TemporaryFolder folder;
    write_file(folder.file("t.ftrace"), bytes);
    auto result = read_trace(folder.file("t.ftrace"));
    REQUIRE(result.ok());
    return std::move(result).value();
}

std::string error_of(const std::string& bytes) {
    TemporaryFolder folder;
    write_file(folder.file("t.ftrace"), bytes);
    const auto result = read_trace(folder.file("t.ftrace"));
    REQUIRE(!result.ok());
    CHECK(result.error().code == ErrorCode::kInput);
    CHECK(result.error().message.find("t.ftrace: ") != std::string::npos);
    CHECK(result.error().message.find('\n') == std::string::npos);
    return result.error().message;
}

void check_undamaged(const Timeline& timeline) {
    CHECK(timeline.damage.bytes_unreadable == 0);
    CHECK(timeline.damage.chunks_unreadable == 0);
    CHECK(timeline.damage.events_lost == 0);
    CHECK(timeline.damage.notes.empty());
}

}  // namespace

TEST_CASE("a written trace is read back unchanged", "[reader]") {
    TraceWriter trace = rich_trace();
    trace.end(EndReason::kNormal);
    const bool with_footer = GENERATE(true, false);
    if (with_footer) {
        trace.footer();
    }
    const Timeline timeline = read(trace.bytes());
    check_undamaged(timeline);
    CHECK(timeline.ending == Ending::kNormal);
    CHECK(timeline.pid == 4711);
    CHECK(timeline.fact("process") == "train.py\twith\nodd \\ characters");
    REQUIRE(timeline.events.size() == trace.events().size());
    for (std::size_t i = 0; i < timeline.events.size(); ++i) {
        const Event& event = timeline.events[i];
        const fragtrace::EventRecord& record = trace.events()[i];
        REQUIRE(event.kind == record.kind);
        REQUIRE(event.address == record.address);
        REQUIRE(event.size_bytes == record.size);
        REQUIRE(event.extra == record.extra);
        REQUIRE(event.time_ns == record.time_ns);
        REQUIRE(event.flags == record.flags);
        REQUIRE(event.device == 0);
        if (event.kind == EventKind::kBlockAlloc) {
            REQUIRE(timeline.streams.at(event.stream) == 0xabc0);
        } else {
            REQUIRE(event.stream == kNoStream);
        }
        REQUIRE(timeline.origins.at(event.origin).native_stack == 2);
        REQUIRE(timeline.origins.at(event.origin).python_stack == 3);
        REQUIRE(timeline.origins.at(event.origin).thread == 4711);
    }
    REQUIRE(timeline.nodes.size() == 4);
    CHECK(timeline.nodes[2].parent == 1);
    CHECK(timeline.nodes[2].frame == 0x5555000020);
    CHECK(timeline.nodes[3].line == 42);
    REQUIRE(timeline.codes.size() == 1);
    CHECK(timeline.codes[0].function == "forward");
    CHECK(timeline.codes[0].file == "/home/user/net.py");
    REQUIRE(timeline.modules.size() == 1);
    CHECK(timeline.modules[0].build_id == "12ab");
}

TEST_CASE("durations stay with their events", "[reader]") {
    TraceWriter trace;
    trace.device_alloc(0x1000, 512, false);
    fragtrace::EventRecord slow = {};
    slow.kind = EventKind::kDeviceFree;
    slow.address = 0x1000;
    slow.duration_ns = 1234;
    trace.event(slow);
    const Timeline timeline = read(trace.bytes());
    REQUIRE(timeline.durations.size() == 1);
    CHECK(timeline.durations[0].first == 1);
    CHECK(timeline.durations[0].second == 1234);
}

TEST_CASE("pools stay with their events, and their numbers are identified", "[reader]") {
    TraceWriter trace;
    trace.fact("pool.2", "pytorch 3,0");
    trace.fact("pool.2.no_split", "1");
    trace.fact("pool.3", "cuda 0xbeef");
    trace.fact("pool.4", "something later");
    trace.fact("pool.x", "pytorch 1,1");
    for (const std::uint32_t pool : {0u, 2u, 0u, 4000000000u}) {
        fragtrace::EventRecord event = {};
        event.kind = EventKind::kBlockAlloc;
        event.address = 0x1000 * (trace.events().size() + 1);
        event.size = 512;
        event.pool = pool;
        trace.event(event);
    }
    const Timeline timeline = read(trace.bytes());
    check_undamaged(timeline);
    std::size_t cursor = 0;
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
        CHECK(timeline.event_pools.at(i) == trace.events()[i].pool);
        CHECK(timeline.event_pools.at(i, &cursor) == trace.events()[i].pool);
    }
    REQUIRE(timeline.pools.size() == 3);
    CHECK(timeline.pools.at(2).owner == PoolIdentity::Owner::kPytorch);
    CHECK(timeline.pools.at(2).is_graph());
    CHECK(timeline.pools.at(2).no_split);
    CHECK_FALSE(timeline.pools.at(2).use_on_oom);
    CHECK(timeline.pools.at(3).owner == PoolIdentity::Owner::kCuda);
    CHECK(timeline.pools.at(3).first == 0xbeef);
    CHECK(timeline.pools.at(4).owner == PoolIdentity::Owner::kUnknown);
}

TEST_CASE("the end of the process is reported", "[reader]") {
    TraceWriter trace = rich_trace();
    SECTION("quick exit, and events after the end") {
        trace.end(EndReason::kQuickExit);
        const auto before = trace.events().size();
        trace.block_alloc(0x7000000000, 100, 512);
        const Timeline timeline = read(trace.bytes());
        CHECK(timeline.ending == Ending::kQuickExit);
        CHECK(timeline.events.size() == before + 1);
        check_undamaged(timeline);
    }
    SECTION("no end and no process: killed") {
        CHECK(read(trace.bytes()).ending == Ending::kKilled);
    }
    SECTION("no end but the process exists: running") {
        const std::string stat = read_file("/proc/self/stat");
        std::size_t at = stat.rfind(')') + 2;
        for (int field = 3; field < 22; ++field) {
            at = stat.find(' ', at) + 1;
        }
        trace.header.pid = static_cast<std::uint32_t>(getpid());
        trace.header.process_start_ticks = std::stoull(stat.substr(at));
        CHECK(read(trace.bytes()).ending == Ending::kRunning);
        SECTION("a chunk being written is no damage") {
            const std::string bytes = trace.bytes();
            check_undamaged(read(bytes.substr(0, bytes.size() - 16)));
        }
        SECTION("another start time: the pid was used again") {
            ++trace.header.process_start_ticks;
            CHECK(read(trace.bytes()).ending == Ending::kKilled);
        }
    }
}

TEST_CASE("files that are not traces are refused with a hint", "[reader]") {
    CHECK(error_of("").find("empty") != std::string::npos);
    CHECK(error_of("\x80\x04\x95 pickle").find("pickle") != std::string::npos);
    CHECK(error_of("\x1f\x8b\x08 compressed").find("gzip") != std::string::npos);
    CHECK(error_of("\x28\xb5\x2f\xfd compressed").find("zstd") != std::string::npos);
    CHECK(error_of("{\"a\": 1}").find("JSON") != std::string::npos);
    CHECK(error_of("some text").find("not a trace") != std::string::npos);
    TraceWriter trace = rich_trace();
    const std::string whole = trace.bytes();
    CHECK(error_of(whole.substr(0, 300)).find("cut off") != std::string::npos);
    CHECK(error_of(trace.ring(0, 1024)).find("ring") != std::string::npos);
    SECTION("any flipped bit in the header") {
        for (std::size_t byte = 8; byte < sizeof(fragtrace::TraceHeader); byte += 7) {
            std::string damaged = whole;
            damaged[byte] = static_cast<char>(damaged[byte] ^ 0x20);
            error_of(damaged);
        }
    }
    SECTION("a newer version") {
        std::string newer = whole;
        newer[8] = 2;
        CHECK(error_of(newer).find("version 2") != std::string::npos);
    }
}

TEST_CASE("missing files and folders are refused", "[reader]") {
    TemporaryFolder folder;
    const auto missing = read_trace(folder.file("none.ftrace"));
    REQUIRE(!missing.ok());
    CHECK(missing.error().message.find("no such file") != std::string::npos);
    const auto directory = read_trace(folder.file(""));
    REQUIRE(!directory.ok());
    CHECK(directory.error().message.find("is a folder") != std::string::npos);
    const auto special = read_trace("/dev/zero");
    REQUIRE(!special.ok());
    CHECK(special.error().message.find("regular") != std::string::npos);
}

TEST_CASE("a trace cut at the end of a chunk keeps everything before the cut", "[reader]") {
    TraceWriter trace = rich_trace();
    const std::string whole = trace.bytes();
    std::size_t events_before = 0;
    for (const std::uint64_t boundary : trace.boundaries()) {
        const Timeline timeline = read(whole.substr(0, boundary));
        CHECK(timeline.damage.bytes_unreadable == 0);
        CHECK(timeline.events.size() >= events_before);
        events_before = timeline.events.size();
    }
    CHECK(events_before == trace.events().size());
}

TEST_CASE("a trace cut anywhere keeps its complete chunks and counts the rest", "[reader]") {
    TraceWriter trace = rich_trace();
    const std::string whole = trace.bytes();
    const auto& boundaries = trace.boundaries();
    for (std::size_t size = sizeof(fragtrace::TraceHeader); size < whole.size(); size += 13) {
        const auto after = std::upper_bound(boundaries.begin(), boundaries.end(), size);
        // A chunk that lacks only its padding is complete.
        fragtrace::ChunkHeader chunk = {};
        std::memcpy(&chunk, whole.data() + *(after - 1), sizeof chunk);
        const bool is_whole = size >= *(after - 1) + sizeof chunk + chunk.stored_bytes;
        const std::uint64_t last_whole = is_whole ? size : *(after - 1);
        const Timeline cut = read(whole.substr(0, size));
        const Timeline clean = read(whole.substr(0, is_whole ? *after : last_whole));
        REQUIRE(cut.events.size() == clean.events.size());
        REQUIRE(cut.damage.bytes_unreadable == size - last_whole);
        REQUIRE(cut.damage.chunks_unreadable == (size == last_whole ? 0 : 1));
    }
}

TEST_CASE("a trace is complete if its process died while writing the index", "[reader]") {
    TraceWriter trace = rich_trace();
    trace.end(EndReason::kNormal);
    const std::size_t index = trace.bytes().size();
    trace.footer();
    const std::string whole = trace.bytes();
    const Timeline complete = read(whole);
    for (std::size_t size = index + sizeof(fragtrace::ChunkHeader); size < whole.size(); ++size) {
        const Timeline cut = read(whole.substr(0, size));
        REQUIRE(cut.events.size() == complete.events.size());
        REQUIRE(cut.damage.bytes_unreadable == 0);
        REQUIRE(cut.ending == Ending::kNormal);
    }
}

TEST_CASE("one flipped bit loses at most one chunk", "[reader]") {
    TraceWriter trace = rich_trace();
    trace.end(EndReason::kNormal);
    trace.footer();
    const std::string whole = trace.bytes();
    const auto& boundaries = trace.boundaries();
    std::mt19937 random(1);
    for (int round = 0; round < 300; ++round) {
        std::string damaged = whole;
        const std::size_t at = std::uniform_int_distribution<std::size_t>(
            sizeof(fragtrace::TraceHeader), whole.size() - 1)(random);
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 8)));
        const auto after = std::upper_bound(boundaries.begin(), boundaries.end(), at);
        const std::uint64_t begin = *(after - 1);
        const std::uint64_t end = *after;
        const Timeline timeline = read(damaged);
        // No checksum covers padding and the trailer.
        if (timeline.damage.chunks_unreadable != 0) {
            CHECK(timeline.damage.chunks_unreadable == 1);
            CHECK(timeline.damage.bytes_unreadable <= end - begin);
        } else {
            CHECK(timeline.events.size() == trace.events().size());
        }
        CHECK(timeline.events.size() + 50 >= trace.events().size());
    }
}

TEST_CASE("random damage only loses data", "[reader]") {
    TraceWriter trace = rich_trace();
    const std::string whole = trace.bytes();
    std::mt19937 random(2);
    for (int round = 0; round < 200; ++round) {
        std::string damaged = whole;
        const std::size_t flips = 1 + random() % 40;
        for (std::size_t i = 0; i < flips; ++i) {
            const std::size_t at = sizeof(fragtrace::TraceHeader) +
                                   random() % (whole.size() - sizeof(fragtrace::TraceHeader));
            damaged[at] = static_cast<char>(random());
        }
        if (random() % 2 == 0) {
            damaged.erase(sizeof(fragtrace::TraceHeader) + random() % 1000, random() % 500);
        }
        const Timeline timeline = read(damaged);
        REQUIRE(timeline.partner.size() == timeline.events.size());
        REQUIRE(timeline.events.size() <= trace.events().size());
    }
}

TEST_CASE("chunks with a good checksum but impossible contents are skipped", "[reader]") {
    // Errors that a checksum cannot find: written by another program, or made to do harm.
    TraceWriter trace = rich_trace();
    std::string bytes = trace.bytes();
    using fragtrace::ChunkType;
    const std::string noise(4096, '\x81');
    const auto add = [&](ChunkType type, std::uint32_t count, std::uint64_t first) {
        fragtrace::analyzer::append_chunk(&bytes, type, noise, count, first);
    };
    add(ChunkType::kEvents, 65536, 1);
    add(ChunkType::kEvents, 100, ~0ull);
    add(ChunkType::kStacks, 0xffffffff, 1);
    add(ChunkType::kStacks, 10, ~0ull - 3);
    add(ChunkType::kCode, 0xffffffff, 0);
    add(ChunkType::kModules, 0xffffffff, 0);
    add(static_cast<ChunkType>(99), 7, 0);  // a later addition to the format: skipped, not damage
    const Timeline timeline = read(bytes);
    CHECK(timeline.events.size() == trace.events().size());
    CHECK(timeline.damage.chunks_unreadable == 6);
}

TEST_CASE("the recorder's own losses are reported", "[reader]") {
    TraceWriter trace = rich_trace();
    trace.fact("lost.ring_full", "12");
    trace.fact("lost.reentrant", "3");
    trace.fact("stacks.without_room", "7");
    const Timeline timeline = read(trace.bytes());
    CHECK(timeline.damage.events_lost == 15);
    REQUIRE(timeline.damage.notes.size() == 1);
    CHECK(timeline.damage.notes[0].find("7 events have no stack") != std::string::npos);
}
