// Memory events of PyTorch's profiler become a timeline. The events are those that PyTorch 2.15
// writes (tests/interoperability/test_imports.py reads such a file).
#include "tests/unit/imports/import_file.h"

#include <fmt/format.h>

using namespace fragtrace;
using namespace fragtrace::analyzer;

namespace {

// `time_us` is a number as in the file.
std::string memory(const char* time_us,
                   std::int64_t address,
                   std::int64_t bytes,
                   std::int64_t allocated,
                   const char* more = R"("Device Type":1,"Device Id":0)") {
    return fmt::format(
        R"({{"ph":"i","name":"[memory]","pid":7,"tid":8,"ts":{},"args":{{"Addr":{},"Bytes":{},)"
        R"("Total Allocated":{},"Total Reserved":20971520,{}}}}})",
        time_us,
        address,
        bytes,
        allocated,
        more);
}

std::string slice(const char* category, const char* name, int begin_us, int length_us) {
    return fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":7,"tid":8,"ts":{},"dur":{}}})",
                       category,
                       name,
                       begin_us,
                       length_us);
}

std::string profile(const std::vector<std::string>& events, const std::string& head = "") {
    return fmt::format(
        R"({{"schemaVersion":1,{}"traceEvents":[{}]}})", head, fmt::join(events, ","));
}

}  // namespace

TEST_CASE("memory events of CUDA devices become blocks, those of the CPU do not", "[imports]") {
    const Timeline timeline = timeline_of(profile(
        {memory("10.5", 4096, 512, 512),
         memory("11", 4096, 64, 64, R"("Device Type":0,"Device Id":-1)"),
         memory("12", 4096, -512, 0),
         R"({"ph":"i","name":"[OutOfMemory]","pid":7,"tid":8,"ts":13,"args":{"Bytes":1024,)"
         R"("Device Type":1,"Device Id":0,"Total Allocated":0,"Total Reserved":20971520}})"}));
    CHECK(events_of(timeline) ==
          std::vector<std::string>{"alloc 4096 512", "free 4096", "oom 1024"});
    CHECK(timeline.events[0].size_bytes == kUnknown64);
    CHECK(timeline.events[0].stream == kNoStream);
    CHECK(timeline.events[1].time_ns == 1500);
    CHECK(timeline.origins[timeline.events[0].origin].thread == 8);
    CHECK(timeline.fact("import") == "PyTorch profile");
    CHECK(timeline.damage.notes.empty());
}

TEST_CASE("memory events are put in the order of their times", "[imports]") {
    const Timeline timeline =
        timeline_of(profile({memory("12", 4096, -512, 0), memory("11", 4096, 512, 512)}));
    CHECK(events_of(timeline) == std::vector<std::string>{"alloc 4096 512", "free 4096"});
}

TEST_CASE("memory that is older than the profile is shown from its begin", "[imports]") {
    // 4096 bytes are older: a block of 1024 that is freed, and 3072 that stay.
    const Timeline timeline =
        timeline_of(profile({memory("10", 8192, 512, 4608), memory("11", 4096, -1024, 3584)}));
    const std::vector<std::string> events = events_of(timeline);
    REQUIRE(events.size() == 4);
    CHECK(events[0] == "alloc 4096 1024");
    CHECK(events[1].ends_with(" 3072"));
    CHECK(events[3] == "free 4096");
    CHECK(timeline.damage.frees_without_alloc == 0);
    const auto analysis =
        analysis_of(profile({memory("10", 8192, 512, 4608), memory("11", 4096, -1024, 3584)}));
    CHECK(analysis->devices[0].recorded.peak_allocated == 4608);
}

TEST_CASE("operators and Python functions give the stack of a block", "[imports]") {
    const Timeline timeline =
        timeline_of(profile({slice("python_function", "train.py(12): step", 0, 100),
                             slice("cpu_op", "aten::add", 5, 10),
                             slice("cpu_op", "aten::empty", 6, 4),
                             memory("8", 4096, 512, 512),
                             memory("12", 8192, 512, 1024),
                             memory("50", 16384, 512, 1536)}));
    const auto stack = [&timeline](EventIndex event) {
        std::string words;
        std::uint32_t node = timeline.origins[timeline.events[event].origin].python_stack;
        for (; node != 0; node = timeline.nodes[node].parent) {
            const PythonCode& code = timeline.codes[python_code_id(timeline.nodes[node].frame)];
            words += fmt::format(
                "{}{}:{}", words.empty() ? "" : " < ", code.function, timeline.nodes[node].line);
        }
        return words;
    };
    CHECK(stack(0) == "aten::empty:0 < aten::add:0 < step:12");
    CHECK(stack(1) == "aten::add:0 < step:12");
    CHECK(stack(2) == "step:12");
}

TEST_CASE("steps of the profiler are occurrences of one phase", "[imports]") {
    const Timeline timeline =
        timeline_of(profile({slice("user_annotation", "ProfilerStep#0", 0, 10),
                             slice("user_annotation", "ProfilerStep#1", 10, 10),
                             memory("5", 4096, 512, 512),
                             memory("15", 8192, 512, 1024)}));
    REQUIRE(timeline.phases.size() == 2);
    CHECK(timeline.phases[0].name == timeline.phases[1].name);
    CHECK(text_of(timeline, timeline.phases[0].name) == "ProfilerStep");
}

TEST_CASE("the profile's device and time are kept", "[imports]") {
    const Timeline timeline = timeline_of(
        profile({memory("1000000.5", 4096, 512, 512)},
                R"("baseTimeNanoseconds":1700000000000000000,"deviceProperties":[{"id":0,"name":)"
                R"("made-up card","totalGlobalMem":17179869184}],)"));
    CHECK(timeline.fact("device.0.name") == "made-up card");
    CHECK(timeline.start_unix_ns == 1'700'000'001'000'000'500);
    CHECK(timeline.fact("import.peak_reserved.0") == "20971520");
}

TEST_CASE("a profile without totals does not say how much memory is older", "[imports]") {
    for (const char* const total : {"", R"("Total Allocated":18446744073709551000,)"}) {
        const Timeline timeline = timeline_of(profile({fmt::format(
            R"({{"ph":"i","name":"[memory]","pid":7,"tid":8,"ts":1.5,"args":{{"Addr":4096,)"
            R"("Bytes":-512,{}"Device Type":1,"Device Id":0}}}})",
            total)}));
        CHECK(events_of(timeline) == std::vector<std::string>{"free 4096"});
    }
}

TEST_CASE("memory events that cannot be read are counted", "[imports]") {
    const Timeline timeline = timeline_of(
        profile({memory("1", 4096, 512, 512),
                 memory("\"x\"", 4096, 512, 512),
                 memory("-5", 4096, 512, 512),
                 memory("2", -4096, 512, 512),
                 memory("2", 4096, 0, 512),
                 memory("2", 4096, 512, 512, R"("Device Type":1,"Device Id":99)"),
                 memory("2", 4096, 512, 512, R"("Device Type":12,"Device Id":0)"),
                 R"({"ph":"i","name":"[memory]","pid":9,"tid":8,"ts":2,"args":{"Addr":4096,)"
                 R"("Bytes":512,"Device Type":1,"Device Id":0,"Total Allocated":512}})"}));
    CHECK(events_of(timeline).size() == 1);
    CHECK(timeline.damage.notes ==
          std::vector<std::string>{"5 memory events that cannot be read are left out",
                                   "1 memory event of other processes is left out",
                                   "1 memory event of devices other than CUDA is left out"});
}

TEST_CASE("a profile without memory of a CUDA device is refused", "[imports]") {
    CHECK(refusal_of(profile({slice("cpu_op", "aten::add", 5, 10)})) ==
          "has no memory events. Give a trace of PyTorch's profiler that was made with "
          "profile_memory=True.");
    CHECK(refusal_of(profile({memory("11", 4096, 64, 64, R"("Device Type":0,"Device Id":-1)")}))
              .starts_with("its memory events are all of the CPU, none is of a CUDA device."));
    CHECK(refusal_of(R"({"traceEvents":[{"ph":"i")").starts_with("is not valid JSON near byte"));
    CHECK(refusal_of(R"({"traceEvents":)" + std::string(1000, '['))
              .starts_with("is nested too deeply near byte"));
}
