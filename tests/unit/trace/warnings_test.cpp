// What the recorder could not record becomes a warning of the report.
#include "analyzer/analysis/analyze.h"
#include "trace_writer.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace fragtrace::analyzer;
using namespace fragtrace::testing;

namespace {

// The warnings about a trace with one allocation and these facts.
std::vector<std::string> warnings_of(
    const std::vector<std::pair<std::string, std::string>>& facts) {
    const TemporaryFolder folder;
    TraceWriter writer;
    writer.device_alloc(0x7000'0000'0000, 2 << 20, false);
    for (const auto& [key, value] : facts)
        writer.fact(key, value);
    writer.end(fragtrace::EndReason::kNormal);
    writer.footer();
    const std::string path = folder.file("trace.ftrace");
    writer.save(path);
    const auto analysis = analyze(path, {});
    REQUIRE(analysis);
    return (*analysis)->warnings;
}

bool any_begins(const std::vector<std::string>& lines, const std::string& begin) {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
        return line.starts_with(begin);
    });
}

}  // namespace

TEST_CASE("every count of lost data is reported with its number") {
    CHECK(warnings_of({}).empty());
    const std::vector<std::pair<std::string, std::string>> counted = {
        {"stacks.without_room", "1,001 events have no stack"},
        {"stacks.native_failures", "1,001 native stacks could not be walked"},
        {"stacks.python_failures", "1,001 Python stacks are cut or missing"},
        {"held.without_room", "1,001 live allocations are missing at the start"},
        {"ranges.without_room", "1,001 phases may lack their begin or end"},
        {"tables.without_room", "1,001 contexts, pools, allocators, names, labels or new segments"},
        {"lost.facts", "1,001 facts about the process were lost"},
        {"trace.write_errors", "1,001 writes to the trace file failed"},
        {"lost.ring_full", "1,001 events were lost while recording"},
        {"lost.reentrant", "1,001 events were lost while recording"},
        {"lost.write_failed", "1,001 events were lost while recording"},
        {"lost.removed", "1,001 events were lost while recording"},
        {"lost.completions", "1,001 events were lost while recording"},
        {"lost.before_start", "1,001 events were lost while recording"},
        {"lost.unfinished", "1,001 calls had not returned"},
        {"options.rejected", "the setting 1001 was not understood"}};
    for (const auto& [fact, line] : counted) {
        INFO(fact);
        CHECK(any_begins(warnings_of({{fact, "1001"}}), line));
        if (fact != "options.rejected") {
            CHECK(warnings_of({{fact, "0"}}).empty());
        }
    }
}

TEST_CASE("a loss of one has no plural") {
    const std::vector<std::pair<std::string, std::string>> counted = {
        {"stacks.without_room", "1 event has no stack"},
        {"stacks.native_failures", "1 native stack could not be walked"},
        {"stacks.python_failures", "1 Python stack is cut or missing"},
        {"held.without_room", "1 live allocation is missing at the start"},
        {"ranges.without_room", "1 phase may lack"},
        {"tables.without_room", "1 context, pool, allocator, name, label or new segment could not"},
        {"lost.facts", "1 fact about the process was lost"},
        {"trace.write_errors", "1 write to the trace file failed"},
        {"lost.ring_full", "1 event was lost while recording"},
        {"lost.unfinished", "1 call had not returned"}};
    for (const auto& [fact, line] : counted) {
        INFO(fact);
        CHECK(any_begins(warnings_of({{fact, "1"}}), line));
    }
}

TEST_CASE("what is off, incomplete or unknown is reported with its reason") {
    for (const char* fact : {"stacks.native", "stacks.python"}) {
        CHECK(warnings_of({{fact, "on"}}).empty());
        CHECK(any_begins(warnings_of({{fact, "off: by option"}}),
                         (fact + 7) + std::string(" stacks are off: by option")));
    }
    const std::vector<std::pair<std::string, std::string>> states = {
        {"torch.pools", "PyTorch's private pools are "},
        {"torch.captures", "PyTorch's captures of graphs are "},
        {"tensorflow.pool", "the record of TensorFlow's pool is "},
        {"jax.pool", "the record of JAX's pool is "},
        {"onnxruntime.pool", "the record of ONNX Runtime's arena is "},
        {"ggml.pool", "the record of ggml's pools is "},
        {"nvtx.memory", "the record of NVTX's heaps and regions is "}};
    for (const auto& [fact, line] : states) {
        INFO(fact);
        CHECK(warnings_of({{fact, "recorded"}}).empty());
        for (const std::string state :
             {"off: a reason", "incomplete: a reason", "unknown: a reason"})
            CHECK(any_begins(warnings_of({{fact, state}}), line + state));
    }
}
