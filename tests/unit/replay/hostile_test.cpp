// Events that no recorder would write: every kind, with absurd numbers, in any order. They are only
// counted. Nothing crashes or hangs.
#include "analyzer/analysis/analyze.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/page/page.h"
#include "analyzer/report/page/page_content.h"
#include "analyzer/report/text/text.h"
#include "analyzer/support/units.h"
#include "analyzer/trace/describe_event.h"
#include "tests/support/trace_writer.h"
#include "tests/unit/model/recorded_states.h"

#include <catch2/catch.hpp>

#include <array>
#include <fmt/format.h>
#include <random>
#include <unistd.h>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::check_snapshot;
using fragtrace::testing::keep_report;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::TraceWriter;

namespace {

constexpr std::uint64_t kBase = 0x200000000000;

class Attack {
  public:
    explicit Attack(unsigned seed) : random_(seed), absurd_(seed % 2 == 0) {}

    TraceWriter trace() {
        TraceWriter trace;
        trace.fact("text.1", "forward");
        trace.fact("pool.2", "pytorch 1,0");
        trace.fact("pool.3", "pytorch 0,1");
        trace.fact("pool.99999999999", "cuda 0xzz");
        trace.fact("torch_version", "2.15.0");
        const std::size_t count = 50 + random_() % 250;
        for (std::size_t i = 0; i < count; ++i) {
            trace.event(event());
        }
        return trace;
    }

  private:
    std::uint64_t number() {
        const std::array<std::uint64_t, 8> absurd = {
            0, 1, kUnknown64, kUnknown64 - 1, std::uint64_t{1} << 63, 511, kMiB, kBase};
        return absurd_ && random_() % 6 == 0 ? absurd[random_() % absurd.size()]
                                             : (1 + random_() % 24) * kMiB;
    }

    std::uint64_t place() {
        return absurd_ && random_() % 10 == 0 ? number() : kBase + random_() % 12 * 8 * kMiB;
    }

    EventRecord event() {
        EventRecord event = {};
        // Half of the events have kinds that build up a state worth damaging.
        const std::array<EventKind, 8> usual = {EventKind::kDeviceAlloc,
                                                EventKind::kBlockAlloc,
                                                EventKind::kBlockAlloc,
                                                EventKind::kBlockFree,
                                                EventKind::kMap,
                                                EventKind::kAsyncAlloc,
                                                EventKind::kAsyncFree,
                                                EventKind::kPoolRewind};
        event.kind = random_() % 2 == 0 ? usual[random_() % usual.size()]
                                        : static_cast<EventKind>(random_() % 80);
        event.address = place();
        event.size = random_() % 8 == 0 ? random_() % 4 : number();
        event.extra = random_() % 3 == 0 ? random_() % 4 : number();
        event.stream = random_() % 4 == 0 ? kStreamUnknown : random_() % 3;
        event.pool = random_() % 3 == 0 ? static_cast<std::uint32_t>(random_() % 5) : 0;
        event.pool = absurd_ && random_() % 20 == 0 ? 0xffffffffu : event.pool;
        event.thread = static_cast<std::uint32_t>(random_() % 3);
        event.device =
            random_() % 10 == 0 ? kDeviceUnknown : static_cast<std::uint16_t>(random_() % 2);
        event.flags = static_cast<std::uint8_t>(random_() % 8);
        event.duration_ns = static_cast<std::uint32_t>(random_() % 1000);
        return event;
    }

    std::mt19937 random_;
    bool absurd_;
};

}  // namespace

TEST_CASE("hostile events of every kind are counted and do no harm", "[hostile]") {
    TemporaryFolder folder;
    const Terminal terminal(STDOUT_FILENO, ColorChoice::kNever);
    for (unsigned seed = 0; seed < 120; ++seed) {
        INFO("seed " << seed);
        TraceWriter trace = Attack(seed).trace();
        trace.save(folder.file("t.ftrace"));
        const auto analysis =
            analyze(folder.file("t.ftrace"), {.settings = seed % 10 == 0, .capacities = false});
        REQUIRE(analysis.ok());
        const Timeline& timeline = (*analysis)->timeline;
        REQUIRE(timeline.partner.size() == timeline.events.size());
        REQUIRE(timeline.events.size() == trace.events().size());
        RecordedState state(timeline);
        for (EventIndex i = 0; i < timeline.events.size(); i += 20) {
            state.advance_to(i);
            check_snapshot(state.snapshot(0));
            check_snapshot(state.snapshot(1));
        }
        for (const Phase& phase : timeline.phases) {
            REQUIRE(phase.begin <= phase.end);
            REQUIRE(phase.end <= timeline.events.size());
        }
        CHECK_FALSE(report_text(**analysis, terminal).empty());
        keep_report(fmt::format("hostile{}", seed), report_json(**analysis));
        for (EventIndex i = 0; i < timeline.events.size(); ++i) {
            CHECK_FALSE(describe_event(timeline, i, nullptr).empty());
        }
        if (seed % 4 == 0) {
            CHECK(render_page(page_content(**analysis)).ok());
        }
    }
}
