// Snapshots become timelines: the live blocks at the start, the events, and the rules of the
// release.
#include "analyzer/analysis/analyze.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/support/units.h"
#include "tests/support/pickle_writer.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::SnapshotWriter;
using fragtrace::testing::TemporaryFolder;

namespace {

constexpr std::uint64_t kBase = 0x7f0000000000;

std::string save(const SnapshotWriter& writer, const TemporaryFolder& folder) {
    std::string path = folder.file("x.pickle");
    std::ofstream(path, std::ios::binary) << writer.pickle();
    return path;
}

std::unique_ptr<Analysis> analysis_of(const SnapshotWriter& writer) {
    const TemporaryFolder folder;
    auto analysis = analyze(save(writer, folder), {});
    if (!analysis.ok()) {
        FAIL(analysis.error().message);
    }
    return std::move(analysis).value();
}

std::size_t count_of(const Timeline& timeline, EventKind kind) {
    return static_cast<std::size_t>(
        std::count_if(timeline.events.begin(), timeline.events.end(), [kind](const Event& event) {
            return event.kind == kind;
        }));
}

std::vector<std::uint64_t> block_sizes(const Timeline& timeline) {
    std::vector<std::uint64_t> sizes;
    for (const Event& event : timeline.events) {
        if (event.kind == EventKind::kBlockAlloc) {
            sizes.push_back(event.extra);
        }
    }
    return sizes;
}

}  // namespace

TEST_CASE("a history from the first segment on replays with every placement equal", "[snapshot]") {
    SnapshotWriter writer;
    writer.segments = {
        {.address = kBase, .blocks = {{512, "active_allocated", 100}, {2 * kMiB - 512}}}};
    writer.entries = {{"segment_alloc", kBase, 2 * kMiB},
                      {"alloc", kBase, 100},
                      {"alloc", kBase + 512, 700},
                      {"free_requested", kBase + 512, 700},
                      {"free_completed", kBase + 512, 700}};
    const auto analysis = analysis_of(writer);
    CHECK(analysis->timeline.checkpoints.empty());
    REQUIRE(analysis->devices.size() == 1);
    const auto& fidelity = *analysis->devices[0].fidelity;
    CHECK(fidelity.exact());
    CHECK(fidelity.placements == 2);
    CHECK(fidelity.segments == 1);
}

TEST_CASE("a freed block has the size that the replay computes", "[snapshot]") {
    SnapshotWriter writer;
    writer.segments = {{.address = kBase, .blocks = {{20 * kMiB}}}};
    // The 3.5 MiB at the front serve 3 MiB without a split. When that block is freed, everything
    // after it is free, so its addresses do not show where it ended.
    writer.entries = {{"segment_alloc", kBase, 20 * kMiB},
                      {"alloc", kBase, 7 * kMiB / 2},
                      {"alloc", kBase + 7 * kMiB / 2, 5 * kMiB},
                      {"free_requested", kBase, 7 * kMiB / 2},
                      {"free_completed", kBase, 7 * kMiB / 2},
                      {"alloc", kBase, 3 * kMiB},
                      {"alloc", kBase + 17 * kMiB / 2, 3 * kMiB / 2},
                      {"free_requested", kBase + 17 * kMiB / 2, 3 * kMiB / 2},
                      {"free_completed", kBase + 17 * kMiB / 2, 3 * kMiB / 2},
                      {"free_requested", kBase + 7 * kMiB / 2, 5 * kMiB},
                      {"free_completed", kBase + 7 * kMiB / 2, 5 * kMiB},
                      {"free_requested", kBase, 3 * kMiB},
                      {"free_completed", kBase, 3 * kMiB}};
    const auto analysis = analysis_of(writer);
    const DeviceAnalysis& device = analysis->devices.at(0);
    REQUIRE(device.fidelity->exact());
    CHECK(device.recorded.peak_allocated == 10 * kMiB);
    const std::vector<std::uint64_t> sizes = {7 * kMiB / 2, 5 * kMiB, 7 * kMiB / 2, 3 * kMiB / 2};
    CHECK(block_sizes(analysis->timeline) == sizes);
    // The same without a report.
    const TemporaryFolder folder;
    const auto timeline = read_input(save(writer, folder));
    REQUIRE(timeline.ok());
    CHECK(block_sizes(*timeline) == sizes);
}

TEST_CASE("a history that starts in mid-life begins with the live blocks of that time",
          "[snapshot]") {
    SnapshotWriter writer;
    writer.segments = {{.address = kBase, .blocks = {{20 * kMiB, "active_allocated", 19 * kMiB}}}};
    // 19 MiB leave 1 MiB, which stays with the block: no other block fits there.
    writer.entries = {{"free_requested", kBase + 8 * kMiB, 11 * kMiB},
                      {"free_completed", kBase + 8 * kMiB, 11 * kMiB},
                      {"free_requested", kBase, 8 * kMiB},
                      {"free_completed", kBase, 8 * kMiB},
                      {"alloc", kBase, 19 * kMiB}};
    const auto analysis = analysis_of(writer);
    const Timeline& timeline = analysis->timeline;
    REQUIRE(timeline.checkpoints.size() == 1);
    CHECK(timeline.damage.notes.empty());
    const HeapSnapshot& heap = analysis->devices.at(0).script.checkpoints.at(0);
    REQUIRE(heap.blocks.size() == 2);
    CHECK(heap.blocks[0].size_bytes == 8 * kMiB);
    CHECK(heap.blocks[1].size_bytes == 12 * kMiB);  // including its unsplit remainder
    CHECK(heap.blocks[1].requested_bytes == 11 * kMiB);
    CHECK(analysis->devices[0].fidelity->exact());
    CHECK(analysis->devices[0].fidelity->placements == 1);
}

TEST_CASE("the start of a free block follows from blocks placed there later", "[snapshot]") {
    constexpr std::uint64_t kOther = kBase + 100 * kMiB;
    constexpr std::uint64_t kRequested = 7 * kMiB + kMiB / 4;  // the block has 8 MiB
    SnapshotWriter writer;
    writer.segments = {
        {.address = kBase, .blocks = {{20 * kMiB}}},
        {.address = kOther, .blocks = {{8 * kMiB, "active_allocated", 8 * kMiB}, {12 * kMiB}}}};
    // Both segments had 12 MiB free, so the lower address is used.
    writer.entries = {{"alloc", kBase + 8 * kMiB, 3 * kMiB},
                      {"free_requested", kBase + 8 * kMiB, 3 * kMiB},
                      {"free_completed", kBase + 8 * kMiB, 3 * kMiB},
                      {"free_requested", kBase, kRequested},
                      {"free_completed", kBase, kRequested}};
    const auto analysis = analysis_of(writer);
    const HeapSnapshot& heap = analysis->devices.at(0).script.checkpoints.at(0);
    REQUIRE(heap.blocks.size() == 4);
    CHECK(heap.blocks[0].size_bytes == 8 * kMiB);
    CHECK(heap.blocks[0].requested_bytes == kRequested);
    CHECK(heap.blocks[1].size_bytes == 12 * kMiB);
    CHECK(analysis->devices[0].fidelity->exact());
}

TEST_CASE("a free that does not complete at once stays pending until it completes", "[snapshot]") {
    SnapshotWriter writer;
    writer.segments = {
        {.address = kBase,
         .blocks = {{kMiB, "active_allocated", kMiB}, {kMiB, "active_pending_free", kMiB}}}};
    writer.entries = {{"segment_alloc", kBase, 2 * kMiB},
                      {"alloc", kBase, kMiB},
                      {"alloc", kBase + kMiB, kMiB},
                      {"free_requested", kBase, kMiB},
                      {"free_requested", kBase + kMiB, kMiB},
                      {"free_completed", kBase, kMiB},
                      {"alloc", kBase, kMiB}};
    const auto analysis = analysis_of(writer);
    CHECK(count_of(analysis->timeline, EventKind::kPendingEvent) == 2);
    CHECK(count_of(analysis->timeline, EventKind::kEventComplete) == 1);
    CHECK(analysis->devices.at(0).fidelity->exact());
    CHECK(analysis->devices[0].fidelity->placements == 3);
}

TEST_CASE("segment frees with the next request's stack belong to it, others to empty_cache",
          "[snapshot]") {
    SnapshotWriter writer;
    writer.segments = {
        {.address = kBase + 40 * kMiB, .blocks = {{30 * kMiB, "active_allocated", 30 * kMiB}}}};
    writer.entries = {{"segment_alloc", kBase, 20 * kMiB},
                      {"alloc", kBase, 20 * kMiB},
                      {"free_requested", kBase, 20 * kMiB},
                      {"free_completed", kBase, 20 * kMiB},
                      {"segment_free", kBase, 20 * kMiB, 0, "big.py"},
                      {"segment_alloc", kBase + 40 * kMiB, 30 * kMiB, 0, "big.py"},
                      {"alloc", kBase + 40 * kMiB, 30 * kMiB, 0, "big.py"}};
    const auto retry = analysis_of(writer);
    CHECK(count_of(retry->timeline, EventKind::kAllocRefused) == 1);
    CHECK(count_of(retry->timeline, EventKind::kEmptyCache) == 0);
    CHECK(retry->devices.at(0).fidelity->exact());
    CHECK(retry->devices[0].troubles == 1);
    writer.entries[4].line = "other.py";
    const auto emptied = analysis_of(writer);
    CHECK(count_of(emptied->timeline, EventKind::kAllocRefused) == 0);
    CHECK(count_of(emptied->timeline, EventKind::kEmptyCache) == 1);
    CHECK(emptied->devices.at(0).fidelity->exact());
    CHECK(emptied->devices[0].troubles == 0);
}

TEST_CASE("an out-of-memory in the history is diagnosed", "[snapshot]") {
    SnapshotWriter writer;
    writer.segments = {
        {.address = kBase, .blocks = {{8 * kMiB, "active_allocated", 8 * kMiB}, {12 * kMiB}}}};
    writer.entries = {{"segment_alloc", kBase, 20 * kMiB},
                      {"alloc", kBase, 8 * kMiB},
                      {"oom", 5 * kMiB, 14 * kMiB}};
    const auto analysis = analysis_of(writer);
    REQUIRE(analysis->devices.at(0).diagnoses.size() == 1);
    CHECK(analysis->devices[0].diagnoses[0].trouble.outcome == Outcome::kOutOfMemory);
    CHECK(analysis->devices[0].fidelity->exact());
}

TEST_CASE("a state without history lists the live memory", "[snapshot]") {
    SnapshotWriter writer;
    writer.with_history = false;
    writer.segments = {
        {.address = kBase, .blocks = {{8 * kMiB, "active_allocated", 8 * kMiB}, {12 * kMiB}}}};
    const auto analysis = analysis_of(writer);
    REQUIRE(analysis->devices.size() == 1);
    CHECK(analysis->devices[0].recorded.peak_allocated == 8 * kMiB);
    CHECK(analysis->devices[0].recorded.peak_reserved == 20 * kMiB);
}

TEST_CASE("missing settings are concluded from expandable segments", "[snapshot]") {
    const bool expandable = GENERATE(true, false);
    SnapshotWriter writer;
    writer.with_history = false;
    writer.with_settings = false;
    writer.of_registration = false;
    writer.segments = {{.address = kBase,
                        .blocks = {{8 * kMiB, "active_allocated", 8 * kMiB}, {12 * kMiB}},
                        .expandable = expandable}};
    const auto analysis = analysis_of(writer);
    REQUIRE(analysis->devices.size() == 1);
    CHECK(analysis->devices[0].config == (expandable ? "expandable_segments:True" : ""));
    CHECK(std::any_of(
        analysis->assumptions.begin(), analysis->assumptions.end(), [&](const std::string& line) {
            return line.find(expandable ? "expandable_segments:True is assumed"
                                        : "the defaults are assumed") != std::string::npos;
        }));
}

TEST_CASE("a history that contradicts the state at the end is reported", "[snapshot]") {
    SnapshotWriter writer;
    writer.segments = {{.address = kBase, .blocks = {{2 * kMiB}}}};
    writer.entries = {{"segment_alloc", kBase, 2 * kMiB}, {"alloc", kBase, kMiB}};
    const auto analysis = analysis_of(writer);
    REQUIRE_FALSE(analysis->timeline.damage.notes.empty());
    CHECK(analysis->timeline.damage.notes[0].find("disagree 1 time: entry 1 of device 0") !=
          std::string::npos);
}
