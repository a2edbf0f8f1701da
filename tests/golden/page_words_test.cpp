// Sentences of the page that depend on what was recorded.
#include "analyzer/analysis/analyze.h"
#include "analyzer/report/page/page_content.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::TraceWriter;

namespace {

constexpr std::uint64_t kBase = 0x200000000000;

PageData page_of(TraceWriter* trace) {
    TemporaryFolder folder;
    const std::string path = folder.file("made-up.1.ftrace");
    trace->end(EndReason::kNormal);
    trace->footer();
    trace->save(path);
    const auto analysis = analyze(path, {});
    REQUIRE(analysis.ok());
    return page_content(**analysis);
}

}  // namespace

TEST_CASE("the page speaks of a pool only if one was recorded") {
    TraceWriter trace;
    trace.device_alloc(kBase, 20 * kMiB, false);
    trace.device_free(kBase, false);
    const PageData page = page_of(&trace);
    REQUIRE(page.devices.size() == 1);
    const PageCard& card = page.devices[0].cards.at(0);
    CHECK(card.sentence ==
          "At most 20 MiB allocated from the driver; no caching pool was recorded.");
    for (const PageBar& bar : card.bars) {
        CHECK(bar.label.find("reserved") == std::string::npos);
        CHECK(bar.kind != "cached");
    }
}

TEST_CASE("the page names another peak of memory in use only if it prints differently") {
    const std::uint64_t less = GENERATE(512, 4 * kMiB);
    TraceWriter trace;
    trace.device_alloc(kBase, 20 * kMiB, true);
    trace.block_alloc(kBase, 10 * kMiB, 10 * kMiB);
    trace.block_free(kBase, 10 * kMiB);
    trace.device_alloc(kBase + 20 * kMiB, 20 * kMiB, true);
    trace.block_alloc(kBase + 20 * kMiB, 10 * kMiB - less, 10 * kMiB - less);
    const std::string sentence = page_of(&trace).devices.at(0).cards.at(0).sentence;
    INFO(sentence);
    CHECK((sentence.find(" (the most, 10 MiB, was at another time)") != std::string::npos) ==
          (less > 512));
}

TEST_CASE("the page of a process without a device has the words of the report") {
    TraceWriter trace;
    const PageData page = page_of(&trace);
    REQUIRE(page.devices.empty());
    const std::vector<ReportLine>& lines = page.processes.at(0).lines;
    CHECK(std::any_of(lines.begin(), lines.end(), [](const ReportLine& line) {
        return line.text == "This process allocated no GPU memory.";
    }));
}
