// Which windows of a long trace are read, and what a report says of a trace that is read in part.
#include "analyzer/analysis/windows.h"

#include <fragtrace/sizes.h>

#include "analyzer/analysis/analyze.h"
#include "analyzer/analysis/compare/comparison.h"
#include "analyzer/analysis/conclusion.h"
#include "analyzer/analysis/culprit.h"
#include "analyzer/analysis/read_run.h"
#include "analyzer/analysis/verdict/verdict_text.h"
#include "analyzer/report/compare_report.h"
#include "analyzer/report/text/conclusion_text.h"
#include "analyzer/report/text/text.h"
#include "tests/support/simulated_program.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using namespace fragtrace::testing;

namespace {

TraceSummary summary_of(std::uint64_t events, const DeviceSummary& device) {
    TraceSummary summary;
    summary.events = events;
    summary.devices = {device};
    return summary;
}

std::uint64_t events_in(const std::vector<EventWindow>& windows) {
    std::uint64_t sum = 0;
    for (const EventWindow& window : windows) {
        sum += window.end - window.begin;
    }
    return sum;
}

bool is_read(const std::vector<EventWindow>& windows, std::uint64_t event) {
    return std::any_of(windows.begin(), windows.end(), [event](const EventWindow& window) {
        return window.begin <= event && event < window.end;
    });
}

// Steps that allocate and free. One request in the middle is larger than the card; later a step
// needs most memory.
void save_long_run(const std::string& path) {
    SimulatedProgram program(256 * kMiB);
    std::mt19937 random(7);
    for (int step = 0; step < 300; ++step) {
        constexpr int kRequests = 20;
        std::vector<std::uint32_t> blocks;
        blocks.reserve(kRequests + 1);
        program.at("forward", 10);
        for (int i = 0; i < kRequests; ++i) {
            blocks.push_back(program.alloc((1 + random() % 40) * 64 * 1024));
        }
        if (step == 120) {
            program.at("too_large", 20);
            program.alloc(300 * kMiB);
        }
        if (step == 200) {
            program.at("validate", 30);
            blocks.push_back(program.alloc(150 * kMiB));
        }
        std::shuffle(blocks.begin(), blocks.end(), random);
        for (const std::uint32_t block : blocks) {
            program.free(block);
        }
        program.at("leak", 40);
        program.alloc(1024);
    }
    program.save(path);
}

// Blocks that stay divide every segment, long before a request that no hole can serve.
void save_fragmented_run(const std::string& path) {
    SimulatedProgram program(256 * kMiB);
    program.at("load", 10);
    std::vector<std::uint32_t> blocks;
    for (int i = 0; i < 36; ++i) {
        blocks.push_back(program.alloc(6 * kMiB));
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (i % 3 != 1) {
            program.free(blocks[i]);
        }
    }
    program.at("train", 20);
    for (int i = 0; i < 1000; ++i) {
        program.free(program.alloc(512));
    }
    program.at("validate", 30);
    program.alloc(40 * kMiB);
    program.save(path);
}

}  // namespace

TEST_CASE("windows: the moments and the end are read, within the limit", "[windows]") {
    std::mt19937_64 random(3);
    for (int round = 0; round < 3000; ++round) {
        const std::uint64_t events = 100'000 + random() % 10'000'000'000;
        const std::uint64_t most = 2000 + random() % 20'000'000;
        DeviceSummary device;
        device.first_oom_event = random() % events;
        device.last_oom_event =
            *device.first_oom_event + random() % (events - *device.first_oom_event);
        device.peak_reserved_event = random() % events;
        device.peak_allocated_event = random() % events;
        device.most_blocks = random() % (most / 12);
        const auto windows = choose_windows(summary_of(events, device), most);
        REQUIRE(!windows.empty());
        CHECK(windows.back().end == events);
        std::uint64_t cost = events_in(windows);
        for (std::size_t i = 0; i < windows.size(); ++i) {
            REQUIRE(windows[i].begin < windows[i].end);
            REQUIRE((i == 0 || windows[i].begin > windows[i - 1].end + 2 * device.most_blocks));
            cost += windows[i].begin == 0 ? 0 : device.most_blocks;
        }
        if (events <= most) {
            continue;
        }
        CHECK(cost <= most);
        CHECK(is_read(windows, *device.first_oom_event));
        CHECK(is_read(windows, *device.last_oom_event));
        CHECK(is_read(windows, device.peak_reserved_event));
        CHECK(is_read(windows, device.peak_allocated_event));
        // No room is given away: one more event for each window would be too much.
        CHECK(cost + most / 8 + 4 * (windows.size() + 1) * (device.most_blocks + 8) >= most / 2);
    }
}

TEST_CASE("windows: moments without room are left out, the first failure last", "[windows]") {
    DeviceSummary device;
    device.first_oom_event = 500'000;
    device.last_oom_event = 600'000;
    device.peak_reserved_event = 700'000;
    device.peak_allocated_event = 800'000;
    device.most_blocks = 2400;  // twice that is affordable, with 10,000 events
    const auto windows = choose_windows(summary_of(1'000'000, device), 10'000);
    REQUIRE(windows.size() == 2);
    CHECK(is_read(windows, 500'000));
    CHECK(is_read(windows, 999'999));
    device.most_blocks = 6000;
    CHECK(choose_windows(summary_of(1'000'000, device), 10'000).size() == 1);
}

TEST_CASE("windows: moments that lie close together share one", "[windows]") {
    DeviceSummary device;
    device.first_oom_event = 999'000;
    device.last_oom_event = 999'900;
    device.peak_reserved_event = 998'000;
    device.peak_allocated_event = 998'000;
    const auto windows = choose_windows(summary_of(1'000'000, device), 50'000);
    REQUIRE(windows.size() == 1);
    CHECK(events_in(windows) == 50'000);
}

TEST_CASE("a trace read in part: the same failure, culprit and peaks as in the whole",
          "[windows]") {
    const TemporaryFolder folder;
    const std::string path = folder.file("t.ftrace");
    save_long_run(path);
    const auto whole = analyze(path, {});
    REQUIRE(whole.ok());
    const auto part = analyze(path, {.most_events = 2000});
    REQUIRE(part.ok());
    const Timeline& read = (*part)->timeline;
    CHECK(read.recorded_events() == (*whole)->timeline.events.size());
    CHECK(read.events_read() <= 2000);
    CHECK(read.gaps.size() >= 2);
    CHECK((*whole)->timeline.gaps.empty());
    REQUIRE((*part)->devices.size() == 1);
    const DeviceAnalysis& a = (*whole)->devices.front();
    const DeviceAnalysis& b = (*part)->devices.front();
    CHECK(b.recorded.peak_reserved == a.recorded.peak_reserved);
    CHECK(b.recorded.peak_allocated == a.recorded.peak_allocated);
    CHECK(b.recorded.segments_allocated == a.recorded.segments_allocated);
    CHECK(b.recorded.ooms == 1);
    CHECK(b.violations == 0);
    REQUIRE(reported_oom(a) != nullptr);
    REQUIRE(reported_oom(b) != nullptr);
    CHECK(reported_oom(b)->verdict.id == reported_oom(a)->verdict.id);
    CHECK(reported_oom(b)->verdict.requested_bytes == 300 * kMiB);
    CHECK(verdict_sentence(reported_oom(b)->verdict, Outcome::kOutOfMemory) ==
          verdict_sentence(reported_oom(a)->verdict, Outcome::kOutOfMemory));
    REQUIRE(b.peak);
    REQUIRE(a.peak);
    CHECK(b.peak->heap.segments.size() == a.peak->heap.segments.size());
    REQUIRE(b.fidelity);
    CHECK(b.fidelity->placements_equal == b.fidelity->placements);
    // Steps are those of the last piece, which has no failure.
    CHECK(b.held.iterations.begins.size() < a.held.iterations.begins.size());

    const std::string text = report_text(**part, Terminal(-1, ColorChoice::kNever), false);
    CHECK(text.find("of the " + std::to_string(read.recorded_events() / 1000) + ",") !=
          std::string::npos);
    CHECK(text.find("were not read") != std::string::npos);
    CHECK(text.find("recording was stopped") == std::string::npos);
}

TEST_CASE(
    "a trace read in part: caching off is no remedy, since only its replay moves older memory",
    "[windows]") {
    const TemporaryFolder folder;
    const std::string path = folder.file("t.ftrace");
    save_fragmented_run(path);
    AnalyzeOptions options;
    add_report_replays(&options);
    const auto whole = analyze(path, options);
    options.most_events = 500;
    const auto part = analyze(path, options);
    REQUIRE(whole.ok());
    REQUIRE(part.ok());
    const DeviceAnalysis& a = (*whole)->devices.front();
    const DeviceAnalysis& b = (*part)->devices.front();
    const auto uncached = [](const DeviceAnalysis& device) {
        return std::find_if(
            device.remedies.begin(), device.remedies.end(), [](const WhatIfRow& row) {
                return row.candidate.remedy == Remedy::kCachingOff;
            });
    };
    REQUIRE(uncached(a) != a.remedies.end());
    REQUIRE(uncached(b) != b.remedies.end());
    CHECK(uncached(b)->ooms() == 0);
    const Recommendation of_whole = conclusion_of(**whole, a).remedy;
    REQUIRE(of_whole.row != nullptr);
    CHECK(of_whole.row->candidate.remedy != Remedy::kCachingOff);
    const Recommendation of_part = conclusion_of(**part, b).remedy;
    CHECK(of_part.kind == Recommendation::Kind::kNothingHelps);
    CHECK(of_part.row == nullptr);
    CHECK_THAT(remedy_text(b, of_part),
               Catch::Contains("242 MiB from before the recorded requests in place"));
}

TEST_CASE(
    "a run that is compared in part: figures and lines at the peak are those of the whole run",
    "[windows]") {
    const TemporaryFolder folder;
    const std::string path = folder.file("t.ftrace");
    save_long_run(path);
    const auto profile = [&path](std::uint64_t most_events) {
        const auto read = read_run(path, most_events);
        REQUIRE(read.ok());
        Symbolizer symbols(read->timeline);
        return profile_of(read->timeline, &symbols, read->whole ? &*read->whole : nullptr);
    };
    const RunProfile whole = profile(kAllEvents);
    const RunProfile part = profile(2000);
    CHECK_FALSE(whole.is_part());
    CHECK(part.is_part());
    CHECK(part.events == whole.events);
    CHECK_FALSE(whole.iterations.empty());
    const Comparison result = compare(whole, part);
    REQUIRE(result.devices.size() == 1);
    CHECK(result.devices[0].b->run.peak_reserved == result.devices[0].a->run.peak_reserved);
    CHECK(result.devices[0].b->run.ooms == 1);
    CHECK(part.has_holders);
    CHECK_FALSE(part.devices[0].holders.empty());
    CHECK(result.devices[0].grew.empty());
    CHECK(result.devices[0].shrank.empty());
    CHECK(result.iterations.empty());
    CHECK(compare_text(result, Terminal(-1, ColorChoice::kNever)).find("Only a part of B") !=
          std::string::npos);

    // Only the end has a window, so the lines at the peak are unknown.
    const Comparison without_peak = compare(whole, profile(400));
    CHECK(without_peak.devices[0].b->run.peak_reserved ==
          without_peak.devices[0].a->run.peak_reserved);
    CHECK(without_peak.devices[0].grew.empty());
    CHECK(without_peak.devices[0].shrank.empty());
    CHECK(compare_text(without_peak, Terminal(-1, ColorChoice::kNever)).find("without its peak") !=
          std::string::npos);
}

TEST_CASE("a failure without a window is counted, and its cause is unknown", "[windows]") {
    const TemporaryFolder folder;
    const std::string path = folder.file("t.ftrace");
    save_long_run(path);
    // A checkpoint has up to 300 blocks, so only the end has a window.
    const auto part = analyze(path, {.most_events = 400});
    REQUIRE(part.ok());
    const DeviceAnalysis& device = (*part)->devices.front();
    CHECK(device.recorded.ooms == 1);
    CHECK(reported_oom(device) == nullptr);
    CHECK_FALSE(device.state_only);
    const std::string text = report_text(**part, Terminal(-1, ColorChoice::kNever), false);
    CHECK(text.find("1 out-of-memory: the cause is unknown") != std::string::npos);
    CHECK(text.find("No request") == std::string::npos);
}

TEST_CASE("a trace with as many events as the limit is read as a whole", "[windows]") {
    const TemporaryFolder folder;
    const std::string path = folder.file("t.ftrace");
    save_long_run(path);
    const auto whole = analyze(path, {});
    REQUIRE(whole.ok());
    const std::uint64_t events = (*whole)->timeline.events.size();
    for (const bool more : {false, true}) {
        const auto part = analyze(path, {.most_events = events - (more ? 1 : 0)});
        REQUIRE(part.ok());
        CHECK(((*part)->timeline.events_in_file != 0) == more);
    }
}
