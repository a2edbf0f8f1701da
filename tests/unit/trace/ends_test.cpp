// How a process ended, which events were lost, and what changed during a pause of the recording.
#include <fragtrace/codec.h>

#include "analyzer/analysis/analyze.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/trace/builder.h"
#include "analyzer/trace/chunk_writer.h"
#include "analyzer/trace/losses.h"
#include "analyzer/trace/note_signal.h"
#include "analyzer/trace/process_end.h"
#include "analyzer/trace/reader.h"
#include "analyzer/trace/ring_reader.h"
#include "analyzer/trace/trace_outline.h"
#include "analyzer/trace/traced_process.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>
#include <string>
#include <utility>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::testing;

namespace {

Timeline read(const TemporaryFolder& folder, TraceWriter* trace) {
    trace->save(folder.file("p.4711.ftrace"));
    auto timeline = read_trace(folder.file("p.4711.ftrace"));
    REQUIRE(timeline.ok());
    return std::move(timeline).value();
}

void tell_block(TraceWriter* trace,
                std::uint64_t address,
                std::uint64_t bytes,
                std::uint64_t time) {
    EventRecord block = trace->next();
    block.kind = EventKind::kBlockAlloc;
    block.address = address;
    block.size = block.extra = bytes;
    block.time_ns = time;
    trace->event(block);
}

}  // namespace

TEST_CASE("only exit codes 0 to 255 and signals 1 to 64 are accepted", "[ends]") {
    const auto code_of = [](const char* text) {
        return process_end(Ending::kNormal, {{"end.code", text}}).code;
    };
    CHECK(code_of("0") == 0);
    CHECK(code_of("255") == 255);
    for (const char* text : {"256", "-1", "12x", "", " 1"}) {
        CAPTURE(text);
        CHECK_FALSE(code_of(text).has_value());
    }
    const auto signal_of = [](const char* text) {
        return process_end(Ending::kKilled, {{"end.signal", text}}).signal;
    };
    CHECK(signal_of("9") == 9);
    CHECK(signal_of("64") == 64);
    CHECK_FALSE(signal_of("0").has_value());
    CHECK_FALSE(signal_of("65").has_value());
    CHECK_FALSE(process_end(Ending::kNormal, {{"end.signal", "9"}}).signal.has_value());
}

TEST_CASE("the signal that killed a process is noted once, even after a torn end", "[ends]") {
    for (const char* torn : {"", "abc"}) {
        CAPTURE(torn);
        const TemporaryFolder folder;
        const std::string path = folder.file("p.4711.ftrace");
        TraceWriter trace;
        trace.device_alloc(0x1000, 512, false);
        write_file(path, trace.bytes() + torn);
        note_signal(path, 4712, 15, std::nullopt);  // a trace of another process
        CHECK(read_file(path) == trace.bytes() + torn);
        note_signal(path, 4711, 9, 5'000);
        if (std::string(torn).empty()) {
            const std::string noted = read_file(path);
            note_signal(path, 4711, 15, 6'000);
            CHECK(read_file(path) == noted);
        }
        const auto timeline = read_trace(path);
        REQUIRE(timeline.ok());
        CHECK(timeline->fact("end.signal") == "9");
        CHECK(timeline->fact("end.signal_seen_ns") == "5000");
        CHECK(timeline->events.size() == 1);
    }
}

TEST_CASE("the outline of a trace has the time of its exit, if it exited", "[ends]") {
    const TemporaryFolder folder;
    const std::string path = folder.file("p.4711.ftrace");
    const auto end_ns = [&path](std::optional<EndReason> reason) {
        TraceWriter trace;
        tell_block(&trace, 0x1000, 512, 700);
        if (reason) {
            trace.end(*reason);
        }
        trace.save(path);
        const auto outline = read_outline(path);
        REQUIRE(outline.ok());
        return outline->end_ns;
    };
    CHECK(end_ns(EndReason::kNormal) == 700u);
    CHECK(end_ns(EndReason::kQuickExit) == 700u);
    CHECK_FALSE(end_ns(EndReason::kContinued));  // its next part has the end
    CHECK_FALSE(end_ns(std::nullopt));
}

TEST_CASE("a killed process ended between its drain's last run and what its parent saw", "[ends]") {
    const auto between = [](const char* alive, const char* seen) {
        std::map<std::string, std::string> facts;
        for (const auto& [key, value] :
             {std::pair(kAliveFact, alive), std::pair(kSignalSeenFact, seen)}) {
            if (value != nullptr) {
                facts[key] = value;
            }
        }
        const KilledBetween made = killed_between(facts, 1000);
        return std::pair(made.alive_ns, made.seen_ns);
    };
    using Time = std::optional<std::uint64_t>;
    CHECK(between("1500", "1700") == std::pair(Time(500), Time(700)));
    CHECK(between(nullptr, "1700") == std::pair(Time(), Time(700)));
    CHECK(between("1500", nullptr) == std::pair(Time(500), Time()));
    CHECK(between("1500", "1500") == std::pair(Time(500), Time(500)));
    // The parent has another clock; times before the trace; texts that are no times.
    CHECK(between("1500", "1499") == std::pair(Time(500), Time()));
    CHECK(between("999", "1700") == std::pair(Time(), Time(700)));
    CHECK(between("-1", "1700x") == std::pair(Time(), Time()));
    CHECK(between("99999999999999999999", "") == std::pair(Time(), Time()));
}

TEST_CASE("the outline of a killed trace has the bounds of its end, that of an exit has not",
          "[ends]") {
    const TemporaryFolder folder;
    const std::string path = folder.file("p.4711.ftrace");
    const auto killed = [&path](bool exits) {
        TraceWriter trace;
        trace.header.start_monotonic_ns = 1000;
        tell_block(&trace, 0x1000, 512, 700);
        trace.fact(kAliveFact, "1900");
        trace.fact(kSignalSeenFact, "2000");
        if (exits) {
            trace.end(EndReason::kNormal);
        }
        trace.save(path);
        const auto outline = read_outline(path);
        REQUIRE(outline.ok());
        return std::pair(outline->killed.alive_ns, outline->killed.seen_ns);
    };
    CHECK(killed(false) ==
          std::pair(std::optional<std::uint64_t>(900), std::optional<std::uint64_t>(1000)));
    CHECK_FALSE(killed(true).first);
    CHECK_FALSE(killed(true).second);
}

TEST_CASE("if file and ring both count a loss, the higher count is used", "[ends]") {
    std::map<std::string, std::string> facts = {{"lost.ring_full", "5"}, {"lost.reentrant", "2"}};
    merge_losses({{"lost.ring_full", "3"}, {"lost.reentrant", "10"}, {"lost.new", "1"}}, &facts);
    CHECK(facts["lost.ring_full"] == "5");
    CHECK(facts["lost.reentrant"] == "10");
    CHECK(facts["lost.new"] == "1");
    facts["lost.unfinished"] = "7";
    facts["lost.facts"] = "100";
    CHECK(losses_of(facts).events_lost == 16);
    CHECK(losses_of(facts).events_unfinished == 7);
}

TEST_CASE("a process became the program whose trace has its id and begins later", "[ends]") {
    const TemporaryFolder folder;
    TraceWriter trace;
    trace.header.start_monotonic_ns = 100;
    const std::string path = folder.file("sh.4711.ftrace");
    trace.save(path);
    for (const std::uint64_t start : {50u, 100u, 200u}) {
        CAPTURE(start);
        TraceWriter other;
        other.header.start_monotonic_ns = start;
        other.save(folder.file("python.4711.ftrace"));
        CHECK((ending_without_mark(path, trace.header, ProcessState::kGone, {}) == Ending::kExec) ==
              (start == 200));
    }
    // A process of another container may have the same id, host name and start.
    TraceWriter other;
    other.header.start_monotonic_ns = 200;
    other.fact(kPidNamespaceFact, "4026532203");
    other.save(folder.file("python.4711.ftrace"));
    const auto is_exec = [&](const char* name_space) {
        return ending_without_mark(
                   path, trace.header, ProcessState::kGone, {{kPidNamespaceFact, name_space}}) ==
               Ending::kExec;
    };
    CHECK(is_exec("4026532203"));
    CHECK_FALSE(is_exec("4026532204"));
}

TEST_CASE("a process of another container, boot or host may still run", "[ends]") {
    const TemporaryFolder folder;
    const std::string path = folder.file("train.ftrace");

    struct Ended {
        ProcessState state;
        Ending ending;
    };

    // A process of this host's name with an id that nobody has here.
    const auto ended = [&](const std::string& name_space, const std::string& boot) {
        TraceWriter trace;
        trace.header.pid = 4'000'000;
        snprintf(trace.header.host, sizeof trace.header.host, "%s", this_host().c_str());
        if (!name_space.empty()) {
            trace.fact(kPidNamespaceFact, name_space);
        }
        if (!boot.empty()) {
            trace.fact(kBootFact, boot);
        }
        trace.device_alloc(0x1000, 512, false);
        trace.save(path);
        const auto outline = read_outline(path);
        REQUIRE(outline.ok());
        const auto timeline = read_trace(path, {});
        REQUIRE(timeline.ok());
        CHECK(timeline->ending == outline->end.ending);
        const auto file = InputFile::open(path);
        REQUIRE(file.ok());
        return Ended{process_state(path, *file, trace.header), outline->end.ending};
    };
    const auto has = [&](const Ended& found, ProcessState state, Ending ending) {
        return found.state == state && found.ending == ending;
    };
    const std::string here = this_pid_namespace();
    const std::string boot = this_boot();
    REQUIRE(!here.empty());
    CHECK(has(ended("", ""), ProcessState::kGone, Ending::kKilled));  // as in 0.1.0
    CHECK(has(ended(here, boot), ProcessState::kGone, Ending::kKilled));
    CHECK(has(ended(here, ""), ProcessState::kGone, Ending::kKilled));
    CHECK(has(ended("4026532203", boot), ProcessState::kUnknown, Ending::kNotRecorded));
    CHECK(has(ended(here, "another"), ProcessState::kUnknown, Ending::kNotRecorded));
}

TEST_CASE("a trace without its end and without its ring may have been cut off", "[ends]") {
    const TemporaryFolder folder;
    const std::string path = folder.file("train.ftrace");
    const auto ending = [&](const std::map<std::string, std::string>& facts) {
        TraceWriter trace;
        trace.header.pid = 4'000'000;
        snprintf(trace.header.host, sizeof trace.header.host, "%s", this_host().c_str());
        snprintf(trace.header.ring_path,
                 sizeof trace.header.ring_path,
                 "%s",
                 folder.file("gone.ring").c_str());
        for (const auto& [key, value] : facts) {
            trace.fact(key.c_str(), value);
        }
        trace.device_alloc(0x1000, 512, false);
        trace.save(path);
        const auto outline = read_outline(path);
        const auto timeline = read_trace(path, {});
        REQUIRE(outline.ok());
        REQUIRE(timeline.ok());
        CHECK(timeline->ending == outline->end.ending);
        const bool hedged = !timeline->damage.notes.empty() &&
                            timeline->damage.notes[0].find("was killed, or the file was cut off") !=
                                std::string::npos;
        CHECK(hedged == facts.empty());
        return outline->end.ending;
    };
    CHECK(ending({}) == Ending::kNotRecorded);
    CHECK(ending({{"ring.absorbed", "3"}}) == Ending::kKilled);
}

TEST_CASE("a process of another host name ended if its ids are those of here", "[ends]") {
    TraceWriter trace;
    const TemporaryFolder folder;
    trace.save(folder.file("train.ftrace"));
    std::map<std::string, std::string> facts = {{kPidNamespaceFact, this_pid_namespace()},
                                                {kBootFact, this_boot()}};
    const auto ending = [&] {
        return ending_without_mark(
            folder.file("train.ftrace"), trace.header, ProcessState::kGone, facts);
    };
    snprintf(trace.header.host, sizeof trace.header.host, "elsewhere");
    CHECK(ending() == Ending::kKilled);
    facts.erase(kBootFact);
    CHECK(ending() == Ending::kNotRecorded);
}

TEST_CASE("whether a process of another host died is not known", "[ends]") {
    const TemporaryFolder folder;
    TraceWriter trace;
    const std::string path = folder.file("train.ftrace");
    const auto ending = [&](const std::string& host,
                            const std::map<std::string, std::string>& facts) {
        snprintf(trace.header.host, sizeof trace.header.host, "%s", host.c_str());
        trace.save(path);
        return ending_without_mark(path, trace.header, ProcessState::kGone, facts);
    };
    CHECK(ending(this_host(), {}) == Ending::kKilled);
    CHECK(ending("elsewhere", {}) == Ending::kNotRecorded);
    CHECK(ending("", {}) == Ending::kNotRecorded);
    // Somebody there saw its end.
    CHECK(ending("elsewhere", {{"end.signal", "9"}}) == Ending::kKilled);
    CHECK(ending("elsewhere", {{"ring.absorbed", "1"}}) == Ending::kKilled);
    CHECK(ending_without_mark(path, trace.header, ProcessState::kRuns, {}) == Ending::kRunning);
    CHECK(process_end(Ending::kKilled, {}).failed());
    CHECK_FALSE(process_end(Ending::kNotRecorded, {}).failed());
    CHECK(process_end(Ending::kNotRecorded, {}).unknown());

    ending("elsewhere", {});
    const auto outline = read_outline(path);
    REQUIRE(outline.ok());
    CHECK(outline->end.ending == Ending::kNotRecorded);
    CHECK(ending_text(outline->end) == "end not recorded");
    CHECK(ending_json(outline->end)["kind"] == "not_recorded");
}

TEST_CASE("missing sequence numbers are counted between all existing ones", "[ends]") {
    const TemporaryFolder folder;
    TraceWriter trace;
    EventRecord event = trace.next();
    event.kind = EventKind::kMark;
    for (const std::uint64_t sequence : {1u, 2u, 3u, 6u, 7u, 9u}) {
        event.sequence = sequence;
        trace.event(event);
    }
    const Timeline timeline = read(folder, &trace);
    REQUIRE(timeline.damage.notes.size() == 1);
    CHECK(timeline.damage.notes[0] == "3 of 9 sequence numbers have no event in the trace");
}

TEST_CASE("sequence numbers between a stop and a start of recording do not count as missing",
          "[ends]") {
    const TemporaryFolder folder;
    TraceWriter trace;
    trace.simple(EventKind::kRecordingStopped, 0, 0, 0);
    EventRecord started = trace.next();
    started.kind = EventKind::kRecordingStarted;
    started.sequence = 10;
    trace.event(started);
    CHECK(read(folder, &trace).damage.notes.empty());
}

TEST_CASE("code numbers beyond the file's possible count are refused, even in small steps",
          "[ends]") {
    std::uint8_t bytes[400];
    ByteWriter out(bytes, sizeof bytes);
    for (const std::uint32_t id : {60'000u, 120'000u, 180'000u}) {
        encode_code({id, 1, "f", 1, "g", 1}, &out);
    }
    TimelineBuilder builder(1000);
    CHECK_FALSE(builder.add_codes(bytes, out.size(), 3));
}

TEST_CASE("a chunk that decompresses to less than announced is not read", "[ends]") {
    std::string chunk;
    append_chunk(&chunk,
                 ChunkType::kFacts,
                 "key\t" + std::string(200, 'x') + "\n",
                 1,
                 0,
                 Compression::kZstd);
    ChunkHeader header = {};
    std::memcpy(&header, chunk.data(), sizeof header);
    REQUIRE(header.compression == Compression::kZstd);
    for (const std::uint32_t more : {0u, 8u}) {
        CAPTURE(more);
        header.raw_bytes += more;
        header.crc = chunk_crc(header, chunk.data() + sizeof header);
        std::memcpy(chunk.data(), &header, sizeof header);
        const TemporaryFolder folder;
        TraceWriter trace;
        write_file(folder.file("t.ftrace"), trace.bytes() + chunk);
        const auto timeline = read_trace(folder.file("t.ftrace"));
        REQUIRE(timeline.ok());
        CHECK(timeline->facts.contains("key") == (more == 0));
        CHECK(timeline->damage.chunks_unreadable == (more == 0 ? 0 : 1));
    }
}

TEST_CASE("allocations and frees during a pause are found by time and address", "[ends]") {
    const TemporaryFolder folder;
    TraceWriter trace;
    trace.device_alloc(0x100000, 1 << 20, true);
    tell_block(&trace, 0x100000, 512, 5);
    tell_block(&trace, 0x101000, 1024, 6);
    tell_block(&trace, 0x102000, 2048, 7);
    trace.simple(EventKind::kRecordingStopped, 0, 0, 0);
    trace.simple(EventKind::kRecordingStarted, 0, 0, 0);
    trace.simple(EventKind::kCheckpointBegin, 0, 0, 0);
    trace.device_alloc(0x100000, 1 << 20, true);
    tell_block(&trace, 0x100000, 512, 5);    // the same block as before
    tell_block(&trace, 0x101000, 1024, 50);  // another one at that address
    tell_block(&trace, 0x104000, 8192, 51);
    trace.simple(EventKind::kCheckpointEnd, 0, 0, 0);
    const Timeline timeline = read(folder, &trace);
    REQUIRE(timeline.gaps.size() == 1);
    const RecordingGap& gap = timeline.gaps[0];
    CHECK(gap.begin == 4);
    CHECK(gap.end == 5);
    CHECK(gap.freed == 2);
    CHECK(gap.freed_bytes == 1024 + 2048);
    CHECK(gap.made == 2);
    CHECK(gap.made_bytes == 1024 + 8192);
}

TEST_CASE("the report states each loss once, and does not claim frees that nobody saw", "[ends]") {
    const TemporaryFolder folder;
    TraceWriter trace;
    trace.device_alloc(0x100000, 1 << 20, true);
    tell_block(&trace, 0x100000, 512, 5);
    tell_block(&trace, 0x101000, 1024, 6);
    trace.simple(EventKind::kRecordingStopped, 0, 0, 0);
    trace.simple(EventKind::kRecordingStarted, 0, 0, 0);
    trace.simple(EventKind::kCheckpointBegin, 0, 0, 0);
    trace.device_alloc(0x100000, 1 << 20, true);
    trace.simple(EventKind::kCheckpointEnd, 0, 0, 0);
    for (const bool listed : {true, false}) {
        if (!listed) {
            trace.fact("held.without_room", "2");
            trace.fact("lost.facts", "7");
            trace.fact("lost.before_start", "5");
            trace.fact("lost.completions", "8");
        }
        trace.save(folder.file("t.ftrace"));
        const auto analysis = analyze(folder.file("t.ftrace"), {});
        REQUIRE(analysis.ok());
        const std::string text = fmt::format("{}", fmt::join((*analysis)->warnings, "\n"));
        INFO(text);
        const auto has = [&text](const char* part) { return text.find(part) != text.npos; };
        CHECK(has("; freed during this time: 2 allocations (") == listed);
        CHECK(has("; freed during this time, or live and unknown since: 2 alloc") != listed);
        CHECK(has("2 live allocations are missing at the start of this part") != listed);
        CHECK(has("7 facts about the process were lost") != listed);
        CHECK(has("13 events were lost while recording") != listed);
        CHECK((*analysis)->warnings.size() == (listed ? 1 : 4));
    }
}

TEST_CASE("a range whose number is used again before its end lasts to the trace's end", "[ends]") {
    const TemporaryFolder folder;
    TraceWriter trace;
    trace.simple(EventKind::kRangeBegin, 5, 1, 0);
    trace.simple(EventKind::kRangeBegin, 5, 1, 0);
    trace.simple(EventKind::kRangeEnd, 5, 0, 0);
    const Timeline timeline = read(folder, &trace);
    REQUIRE(timeline.phases.size() == 2);
    CHECK(timeline.phases[0].end == 3);
    CHECK(timeline.phases[1].end == 2);
}

TEST_CASE("how a process ended is not known if its trace was cut off before its end") {
    Timeline trace;
    trace.ending = Ending::kKilled;
    CHECK(process_end(trace).failed());
    trace.damage.bytes_unreadable = 5;
    CHECK(process_end(trace).unknown());
    trace.damage = {};
    trace.damage.chunks_unreadable = 1;
    CHECK(process_end(trace).unknown());
    trace.facts = {{kSignalFact, "9"}};  // its parent saw it
    CHECK(process_end(trace).signal == 9);
    trace.facts = {{kAliveFact, "100"}};  // its ring is at hand
    CHECK(process_end(trace).failed());
    trace.facts.clear();
    trace.ending = Ending::kNormal;
    CHECK_FALSE(process_end(trace).unknown());
}

TEST_CASE("a pause may begin with the process or last until its end", "[ends]") {
    const TemporaryFolder folder;
    TraceWriter trace;
    trace.simple(EventKind::kMark, 0, 0, 0);
    trace.simple(EventKind::kRecordingStarted, 0, 0, 0);
    trace.simple(EventKind::kMark, 0, 0, 0);
    trace.simple(EventKind::kRecordingStopped, 0, 0, 0);
    const Timeline timeline = read(folder, &trace);
    REQUIRE(timeline.gaps.size() == 2);
    CHECK(timeline.gaps[0].begin == 0);
    CHECK(timeline.gaps[0].end == 1);
    CHECK(timeline.gaps[1].begin == 3);
    CHECK(timeline.gaps[1].end == 4);
}
