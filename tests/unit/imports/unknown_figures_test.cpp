// Figures that an import does not show are unknown everywhere, never 0.
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/metrics/trace_summary.h"
#include "analyzer/export/formats.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/page/page_content.h"
#include "analyzer/report/text/text.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"
#include "tests/unit/imports/import_file.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <random>

using namespace fragtrace;
using namespace fragtrace::analyzer;

namespace {

const std::string kLog =
    "Thread,Time,Action,Pointer,Size,Stream\n"
    "1,12:00:00.000000,allocate,0x1000,1000,0\n"
    "1,12:00:00.000001,allocate,0x2000,3000000,0\n"
    "1,12:00:00.000002,free,0x1000,1000,0\n"
    "1,12:00:01.000000,allocate failure,(nil),1073741824,0\n"
    "1,12:00:01.000001,allocate,0x1000,500,0\n";

AnalyzeOptions with_replays() {
    AnalyzeOptions options;
    add_report_replays(&options);
    options.pools = true;
    return options;
}

}  // namespace

TEST_CASE("an import without segments has exact allocated memory and nothing of the rest",
          "[imports]") {
    const auto analysis = analysis_of(kLog, with_replays());
    REQUIRE(analysis->devices.size() == 1);
    const DeviceAnalysis& device = analysis->devices[0];
    CHECK(device.recorded.peak_allocated == 3001000);
    CHECK(device.recorded.peak_requested == 3001000);
    CHECK(device.recorded.ooms == 1);
    CHECK_FALSE(segments_known(device.recorded));
    CHECK_FALSE(reserved_known(device.recorded));
    CHECK_FALSE(device.fidelity);
    CHECK_FALSE(device.peak);
    CHECK(device.diagnoses.empty());
    CHECK(device.violations == 0);
    // Replays are estimates, and none is the recorded run.
    REQUIRE_FALSE(device.settings.empty());
    for (const WhatIfRow& row : device.settings) {
        CHECK(row.row_class == RowClass::kEstimate);
        CHECK_FALSE(row.is_recorded);
        CHECK(row.class_reason.find("the input does not show the pool") != std::string::npos);
    }
    // Nobody knows the share of a card that nobody knows.
    for (const WhatIfRow& row : device.pools) {
        CHECK(row.result.statistics.reserved.peak < kGiB);
    }
    const auto rmm = std::find_if(device.pools.begin(), device.pools.end(), [](const auto& row) {
        return row.candidate.pool == "rmm-pool";
    });
    REQUIRE(rmm != device.pools.end());
    CHECK(rmm->result.statistics.reserved.peak >= 3001088);
}

TEST_CASE("the report of an import prints unknown figures as unknown", "[imports]") {
    const auto analysis = analysis_of(kLog, with_replays());
    const std::string text = report_text(*analysis, Terminal(1, ColorChoice::kNever));
    for (const char* const line :
         {"RMM log, 1 s, 5 events",
          "1 request failed for lack of memory. Peak allocated 2.86 MiB. Reserved memory is "
          "unknown, so waste is too.",
          "request    the first that failed: 1 GiB at 1 s; the cause is unknown",
          "fidelity   not checked: the input shows no placements",
          "settings: unknown",
          "active unknown, reserved unknown",
          "What if PyTorch's pool had served these requests (replayed)",
          "Not in this RMM log",
          "stacks, steps and phases. So memory is listed by size, not by line"}) {
        INFO(text);
        CHECK(text.find(line) != std::string::npos);
    }
    CHECK(text.find("as recorded") == std::string::npos);
    CHECK(text.find("--html") != std::string::npos);
    const std::string with_page = report_text(*analysis, Terminal(1, ColorChoice::kNever), true);
    CHECK(with_page.find("--html") == std::string::npos);
}

TEST_CASE("the JSON of an import has null for unknown figures", "[imports]") {
    const auto analysis = analysis_of(kLog, with_replays());
    const std::string text = report_json(*analysis);
    testing::keep_report("import_rmm_log", text);
    const auto json = nlohmann::json::parse(text);
    CHECK(json["source"]["import"]["format"] == "RMM log");
    CHECK(json["source"]["import"]["lacks"].size() == 5);
    const auto& device = json["devices"][0];
    CHECK(device["peak"]["allocated"] == 3001000);
    CHECK(device["peak"]["requested"] == 3001000);
    for (const char* const pointer : {"/peak/active",
                                      "/peak/reserved",
                                      "/waste_at_peak/rounding",
                                      "/waste_at_peak/inactive_split",
                                      "/past_pool/peak",
                                      "/segments_allocated",
                                      "/segments_freed",
                                      "/retries",
                                      "/fidelity/placements",
                                      "/fidelity/segments_equal"}) {
        INFO(pointer);
        CHECK(device.at(nlohmann::json::json_pointer(pointer)).is_null());
    }
    CHECK(json["pool"].is_null());
    CHECK(json["config"].is_null());
    CHECK(json["driver_calls"].is_null());
    CHECK(json["memory"].is_null());
    CHECK(json["whatif"][0]["saves_bytes"].is_null());
    REQUIRE(json["ooms"].size() == 1);
    CHECK(json["ooms"][0]["requested_bytes"] == 1073741824);
    CHECK(json["ooms"][0]["verdict"] == "not_judged");
    CHECK(json["ooms"][0]["free_bytes"].is_null());
}

TEST_CASE("the page of an import has unknown totals and no verdict", "[imports]") {
    const auto analysis = analysis_of(kLog, with_replays());
    const PageData page = page_content(*analysis);
    REQUIRE(page.devices.size() == 1);
    CHECK(page.devices[0].cards.empty());
    for (const PageTotal& total : page.devices[0].totals) {
        INFO(total.label);
        const bool known = total.label == "peak requested" || total.label == "peak allocated" ||
                           total.label == "ooms";
        CHECK((total.value != kPageUnknown) == known);
    }
    CHECK(std::any_of(page.processes[0].notes.begin(),
                      page.processes[0].notes.end(),
                      [](const std::string& note) {
                          return note.starts_with("not in this RMM log: reserved memory");
                      }));
}

TEST_CASE("a summary of an import knows what the report knows", "[imports]") {
    const testing::TemporaryFolder folder;
    testing::write_file(folder.file("input"), kLog);
    const auto summary = summarize_trace(folder.file("input"), true);
    REQUIRE(summary.ok());
    REQUIRE(summary->devices.size() == 1);
    const RunFigures& run = summary->devices[0].metrics.summary;
    CHECK(run.peak_allocated == 3001000);
    CHECK(run.ooms == 1);
    CHECK_FALSE(segments_known(run));
}

TEST_CASE("random bytes are refused as what the file should be by its name", "[imports]") {
    const std::pair<const char*, const char*> kNames[] = {
        {"a.ftrace", "not a trace"},
        {"a.pickle", "neither a trace nor a memory snapshot of PyTorch"},
        {"a.pkl.gz", "neither a trace nor a memory snapshot of PyTorch"},
        {"a.csv", "neither a trace nor a log of RMM"},
        {"a.csv.gz", "neither a trace nor a log of RMM"},
        {"a.log", "neither a trace nor a log of RMM"},
        {"a.txt", "neither a trace nor a log of RMM"},
        {"a.json", "neither a trace nor a profile of PyTorch"},
        {"a.json.gz", "neither a trace nor a profile of PyTorch"},
        {"a.sqlite", "neither a trace nor an export of Nsight Systems"},
        {"a.xplane.pb", "neither a trace nor a profile of TensorFlow or JAX"},
        {"a.xplane.pb.gz", "neither a trace nor a profile of TensorFlow or JAX"},
        {"a", "not a trace"}};
    std::mt19937_64 random(5);
    for (const auto& [name, is] : kNames) {
        for (int round = 0; round < 50; ++round) {
            std::string content(round == 0 ? 0 : random() % 3000, ' ');
            for (char& byte : content) {
                byte = static_cast<char>(random());
            }
            const auto timeline = read_text(content, name);
            REQUIRE_FALSE(timeline.ok());
            const std::string& message = timeline.error().message;
            INFO(message);
            CHECK(message.find('\n') == std::string::npos);
            CHECK(message.size() < 400);
            const bool empty = message.find("is empty") != std::string::npos;
            CHECK((empty || message.find(std::string("is ") + is) != std::string::npos));
        }
    }
}

TEST_CASE("an import cannot be exported as a snapshot of segments", "[imports]") {
    const testing::TemporaryFolder folder;
    const auto analysis = analysis_of(kLog);
    const Status status = export_snapshot(*analysis, {.output = folder.file("out.pickle")});
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().message.find("does not show the segments") != std::string::npos);
    const Status waste = export_folded(
        *analysis, {.output = folder.file("out.txt"), .quantity = StackQuantity::kWaste});
    CHECK_FALSE(waste.ok());
}
