// The report of a small made-up program for each verdict and for some special cases, as a user
// reads it. FRAGTRACE_APPROVE=1 writes the files again, to be reviewed by eye.
#include "analyzer/analysis/analyze.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/page/page.h"
#include "analyzer/report/page/page_content.h"
#include "analyzer/report/page/page_screen.h"
#include "analyzer/report/text/text.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"
#include "tests/support/approved.h"
#include "tests/support/simulated_program.h"
#include "tests/unit/snapshot/snapshot_file.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <unistd.h>

using namespace fragtrace::analyzer;
using fragtrace::testing::check_approved;
using fragtrace::testing::read_file;
using fragtrace::testing::SimulatedProgram;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::write_file;

namespace {

constexpr std::uint64_t kSide = 0x70;  // a stream

// Saves the report with its page for the tests of the page.
void keep_page(const std::string& name, const Analysis& analysis, const std::string& text) {
    const std::string path = FRAGTRACE_REPORTS "/" + name;
    const auto page = render_page(page_content(analysis));
    REQUIRE(page.ok());
    write_file(path + ".html", *page);
    write_file(path + ".txt", text);
}

// Saves the report with its trace for the tests golden_reports_agree and json_schema, too.
void keep_report(const std::string& name, const Analysis& analysis, const std::string& text) {
    write_file(FRAGTRACE_REPORTS "/" + name + ".json", report_json(analysis));
    keep_page(name, analysis, text);
}

struct Rung {
    const char* name;
    std::string verdict;  // as the report says it
    std::function<SimulatedProgram()> run;
    PageScreen screen = PageScreen::kBlocked;  // with which the page opens
};

// 94 segments of 20 MiB, each half used, and then a request that none of them serves.
void fail_between_blocks(SimulatedProgram* program) {
    std::vector<std::uint32_t> blocks;
    for (int i = 0; i < 188; ++i) {
        program->at(i % 2 == 0 ? "cache" : "load", i % 2 == 0 ? 12 : 13);
        blocks.push_back(program->alloc(9 * kMiB));
    }
    for (std::size_t i = 1; i < blocks.size(); i += 2) {
        program->free(blocks[i]);
    }
    program->at("step", 40);
    program->alloc(256 * kMiB);
}

SimulatedProgram stitchable() {
    SimulatedProgram program(1894 * kMiB);
    fail_between_blocks(&program);
    return program;
}

SimulatedProgram granularity() {
    SimulatedProgram program(30 * kMiB);
    program.at("load", 10);
    program.alloc(15 * kMiB);
    program.at("step", 40);
    program.alloc(8 * kMiB);
    return program;
}

SimulatedProgram limit() {
    SimulatedProgram program(1000 * kMiB, 0, "per_process_memory_fraction:0.1");
    program.at("load", 10);
    program.alloc(60 * kMiB);
    program.at("step", 40);
    program.alloc(80 * kMiB);
    return program;
}

SimulatedProgram stream_bound() {
    SimulatedProgram program(100 * kMiB);
    program.at("prefetch", 20);
    const auto batch = program.alloc(90 * kMiB, kSide);
    program.free(batch);
    program.at("labels", 22);
    program.alloc(10 * kMiB, kSide);
    program.at("step", 40);
    program.alloc(70 * kMiB);
    return program;
}

SimulatedProgram pending() {
    SimulatedProgram program(100 * kMiB);
    program.at("load", 10);
    const auto first = program.alloc(80 * kMiB);
    program.free(first);
    program.at("prefetch", 20);
    const auto batch = program.alloc(40 * kMiB);
    program.at("step", 40);
    program.alloc(40 * kMiB);
    program.free(batch, kSide);
    program.alloc(40 * kMiB);
    return program;
}

SimulatedProgram releasable() {
    SimulatedProgram program(100 * kMiB, 0, "throw_on_cudamalloc_oom:True");
    program.at("evaluate", 30);
    const auto logits = program.alloc(60 * kMiB);
    program.free(logits);
    program.at("step", 40);
    program.alloc(70 * kMiB);
    return program;
}

SimulatedProgram other_pool() {
    SimulatedProgram program(100 * kMiB);
    program.make_pool(1);
    program.at("warm_up", 15);
    const auto graph = program.alloc(60 * kMiB, 0, 1);
    program.free(graph);
    program.at("step", 40);
    program.alloc(70 * kMiB);
    return program;
}

SimulatedProgram compaction_only() {
    SimulatedProgram program(20 * kMiB);
    std::vector<std::uint32_t> blocks;
    for (int i = 0; i < 13; ++i) {
        program.at(i % 2 == 0 ? "embed" : "load", i % 2 == 0 ? 12 : 13);
        blocks.push_back(program.alloc(1536 * 1024));
    }
    for (std::size_t i = 1; i < blocks.size(); i += 2) {
        program.free(blocks[i]);
    }
    program.at("step", 40);
    program.alloc(9 * kMiB);
    return program;
}

SimulatedProgram rounding() {
    SimulatedProgram program(200 * kMiB);
    program.at("load", 10);
    for (int i = 0; i < 10; ++i) {
        program.alloc(19 * kMiB + 512 * 1024);
    }
    program.at("step", 40);
    program.alloc(4 * kMiB);
    return program;
}

// Others have 100 MiB, 40 MiB of them the context: the rest would be enough.
SimulatedProgram outside_pool() {
    SimulatedProgram program(200 * kMiB, 100 * kMiB);
    program.measure_context(40 * kMiB);
    program.at("load", 10);
    program.alloc(100 * kMiB);
    program.at("step", 40);
    program.alloc(50 * kMiB);
    return program;
}

// Without its own context the program could not request anything, so the context is never the cause
// of a shortage.
SimulatedProgram context_alone() {
    SimulatedProgram program(200 * kMiB, 100 * kMiB);
    program.measure_context(100 * kMiB);
    program.at("load", 10);
    program.alloc(100 * kMiB);
    program.at("step", 40);
    program.alloc(50 * kMiB);
    return program;
}

// The driver has less memory than it reported at first.
SimulatedProgram unexplained() {
    SimulatedProgram program(200 * kMiB, 100 * kMiB);
    program.take_unseen(100 * kMiB);
    program.at("load", 10);
    program.alloc(60 * kMiB);
    program.at("step", 40);
    program.alloc(60 * kMiB);
    return program;
}

SimulatedProgram library() {
    SimulatedProgram program(200 * kMiB);
    program.at("evaluate", 30);
    const auto logits = program.alloc(150 * kMiB);
    program.free(logits);
    program.at("all_reduce", 41);
    program.refuse_library(120 * kMiB);
    return program;
}

// Three steps, and a fourth with a batch three times as large.
SimulatedProgram genuine() {
    SimulatedProgram program(300 * kMiB);
    program.at("build", 5);
    program.alloc(100 * kMiB);
    for (int step = 0; step < 4; ++step) {
        program.begin_phase("step");
        const std::uint64_t items = step == 3 ? 3 : 1;
        program.at("load", 20);
        const auto batch = program.alloc(items * 20 * kMiB);
        program.at("forward", 31);
        const auto hidden = program.alloc(items * 60 * kMiB);
        if (step == 3) {
            break;
        }
        program.free(hidden);
        program.free(batch);
        program.end_phase();
    }
    return program;
}

// Two failures that the program gets past, and then another one that it does not.
SimulatedProgram got_past() {
    SimulatedProgram program(1894 * kMiB);
    program.at("find_batch_size", 7);
    program.alloc(4096 * kMiB);
    program.alloc(2048 * kMiB);
    fail_between_blocks(&program);
    program.alloc(256 * kMiB);
    return program;
}

SimulatedProgram retry() {
    SimulatedProgram program(100 * kMiB);
    program.at("load", 10);
    std::vector<std::uint32_t> blocks;
    for (int i = 0; i < 4; ++i) {
        blocks.push_back(program.alloc(20 * kMiB));
    }
    program.free(blocks[0]);
    program.free(blocks[2]);
    program.at("step", 40);
    program.alloc(45 * kMiB);
    return program;
}

// Each request is larger than every cached block. A small block also blocks a little free memory.
SimulatedProgram retry_of_cache() {
    SimulatedProgram program(100 * kMiB);
    program.at("build", 5);
    program.alloc(512);
    program.at("prompt", 38);
    for (const std::uint64_t size : {20, 24, 28, 34}) {
        program.free(program.alloc(size * kMiB));
    }
    return program;
}

// Steps that each keep `kept_bytes`. A block of the third step blocks most of a segment.
SimulatedProgram steps_that_keep(std::uint64_t card_bytes, std::uint64_t kept_bytes, int steps) {
    SimulatedProgram program(card_bytes);
    program.at("build", 5);
    program.alloc(100 * kMiB);
    for (int step = 0; step < steps; ++step) {
        program.begin_phase("step");
        program.at("forward", 31);
        const auto hidden = program.alloc(60 * kMiB);
        program.at("loss", 33);
        program.alloc(kept_bytes);
        program.free(hidden);
        if (step == 2) {
            program.at("evaluate", 50);
            const auto logits = program.alloc(80 * kMiB);
            program.at("remember", 51);
            program.free(logits);
            program.alloc(12 * kMiB);
        }
        program.end_phase();
    }
    return program;
}

// The card is full in the sixteenth step. The program continues.
SimulatedProgram leak() {
    return steps_that_keep(400 * kMiB, 14 * kMiB, 20);
}

// The same program, recorded for eight steps on a larger card.
SimulatedProgram leak_ahead() {
    return steps_that_keep(600 * kMiB, 14 * kMiB, 8);
}

// A run that wastes much memory and keeps the loss of every step.
SimulatedProgram kept_losses() {
    return steps_that_keep(600 * kMiB, 512, 8);
}

// Whether a row moves a line other than the one that the report blames for the holes.
bool moves_another(const DeviceAnalysis& device, const Analysis& analysis) {
    const Diagnosis* shown = reported_oom(device);
    if (shown == nullptr && device.peak) {
        shown = &*device.peak;
    }
    const auto most = shown == nullptr ? std::nullopt : most_blocking(analysis, *shown);
    return std::any_of(
        device.remedies.begin(), device.remedies.end(), [&most](const WhatIfRow& row) {
            const std::string& name = row.candidate.name;
            return row.candidate.remedy == Remedy::kMoveFirst &&
                   name != "long-lived blocks allocated first" &&
                   (!most || name != most->held.label + " allocated first");
        });
}

}  // namespace

namespace {

std::uint64_t bar(const PageCard& card, const std::string& label) {
    for (const PageBar& one : card.bars) {
        if (one.label == label) {
            return one.bytes;
        }
    }
    FAIL("no bar " << label);
    return 0;
}

struct Told {
    std::unique_ptr<Analysis> analysis;
    nlohmann::json report;
    PageData page;

    explicit Told(SimulatedProgram program, bool settings = true) {
        TemporaryFolder folder;
        const std::string path = folder.file("train.4711.ftrace");
        program.save(path);
        AnalyzeOptions options;
        options.settings = settings;
        auto done = analyze(path, options);
        REQUIRE(done.ok());
        analysis = std::move(done).value();
        report = nlohmann::json::parse(report_json(*analysis));
        page = page_content(*analysis);
    }
};

// The page opens with the screen, and what it says besides the verdict is in the report's words.
void check_page(const PageData& page, PageScreen screen, const std::string& text) {
    const PageDevice& device = page.devices.front();
    const auto opened =
        std::find_if(device.cards.begin(), device.cards.end(), [](const PageCard& card) {
            return card.reported ||
                   (card.kind != PageCardKind::kRetry && card.kind != PageCardKind::kOom);
        });
    REQUIRE(opened != device.cards.end());
    CHECK(opened->screen == screen);
    CHECK(opened->question == question_of(screen));
    CHECK((screen != PageScreen::kBlocked || !opened->culprits.empty()));
    for (const std::vector<ReportLine>& lines :
         {opened->lines, device.growth, device.lines, page.processes.front().lines}) {
        for (const ReportLine& line : lines) {
            INFO(line.label << ": " << line.text);
            CHECK(text.find(line.text + "\n") != std::string::npos);
        }
    }
    for (const PageAdvice& advice : device.advice) {
        CHECK(text.find(" " + advice.effect + "\n") != std::string::npos);
    }
    for (const PagePart& part : opened->categories) {
        CHECK(text.find(part.name + " " + format_bytes(part.bytes)) != std::string::npos);
    }
    for (const PagePart& part : opened->outside) {
        CHECK(text.find(part.name + " " + format_bytes(part.bytes)) != std::string::npos);
    }
}

}  // namespace

TEST_CASE("for a stream-bound request the page's bars equal the JSON's free places") {
    const Told told(stream_bound());
    const auto& places = told.report["ooms"][0]["free_places"];
    CHECK(places["own"]["stream"] == 0);
    CHECK(places["elsewhere"][0]["stream"] == kSide);
    const PageCard& card = told.page.devices[0].cards.back();
    REQUIRE(card.kind == PageCardKind::kOom);
    CHECK(bar(card, "free on its own stream") == places["own"]["free_bytes"]);
    CHECK(bar(card, "free on other streams") == places["elsewhere_free_bytes"]);
    CHECK(bar(card, "largest of them") == places["elsewhere_largest_free_bytes"]);
    CHECK(bar(card, "free on other streams") == 80 * kMiB);
    CHECK(card.asked_by == "train.py:40 step");
}

TEST_CASE("the heading says where the free memory was") {
    CHECK(Told(stitchable()).page.devices[0].cards.back().heading ==
          "The memory was free, but in pieces");
    CHECK(Told(releasable()).page.devices[0].cards.back().heading ==
          "The memory was free, but the pool kept it in its cache");
}

TEST_CASE("a report without what-if replays does not claim that settings were tried") {
    const Told told(stitchable(), false);
    const std::string remedy = told.report["devices"][0]["conclusion"]["remedy"];
    CHECK(remedy.find("no other setting was replayed") == 0);
    CHECK(told.page.devices[0].cards.back().change == remedy);
}

TEST_CASE("a run with a retry opens as a near miss with the released bytes") {
    const Told told(retry());
    const std::vector<PageCard>& cards = told.page.devices[0].cards;
    REQUIRE(cards.size() == 2);
    const bool first = cards[0].kind == PageCardKind::kRetry;
    const PageCard& again = first ? cards[0] : cards[1];
    const PageCard& whole = first ? cards[1] : cards[0];
    REQUIRE(again.kind == PageCardKind::kRetry);
    REQUIRE(whole.kind == PageCardKind::kNearMiss);
    CHECK(whole.heading == "No out-of-memory, but the device was full once");
    CHECK(whole.sentence.find("1 retry") != std::string::npos);
    CHECK(bar(again, "released") == 40 * kMiB);
    CHECK(bar(again, "released") == told.report["retries"][0]["released_bytes"]);
    CHECK(bar(again, "free on the device") == told.report["retries"][0]["device_free_bytes"]);
    CHECK(again.sentence.find("released 40 MiB of its cache") != std::string::npos);
}

TEST_CASE("the report of each verdict equals the approved text") {
    const Rung rungs[] = {
        {"stitchable", "verdict    stitchable", stitchable, PageScreen::kBlocked},
        {"granularity", "verdict    granularity", granularity, PageScreen::kShortage},
        {"limit", "verdict    limit", limit, PageScreen::kShortage},
        {"stream_bound", "verdict    stream_bound", stream_bound, PageScreen::kBlocked},
        {"pending", "verdict    pending", pending, PageScreen::kBlocked},
        {"releasable", "verdict    releasable", releasable, PageScreen::kShortage},
        {"other_pool", "verdict    other_pool", other_pool, PageScreen::kShortage},
        {"compaction_only", "verdict    compaction_only", compaction_only, PageScreen::kBlocked},
        {"rounding", "verdict    rounding", rounding, PageScreen::kShortage},
        {"outside_pool", "verdict    outside_pool", outside_pool, PageScreen::kOthers},
        {"context_alone", "verdict    genuine", context_alone, PageScreen::kShortage},
        {"unexplained", "verdict    unexplained", unexplained, PageScreen::kShortage},
        {"library", "An allocation outside the pool failed", library, PageScreen::kShortage},
        {"genuine", "verdict    genuine", genuine, PageScreen::kShortage},
        {"got_past", "culprit    train.py:12 cache", got_past, PageScreen::kBlocked},
        {"retry", "retry      releasable", retry, PageScreen::kNearMiss},
        {"retry_of_cache",
         "culprit    train.py:38 prompt caused 106 MiB of the 108 MiB",
         retry_of_cache,
         PageScreen::kNearMiss},
        {"leak",
         "culprit    train.py:33 loss: grows by 14 MiB per step",
         leak,
         PageScreen::kGrowth},
        {"leak_ahead",
         "No out-of-memory yet: out of memory at about step ",
         leak_ahead,
         PageScreen::kGrowth},
        {"kept_losses", "main line  train.py:5 build", kept_losses, PageScreen::kPeak},
    };
    for (const Rung& rung : rungs) {
        TemporaryFolder folder;
        SimulatedProgram program = rung.run();
        REQUIRE(chdir(folder.file("").c_str()) == 0);  // the report contains the path
        program.save("train.4711.ftrace");
        write_file(std::string(FRAGTRACE_REPORTS "/") + rung.name + ".ftrace",
                   read_file("train.4711.ftrace"));
        AnalyzeOptions options;
        options.settings = true;
        options.capacities = true;
        options.remedies = true;
        const auto analysis = analyze("train.4711.ftrace", options);
        REQUIRE(analysis.ok());
        const std::string text =
            report_text(**analysis, Terminal(STDOUT_FILENO, ColorChoice::kNever));
        CHECK(text.find(rung.verdict) != std::string::npos);
        CHECK(text.find("fidelity   100.00 %") != std::string::npos);
        CHECK_FALSE(moves_another((*analysis)->devices.front(), **analysis));
        check_approved(std::string(FRAGTRACE_GOLDEN) + "/verdicts/" + rung.name + ".txt", text);
        keep_report(rung.name, **analysis, text);
        check_page(page_content(**analysis), rung.screen, text);
    }
}

TEST_CASE("snapshots that cannot be replayed are kept with their pages") {
    constexpr std::uint64_t kBase = 0x7f0000000000;
    fragtrace::testing::SnapshotWriter writer;
    writer.segments = {
        {.address = kBase, .blocks = {{8 * kMiB, "active_allocated", 8 * kMiB}, {12 * kMiB}}},
        {.address = kBase + 32 * kMiB,
         .blocks = {{3 * kMiB, "active_allocated", 3 * kMiB}, {kMiB / 2}}}};
    writer.with_history = false;
    const auto state = fragtrace::testing::report_of(writer);
    keep_page("state", *state, fragtrace::testing::text_of(*state));

    writer.with_history = true;
    for (int i = 0; i < 3; ++i) {
        for (const char* what : {"alloc", "free_requested", "free_completed"}) {
            writer.entries.push_back({what, kBase + 8 * kMiB, 4 * kMiB});
        }
    }
    const auto in_mid_life = fragtrace::testing::report_of(writer);
    const std::string text = fragtrace::testing::text_of(*in_mid_life);
    CHECK(text.find("No out-of-memory in the recorded part") != std::string::npos);
    CHECK(text.find("not replayed: all segments were allocated before") != std::string::npos);
    keep_page("mid_life", *in_mid_life, text);
}
