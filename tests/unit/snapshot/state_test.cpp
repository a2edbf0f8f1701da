// Snapshots with little history: only a state, and histories that begin in mid-life.
#include "analyzer/analysis/check/checks.h"
#include "analyzer/analysis/metrics/trace_summary.h"
#include "analyzer/analysis/replay_setups.h"
#include "analyzer/support/units.h"
#include "tests/unit/snapshot/snapshot_file.h"

#include <algorithm>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::keep_report;
using fragtrace::testing::report_of;
using fragtrace::testing::SnapshotWriter;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::text_of;

namespace {

constexpr std::uint64_t kBase = 0x7f0000000000;

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

// 8 MiB and 3 MiB in use, with holes of 12 MiB and 512 KiB, and a small segment with a hole of 1.5
// MiB.
SnapshotWriter state() {
    SnapshotWriter writer;
    writer.with_history = false;
    writer.segments = {
        {.address = kBase, .blocks = {{8 * kMiB, "active_allocated", 8 * kMiB}, {12 * kMiB}}},
        {.address = kBase + 32 * kMiB,
         .blocks = {{3 * kMiB, "active_allocated", 3 * kMiB}, {kMiB / 2}}},
        {.address = kBase + 64 * kMiB,
         .blocks = {{kMiB / 2, "active_allocated", kMiB / 2}, {kMiB + kMiB / 2}}}};
    return writer;
}

const std::vector<SnapshotWriter::Entry> kBusy = {{"free_requested", kBase + 8 * kMiB, 4 * kMiB},
                                                  {"free_completed", kBase + 8 * kMiB, 4 * kMiB},
                                                  {"alloc", kBase + 8 * kMiB, 4 * kMiB},
                                                  {"free_requested", kBase + 8 * kMiB, 4 * kMiB},
                                                  {"free_completed", kBase + 8 * kMiB, 4 * kMiB}};

}  // namespace

TEST_CASE("a state without history gives holders and the largest request for each hole",
          "[snapshot]") {
    const auto analysis = report_of(state());
    const DeviceAnalysis& device = analysis->devices.at(0);
    CHECK(device.state_only);
    REQUIRE(device.held.holders.size() == 1);
    CHECK(device.held.holders[0].allocated_bytes == 11 * kMiB + kMiB / 2);
    REQUIRE(device.held.holders[0].places.size() == 1);
    CHECK(device.held.holders[0].places[0].held.label == "train.py:7 step");
    REQUIRE(device.holes.size() == 3);
    CHECK(device.holes[0].size_bytes == 12 * kMiB);
    CHECK(device.holes[0].largest_request_bytes == 12 * kMiB);
    CHECK(device.holes[1].size_bytes == kMiB + kMiB / 2);
    CHECK(device.holes[1].largest_request_bytes == kMiB);  // the small pool's largest request
    CHECK(device.holes[2].size_bytes == kMiB / 2);
    CHECK(device.holes[2].largest_request_bytes == 0);  // such requests use the small pool
}

TEST_CASE("a state without history gives no statement about requests or settings", "[snapshot]") {
    const auto analysis = report_of(state());
    const DeviceAnalysis& device = analysis->devices.at(0);
    CHECK(device.settings.empty());
    CHECK(device.remedies.empty());
    CHECK(device.bounds.empty());
    CHECK(device.advice.empty());
    CHECK_FALSE(device.no_whatif.empty());
    const std::string text = text_of(*analysis);
    CHECK(has(text, "State at one moment, without history"));
    CHECK(has(text, "each serves one request of up to 12 MiB"));
    CHECK_FALSE(has(text, "No out-of-memory"));
    CHECK_FALSE(has(text, "exact"));
    CHECK_FALSE(has(text, "did nothing"));
    const std::string json = report_json(*analysis);
    keep_report("state", json);
    CHECK(has(json, "\"state_only\": true"));
    // A snapshot does not say how large the card is.
    CHECK(has(json, "\"capacity_bytes\": null"));
    CHECK(has(json, "\"total_bytes\": null"));
    CHECK_FALSE(has(json, std::to_string(kUnlimitedBytes)));
    CHECK(has(json, "\"largest_request_bytes\": 12582912"));
}

TEST_CASE("blocks without stacks are grouped by size", "[snapshot]") {
    SnapshotWriter writer = state();
    writer.with_stacks = false;
    const auto analysis = report_of(writer);
    const auto& places = analysis->devices.at(0).held.holders.at(0).places;
    REQUIRE(places.size() == 3);
    CHECK(places[0].held.label == "no stack: blocks of 8 MiB");
    CHECK(places[0].held.bytes == 8 * static_cast<std::int64_t>(kMiB));
}

TEST_CASE("a check does not pass on a state without history", "[snapshot]") {
    TemporaryFolder folder;
    const std::string path = folder.file("x.pickle");
    std::ofstream(path, std::ios::binary) << state().pickle();
    const auto summary = summarize_trace(path);
    REQUIRE(summary.ok());
    REQUIRE(summary->devices.size() == 1);
    CHECK(summary->devices[0].metrics.state_only);
    Limits limits;
    limits.no_oom = true;
    const auto rows = check_limits(*summary, limits);
    CHECK(std::any_of(rows.begin(), rows.end(), [](const CheckRow& row) {
        return row.check == "history" && !row.passed;
    }));
}

TEST_CASE("a history that ends in an out-of-memory reports it", "[snapshot]") {
    SnapshotWriter writer = state();
    writer.with_history = true;
    writer.entries = {{"oom", 5 * kMiB, 14 * kMiB}, {"snapshot", 0, 0}};
    const auto analysis = report_of(writer);
    CHECK_FALSE(analysis->devices.at(0).state_only);
    const std::string text = text_of(*analysis);
    CHECK(has(text, "1 entry of history, the last one an out-of-memory"));
    CHECK_FALSE(has(text, "(exact)"));
}

TEST_CASE("a verdict from a replay that differs from the recorded run says so", "[snapshot]") {
    const auto report = [](std::uint64_t segment_bytes) {
        SnapshotWriter writer;
        writer.with_history = true;
        writer.segments = {
            {.address = kBase,
             .blocks = {{9 * kMiB, "active_allocated", 9 * kMiB}, {segment_bytes - 9 * kMiB}}}};
        writer.entries = {{"segment_alloc", kBase, segment_bytes},
                          {"alloc", kBase, 9 * kMiB},
                          {"oom", 5 * kMiB, 300 * kMiB}};
        return text_of(*report_of(writer));
    };
    const std::string basis = "differs from the recorded run: see fidelity";
    CHECK(has(report(32 * kMiB), basis));
    CHECK_FALSE(has(report(20 * kMiB), basis));
}

TEST_CASE("in mid-life the recorded row has the recorded waste, other rows are estimates",
          "[snapshot]") {
    SnapshotWriter writer;
    writer.segments = {
        {.address = kBase, .blocks = {{8 * kMiB, "active_allocated", 8 * kMiB}, {12 * kMiB}}},
        {.address = kBase + 100 * kMiB, .blocks = {{40 * kMiB}}},
        {.address = kBase + 200 * kMiB, .blocks = {{30 * kMiB}}}};
    writer.entries = kBusy;
    writer.entries.push_back({"segment_alloc", kBase + 300 * kMiB, 60 * kMiB});
    writer.entries.push_back({"alloc", kBase + 300 * kMiB, 60 * kMiB});
    writer.entries.push_back({"free_requested", kBase + 300 * kMiB, 60 * kMiB});
    writer.entries.push_back({"free_completed", kBase + 300 * kMiB, 60 * kMiB});
    writer.entries.push_back({"segment_free", kBase + 300 * kMiB, 60 * kMiB, 0, "other.py"});
    const bool grows = GENERATE(true, false);
    if (!grows) {
        writer.entries = kBusy;
    }
    const auto analysis = report_of(writer);
    const DeviceAnalysis& device = analysis->devices.at(0);
    CHECK(device.fidelity->exact());
    CHECK(device.recorded.waste_at_peak.inactive_split != 0);
    REQUIRE(device.peak);
    const std::string text = text_of(*analysis);
    CHECK_FALSE(has(text, "did nothing: same reserved memory (expandable_segments:True, exact)"));
    if (!grows) {
        // The trace has nothing that a setting could change.
        CHECK(device.settings.empty());
        CHECK(has(text, "all segments were allocated before the history"));
        return;
    }
    const WhatIfRow* recorded = recorded_row(device.settings);
    REQUIRE(recorded != nullptr);
    CHECK(recorded->row_class == RowClass::kExact);
    CHECK(recorded->result.waste_at_peak.inactive_split ==
          device.recorded.waste_at_peak.inactive_split);
    CHECK(recorded->result.waste_at_peak.releasable == device.recorded.waste_at_peak.releasable);
    for (const auto* rows : {&device.settings, &device.remedies, &device.capacities}) {
        for (const WhatIfRow& row : *rows) {
            INFO(row.candidate.name);
            CHECK((row.is_recorded || row.row_class == RowClass::kEstimate));
            CHECK((row.is_recorded || has(row.class_reason, "keep their recorded addresses")));
        }
    }
}

TEST_CASE("a replay that peaks at its start has the waste of the starting state", "[snapshot]") {
    SnapshotWriter writer = state();
    writer.with_history = true;
    writer.entries = {{"free_requested", kBase + 8 * kMiB, 4 * kMiB},
                      {"free_completed", kBase + 8 * kMiB, 4 * kMiB},
                      {"alloc", kBase + 8 * kMiB, 4 * kMiB},
                      {"free_requested", kBase + 8 * kMiB, 4 * kMiB},
                      {"free_completed", kBase + 8 * kMiB, 4 * kMiB}};
    const auto analysis = report_of(writer);
    const DeviceAnalysis& device = analysis->devices.at(0);
    auto setup = recorded_setup(device);
    REQUIRE(setup.ok());
    const ReplayResult result = replay(device.script, *setup->pool, setup->recorded);
    CHECK(result.waste_at_peak.inactive_split == device.recorded.waste_at_peak.inactive_split);
    CHECK(result.waste_at_peak.reserved == device.recorded.peak_reserved);
    CHECK(result.waste_at_peak.inactive_split != 0);
}
