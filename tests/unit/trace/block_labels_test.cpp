// Labels of blocks become a part of the origin of their allocation.
#include "analyzer/trace/block_labels.h"

#include "analyzer/trace/reader.h"
#include "analyzer/trace/symbols.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <string>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::TraceWriter;

namespace {

constexpr std::uint64_t kFirst = 0x1000000;
constexpr std::uint64_t kSecond = kFirst + 512;

Timeline read(TraceWriter* trace) {
    const TemporaryFolder folder;
    trace->end(EndReason::kNormal);
    trace->save(folder.file("t.ftrace"));
    auto timeline = read_trace(folder.file("t.ftrace"));
    REQUIRE(timeline.ok());
    return *std::move(timeline);
}

void label(TraceWriter* trace, std::uint64_t address, std::uint64_t text, std::uint16_t device) {
    EventRecord event = trace->next();
    event.kind = EventKind::kBlockLabel;
    event.address = address;
    event.size = text;
    event.device = device;
    event.stream = kStreamUnknown;
    trace->event(event);
}

std::string text_at(const Timeline& timeline, EventIndex event) {
    Symbolizer symbols(timeline);
    return symbols.label_of(timeline.events[event].origin);
}

}  // namespace

TEST_CASE("a label belongs to the live block at its address, on the known or the only device") {
    TraceWriter trace;
    trace.fact("text.2", "kv cache");
    trace.fact("text.3", "table");
    trace.device_alloc(kFirst, 1 << 20, true);  // event 0
    trace.block_alloc(kFirst, 512, 512);        // 1
    label(&trace, kFirst, 2, 0);
    trace.block_alloc(kSecond, 512, 512);  // 3
    label(&trace, kSecond, 3, kDeviceUnknown);
    trace.block_free(kSecond, 512);
    label(&trace, kSecond, 2, 0);          // 6: no live block
    trace.block_alloc(kSecond, 512, 512);  // 7: its own label would follow
    label(&trace, kFirst, 3, 1);           // 8: another device
    const Timeline timeline = read(&trace);
    CHECK(text_at(timeline, 1) == " \"kv cache\"");
    CHECK(text_at(timeline, 3) == " \"table\"");
    CHECK(text_at(timeline, 7).empty());
    CHECK(timeline.damage.notes.empty());
}

TEST_CASE("the last label of a block counts, and blocks with equal labels share an origin") {
    TraceWriter trace;
    trace.fact("text.2", "early");
    trace.fact("text.3", "late");
    trace.device_alloc(kFirst, 1 << 20, true);
    trace.block_alloc(kFirst, 512, 512);   // 1
    trace.block_alloc(kSecond, 512, 512);  // 2
    label(&trace, kFirst, 2, 0);
    label(&trace, kFirst, 3, 0);
    label(&trace, kSecond, 3, 0);
    const Timeline timeline = read(&trace);
    CHECK(text_at(timeline, 1) == " \"late\"");
    CHECK(timeline.events[1].origin == timeline.events[2].origin);
}

TEST_CASE("a label with an impossible number is ignored") {
    TraceWriter trace;
    trace.device_alloc(kFirst, 1 << 20, true);
    trace.block_alloc(kFirst, 512, 512);
    label(&trace, kFirst, kUnknown64, 0);
    const Timeline timeline = read(&trace);
    CHECK(timeline.origins[timeline.events[1].origin].label == 0);
}
