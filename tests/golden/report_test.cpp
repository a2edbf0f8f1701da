// The report, its summary and its JSON for two small made-up traces, compared with approved files.
//
// FRAGTRACE_APPROVE=1 writes the output into tests/golden/expected. Review the difference like any
// other change.
#include "analyzer/analysis/analyze.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/page/page_content.h"
#include "analyzer/report/text/text.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"
#include "tests/support/approved.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <unistd.h>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::check_approved;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::TraceWriter;

namespace {

constexpr std::uint64_t kBase = 0x200000000000;
constexpr std::uint64_t kTotal = 96 * kMiB;

void describe_run(TraceWriter* trace, const char* command) {
    trace->header.pid = 4711;
    trace->header.start_unix_ns = 1'700'000'000'000'000'000;
    trace->fact("command_line", command);
    trace->fact("end.code", "0");
    trace->fact("device.0.name", "made-up card");
    trace->fact("torch.vtable", "verified");
    trace->fact("torch_version", "2.15.0");
}

// Sets the line of the events that follow. Returns its stack, for events made by hand.
std::uint32_t set_line(TraceWriter* trace, const char* function, std::uint32_t line) {
    const std::uint32_t node = trace->python_node(0, trace->code(function, "train.py", 1), line);
    trace->set_python_stack(node);
    return node;
}

// The recorder's own query of free memory, right after the first segment.
void sample_memory(TraceWriter* trace) {
    EventRecord sample = {};
    sample.kind = EventKind::kMemoryInfo;
    sample.flags = kFlagByPool;
    sample.size = kTotal - 20 * kMiB;
    sample.extra = kTotal;
    trace->event(sample);
}

// Example E6 of PyTorch's rules: 24 MiB are free in pieces of 8 and 4, 20 MiB are requested, 6 MiB
// are left outside.
TraceWriter out_of_memory() {
    TraceWriter trace;
    describe_run(&trace, "/usr/bin/python3 train.py");
    set_line(&trace, "load", 10);
    for (std::uint64_t segment = 0; segment < 2; ++segment) {
        const std::uint64_t base = kBase + segment * 20 * kMiB;
        trace.device_alloc(base, 20 * kMiB, true);
        if (segment == 0) {
            sample_memory(&trace);
        }
        trace.block_alloc(base, 8 * kMiB, 8 * kMiB);
        trace.block_alloc(base + 8 * kMiB, 8 * kMiB, 8 * kMiB);
    }
    trace.device_alloc(kBase + 40 * kMiB, 50 * kMiB, true);
    trace.block_alloc(kBase + 40 * kMiB, 50 * kMiB, 50 * kMiB);
    trace.block_free(kBase, 8 * kMiB);
    trace.block_free(kBase + 20 * kMiB, 8 * kMiB);
    const std::uint32_t step = set_line(&trace, "step", 42);
    for (int attempt = 0; attempt < 2; ++attempt) {
        trace.simple(EventKind::kAllocRefused, 0, 20 * kMiB, 2, true);
    }
    EventRecord failed = {};
    failed.kind = EventKind::kBlockOutOfMemory;
    failed.size = 20 * kMiB;
    failed.extra = 6 * kMiB;
    failed.python_stack = step;
    trace.event(failed);
    trace.end(EndReason::kNormal);
    trace.footer();
    return trace;
}

// A run without trouble: one long-lived block blocks the free rest of its segment.
TraceWriter waste() {
    TraceWriter trace;
    describe_run(&trace, "python3 serve.py --port 8000");
    set_line(&trace, "warm_up", 7);
    trace.device_alloc(kBase, 20 * kMiB, true);
    sample_memory(&trace);
    trace.block_alloc(kBase, 2 * kMiB, 2 * kMiB);
    trace.block_alloc(kBase + 2 * kMiB, 9 * kMiB - 100, 9 * kMiB);
    trace.block_free(kBase + 2 * kMiB, 9 * kMiB);
    set_line(&trace, "answer", 19);
    trace.device_alloc(kBase + 20 * kMiB, 30 * kMiB, true);
    trace.block_alloc(kBase + 20 * kMiB, 30 * kMiB, 30 * kMiB);
    trace.end(EndReason::kQuickExit);
    trace.footer();
    return trace;
}

void check_against(const std::string& name, const std::string& text) {
    check_approved(std::string(FRAGTRACE_GOLDEN) + "/" + name, text);
}

}  // namespace

TEST_CASE("the reports of two small runs equal the approved files") {
    const bool ran_out = GENERATE(true, false);
    const std::string name = ran_out ? "out_of_memory" : "waste";
    TemporaryFolder folder;
    TraceWriter trace = ran_out ? out_of_memory() : waste();
    REQUIRE(chdir(folder.file("").c_str()) == 0);  // the report contains the path
    trace.save("made-up.4711.ftrace");

    const auto analysis = analyze("made-up.4711.ftrace",
                                  {.capacity_bytes = {}, .settings = true, .capacities = true});
    REQUIRE(analysis.ok());
    const Terminal terminal(STDOUT_FILENO, ColorChoice::kNever);
    check_against(name + ".txt", report_text(**analysis, terminal));
    check_against(name + ".summary.txt", summary_text(**analysis, terminal));
    check_against(name + ".json", report_json(**analysis));
}

TEST_CASE("the replay on a smaller card ends at its first failure if the run had none") {
    constexpr std::uint64_t kCard = 32 * kGiB;
    TraceWriter trace;
    describe_run(&trace, "python3 train.py");
    for (std::uint64_t block = 0; block < 10; ++block) {
        trace.device_alloc(kBase + block * 2 * kGiB, 2 * kGiB, true);
        if (block == 0) {
            EventRecord sample = {};
            sample.kind = EventKind::kMemoryInfo;
            sample.flags = kFlagByPool;
            sample.size = kCard - 2 * kGiB;
            sample.extra = kCard;
            trace.event(sample);
        }
        trace.block_alloc(kBase + block * 2 * kGiB, 2 * kGiB, 2 * kGiB);
    }
    trace.end(EndReason::kNormal);
    trace.footer();
    TemporaryFolder folder;
    const std::string path = folder.file("made-up.4711.ftrace");
    trace.save(path);
    const auto analysis = analyze(path, {.capacities = true});
    REQUIRE(analysis.ok());
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> rows;
    for (const WhatIfRow& row : (*analysis)->devices.front().capacities) {
        rows[row.candidate.name] = {row.ooms(), row.result.requests_served};
    }
    CHECK(rows.at("a card of 12 GiB") == std::pair<std::uint64_t, std::uint64_t>(1, 6));
    CHECK(rows.at("a card of 16 GiB") == std::pair<std::uint64_t, std::uint64_t>(1, 8));
    CHECK(rows.at("a card of 24 GiB") == std::pair<std::uint64_t, std::uint64_t>(0, 10));
}

TEST_CASE("a trace too long for `offline` gets a line instead of its row") {
    TemporaryFolder folder;
    const std::string path = folder.file("made-up.4711.ftrace");
    waste().save(path);
    const Terminal terminal(STDOUT_FILENO, ColorChoice::kNever);
    const auto report_up_to = [&](std::size_t steps) {
        const auto analysis = analyze(path, {.settings = true, .remedies_and_plans_up_to = steps});
        REQUIRE(analysis.ok());
        return std::pair(report_text(**analysis, terminal), report_json(**analysis));
    };
    const std::size_t steps = 4;  // three requests and a free
    const auto [whole_text, whole_json] = report_up_to(steps);
    CHECK(whole_text.find("\n  offline  ") != std::string::npos);
    CHECK(whole_text.find("not planned") == std::string::npos);
    CHECK(whole_json.find("\"offline\"") != std::string::npos);
    const auto [text, json] = report_up_to(steps - 1);
    CHECK(text.find("\n  offline             not planned for so many requests") !=
          std::string::npos);
    CHECK(text.find("\n  live  ") != std::string::npos);
    CHECK(json.find("\"offline\"") == std::string::npos);
}

TEST_CASE("the release of --torch-version decides whether a MemPool can be used") {
    TemporaryFolder folder;
    const std::string path = folder.file("made-up.4711.ftrace");
    out_of_memory().save(path);
    for (const auto& [release, usable] : {std::pair("2.4.1", false), std::pair("2.15.0", true)}) {
        const auto analysis =
            analyze(path, {.torch_version = release, .settings = true, .remedies = true});
        REQUIRE(analysis.ok());
        std::size_t rows = 0;
        for (const WhatIfRow& row : (*analysis)->devices.front().remedies) {
            if (row.candidate.remedy == Remedy::kOwnPool) {
                ++rows;
                CHECK(row.usable == usable);
            }
        }
        CHECK(rows != 0);
    }
}

// The page's commands are those that `fragtrace try` accepts for the row of the report.
void check_commands(const PageWhatIf& row, const nlohmann::json& told) {
    const std::string config = told["config"];
    const bool usable = told["usable"] && !row.as_run;
    const bool settings = told["remedy"] == "settings" && told["pool"] == "pytorch";
    std::string set;
    if (usable && told["remedy"] == "caching_off") {
        set = told["name"];
    } else if (usable && settings && !config.empty()) {
        set = "PYTORCH_CUDA_ALLOC_CONF=" + config;
    }
    CHECK(row.commands.set == set);
    if (!row.commands.run.empty()) {
        const std::string end = " --remedy " + told["rank"].dump();
        CHECK(row.commands.run.substr(0, 14) == "fragtrace try ");
        CHECK(row.commands.run.find(end) != std::string::npos);
    }
}

TEST_CASE("the page's numbers equal the JSON's to the byte") {
    const bool ran_out = GENERATE(true, false);
    TemporaryFolder folder;
    TraceWriter trace = ran_out ? out_of_memory() : waste();
    const std::string path = folder.file("made-up.4711.ftrace");
    trace.save(path);
    const auto analysis = analyze(path, {.capacity_bytes = {}, .settings = true});
    REQUIRE(analysis.ok());
    const auto report = nlohmann::json::parse(report_json(**analysis));
    const auto& recorded = report["devices"][0];
    const PageData data = page_content(**analysis);
    REQUIRE(data.devices.size() == 1);
    const PageDevice& page = data.devices[0];

    std::map<std::string, std::uint64_t> totals;
    for (const PageTotal& total : page.totals) {
        totals[total.label] = total.value;
    }
    CHECK(totals.at("peak requested") == recorded["peak"]["requested"]);
    CHECK(totals.at("peak allocated") == recorded["peak"]["allocated"]);
    CHECK(totals.at("peak active") == recorded["peak"]["active"]);
    CHECK(totals.at("peak reserved") == recorded["peak"]["reserved"]);
    for (const char* part : {"rounding", "slack", "pending", "releasable"}) {
        CHECK(totals.at(part) == recorded["waste_at_peak"][part]);
    }
    CHECK(totals.at("inactive split") == recorded["waste_at_peak"]["inactive_split"]);
    CHECK(totals.at("retries") == recorded["retries"]);
    CHECK(totals.at("ooms") == recorded["ooms"]);

    // Each bar is a number of the JSON, or the difference of two.
    std::map<std::string, std::uint64_t> bars;
    for (const PageBar& bar : page.cards[0].bars) {
        bars[bar.label] = bar.bytes;
    }
    if (ran_out) {
        const auto& oom = report["ooms"][0];
        CHECK(bars["requested"] == oom["requested_bytes"]);
        CHECK(bars["free, in holes"] == oom["free_bytes"]);
        CHECK(bars["largest free block"] == oom["largest_free_bytes"]);
        CHECK(bars["free on the device"] == oom["device_free_bytes"]);
    } else {
        const std::uint64_t reserved = recorded["peak"]["reserved"];
        const std::uint64_t capacity = recorded["capacity_bytes"];
        CHECK(bars["most in use at once"] == recorded["peak"]["allocated"]);
        CHECK(bars["reserved at the peak"] == reserved);
        CHECK(bars["free, in holes"] == recorded["waste_at_peak"]["inactive_split"]);
        CHECK(bars["cached"] == recorded["waste_at_peak"]["releasable"]);
        CHECK(bars["in use then"] + bars["free, in holes"] + bars["cached"] == reserved);
        CHECK(bars["left on the device"] == capacity - reserved);
        CHECK(page.cards[0].bars.back().from_bytes + page.cards[0].bars.back().bytes == capacity);
    }
    const auto& rows = report["whatif"];
    for (const PageWhatIf& row : page.whatif) {
        const std::string name = row.as_run ? row.name.substr(13) : row.name;  // "as recorded: "
        const auto told = std::find_if(
            rows.begin(), rows.end(), [&](const auto& one) { return one["name"] == name; });
        REQUIRE(told != rows.end());
        CHECK(row.run.peak_reserved == (*told)["peak_reserved_bytes"]);
        CHECK(row.run.waste_at_peak.inactive_split == (*told)["waste_at_peak"]["inactive_split"]);
        CHECK(row.run.waste_at_peak.releasable == (*told)["waste_at_peak"]["releasable"]);
        check_commands(row, *told);
    }

    // The first card uses the words of the report, and its curves are those of its rows.
    REQUIRE_FALSE(page.cards.empty());
    const auto& conclusion = report["devices"][0]["conclusion"];
    REQUIRE_FALSE(conclusion["culprit"].get<std::string>().empty());
    CHECK(page.cards[0].who == conclusion["culprit"]);
    CHECK(page.cards[0].change == conclusion["remedy"]);
    REQUIRE_FALSE(page.whatif.empty());
    REQUIRE_FALSE(page.curve_times_ns.empty());
    for (const PageWhatIf& row : page.whatif) {
        INFO(row.name);
        REQUIRE(row.reserved_curve.size() == page.curve_times_ns.size());
        const std::uint64_t largest =
            *std::max_element(row.reserved_curve.begin(), row.reserved_curve.end());
        CHECK(largest > 0);
        CHECK(largest <= row.run.peak_reserved);
    }
}
