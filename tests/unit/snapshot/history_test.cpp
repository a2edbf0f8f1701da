// Events made from a history: times, sizes of refusals, reservations, and blocks from before the
// history.
#include "analyzer/support/units.h"
#include "tests/unit/snapshot/snapshot_file.h"

#include <algorithm>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::testing;

namespace {

constexpr std::uint64_t kBase = 0x7f0000000000;

std::unique_ptr<Analysis> analysis_of(const SnapshotWriter& writer) {
    const TemporaryFolder folder;
    write_file(folder.file("x.pickle"), writer.pickle());
    auto analysis = analyze(folder.file("x.pickle"), {});
    REQUIRE(analysis.ok());
    return std::move(analysis).value();
}

std::vector<Event> events_of(const Analysis& analysis, EventKind kind) {
    std::vector<Event> found;
    for (const Event& event : analysis.timeline.events) {
        if (event.kind == kind) {
            found.push_back(event);
        }
    }
    return found;
}

bool is_noted(const Analysis& analysis, const std::string& text) {
    const std::vector<std::string>& notes = analysis.timeline.damage.notes;
    return std::any_of(notes.begin(), notes.end(), [&text](const std::string& note) {
        return note.find(text) != std::string::npos;
    });
}

// Blocks of the state at the beginning of the history.
std::vector<HeapBlock> blocks_before(const Analysis& analysis) {
    return analysis.devices.at(0).script.checkpoints.at(0).blocks;
}

}  // namespace

TEST_CASE("entries are 10 us apart, in nanoseconds from the first one on", "[history]") {
    SnapshotWriter writer;
    writer.segments = {{.address = kBase, .blocks = {{2 * kMiB}}}};
    writer.entries = {{"segment_alloc", kBase, 2 * kMiB},
                      {"alloc", kBase, 512},
                      {"free_requested", kBase, 512},
                      {"free_completed", kBase, 512}};
    const auto analysis = analysis_of(writer);
    CHECK(events_of(*analysis, EventKind::kDeviceAlloc).at(0).time_ns == 0);
    CHECK(events_of(*analysis, EventKind::kBlockAlloc).at(0).time_ns == 10'000);
    CHECK(events_of(*analysis, EventKind::kBlockFree).at(0).time_ns == 20'000);
}

TEST_CASE("a refusal has the size of the rounded request's segment", "[history]") {
    SnapshotWriter writer;
    writer.segments = {{.address = kBase, .blocks = {{20 * kMiB, "active_allocated", 20 * kMiB}}}};
    writer.entries = {{"segment_alloc", kBase, 20 * kMiB},
                      {"alloc", kBase, 20 * kMiB},
                      {"oom", 5 * kMiB, 10 * kMiB - 100}};  // rounded, it needs its own segment
    const auto analysis = analysis_of(writer);
    const std::vector<Event> refused = events_of(*analysis, EventKind::kAllocRefused);
    REQUIRE(refused.size() == 2);  // refused again after a release that freed nothing
    CHECK(refused[0].size_bytes == 10 * kMiB);
}

TEST_CASE("at a refusal the pool's capacity is the free memory plus its own memory", "[history]") {
    SnapshotWriter writer;
    writer.segments = {{.address = kBase, .blocks = {{20 * kMiB, "active_allocated", 20 * kMiB}}}};
    writer.entries = {{"segment_alloc", kBase, 20 * kMiB},
                      {"alloc", kBase, 20 * kMiB},
                      {"segment_alloc", kBase + 40 * kMiB, 30 * kMiB},
                      {"alloc", kBase + 40 * kMiB, 30 * kMiB},
                      {"free_requested", kBase + 40 * kMiB, 30 * kMiB},
                      {"free_completed", kBase + 40 * kMiB, 30 * kMiB},
                      {"segment_free", kBase + 40 * kMiB, 30 * kMiB, 0, "big.py"},
                      {"oom", 35 * kMiB, 50 * kMiB, 0, "big.py"}};
    const auto analysis = analysis_of(writer);
    const std::vector<Event> told = events_of(*analysis, EventKind::kMemoryInfo);
    REQUIRE(told.size() == 1);
    CHECK(told[0].size_bytes == 35 * kMiB);
    CHECK(told[0].extra == 55 * kMiB);
    // Refused before the release, and again after it.
    CHECK(events_of(*analysis, EventKind::kAllocRefused).size() == 2);
}

TEST_CASE("a range is reserved at its first map and freed at its last unmap", "[history]") {
    SnapshotWriter writer;
    writer.segments = {};
    writer.entries = {{"segment_map", kBase, 20 * kMiB},
                      {"segment_map", kBase + 20 * kMiB, 20 * kMiB},
                      {"alloc", kBase, 30 * kMiB},
                      {"free_requested", kBase, 30 * kMiB},
                      {"free_completed", kBase, 30 * kMiB},
                      {"segment_unmap", kBase, 20 * kMiB},
                      {"segment_unmap", kBase + 20 * kMiB, 20 * kMiB}};
    const auto analysis = analysis_of(writer);
    CHECK(events_of(*analysis, EventKind::kAddressReserve).size() == 1);
    CHECK(events_of(*analysis, EventKind::kAddressFree).size() == 1);
}

TEST_CASE("a block from before the history without a recorded request has an unknown request",
          "[history]") {
    SnapshotWriter writer;
    writer.with_history = false;
    writer.segments = {{.address = kBase, .blocks = {{20 * kMiB, "active_allocated", 0}}}};
    const auto analysis = analysis_of(writer);
    CHECK(events_of(*analysis, EventKind::kBlockAlloc).at(0).size_bytes == kUnknown64);
}

TEST_CASE("a block keeps up to 1 MiB unsplit in large segments only", "[history]") {
    // Segments whose last block was freed before the segment was.
    for (const std::uint64_t segment : {2 * kMiB, 20 * kMiB}) {
        CAPTURE(segment);
        SnapshotWriter writer;
        writer.segments = {{.address = kBase + 100 * kMiB, .blocks = {{2 * kMiB}}}};
        const std::uint64_t second = kBase + segment - kMiB;
        writer.entries = {{"free_requested", kBase, segment - kMiB},
                          {"free_completed", kBase, segment - kMiB},
                          {"free_requested", second, 512 * 1024},
                          {"free_completed", second, 512 * 1024},
                          {"segment_free", kBase, segment, 0, "other.py"},
                          {"alloc", kBase + 100 * kMiB, 512}};
        const std::vector<HeapBlock> blocks = blocks_before(*analysis_of(writer));
        const auto found = std::find_if(blocks.begin(), blocks.end(), [second](const auto& block) {
            return block.address == second;
        });
        REQUIRE(found != blocks.end());
        CHECK(found->size_bytes == (segment == 2 * kMiB ? kMiB / 2 : kMiB));
    }
}

TEST_CASE("a free 1 MiB before a block of the history belongs to the previous block", "[history]") {
    SnapshotWriter writer;
    writer.segments = {{.address = kBase,
                        .blocks = {{7 * kMiB, "active_allocated", 7 * kMiB},
                                   {kMiB},
                                   {12 * kMiB, "active_allocated", 12 * kMiB}}}};
    writer.entries = {{"alloc", kBase + 8 * kMiB, 12 * kMiB}};
    CHECK(blocks_before(*analysis_of(writer)).at(0).size_bytes == 8 * kMiB);
}

TEST_CASE("frees that fit into no block or segment contradict the state at the end", "[history]") {
    SnapshotWriter writer;
    writer.segments = {{.address = kBase, .blocks = {{20 * kMiB}}}};
    writer.entries = {{"alloc", kBase, 512},
                      {"free_requested", kBase, 512},
                      {"free_completed", kBase, 512},
                      {"free_requested", kBase + 16 * kMiB, 8 * kMiB},
                      {"free_completed", kBase + 16 * kMiB, 8 * kMiB}};
    CHECK(is_noted(*analysis_of(writer), "larger than the free memory"));
    writer.entries[3].address = writer.entries[4].address = kBase + 100 * kMiB;
    CHECK(is_noted(*analysis_of(writer), "in no segment"));
}
