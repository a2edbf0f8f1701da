// Memory events of a profile of TensorFlow or JAX become a timeline. The messages are those that
// TensorFlow 2.21 writes (tests/interoperability/test_imports.py reads such a file).
#include "analyzer/analysis/compare/profile_json.h"
#include "analyzer/analysis/job/process_summary.h"
#include "analyzer/report/compare_report.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/text/text.h"
#include "analyzer/support/protobuf.h"
#include "analyzer/support/terminal.h"
#include "tests/unit/imports/import_file.h"

#include <map>

using namespace fragtrace;
using namespace fragtrace::analyzer;

namespace {

// A plane whose names get their numbers when they are first used.
class Plane {
  public:
    explicit Plane(std::string name = "/host:CPU") : name_(std::move(name)) {}

    // Members of an event: a text starting with '&' refers to a name.
    ProtoMessage event(const std::string& name,
                       std::uint64_t offset_ns,
                       std::uint64_t duration_ns,
                       const std::vector<std::pair<std::string, std::string>>& stats) {
        ProtoMessage event;
        event.number(1, number(&events_, name)).number(2, offset_ns * 1000);
        if (duration_ns != 0) {
            event.number(3, duration_ns * 1000);
        }
        for (const auto& [key, value] : stats) {
            ProtoMessage stat;
            stat.number(1, number(&stats_, key));
            if (value.starts_with('&')) {
                stat.number(7, number(&stats_, value.substr(1)));
            } else if (value.find('.') != std::string::npos) {
                stat.real(2, std::stod(value));
            } else if (value.find_first_not_of("0123456789") == std::string::npos) {
                stat.number(4, std::stoull(value));
            } else {
                stat.text(5, value);
            }
            event.message(4, stat);
        }
        return event;
    }

    ProtoMessage memory(std::uint64_t offset_ns,
                        std::uint64_t address,
                        std::uint64_t bytes,
                        std::uint64_t allocated,
                        bool free = false,
                        const std::string& allocator = "GPU_0_bfc") {
        return event(free ? "MemoryDeallocation" : "MemoryAllocation",
                     offset_ns,
                     0,
                     {{"allocator_name", "&" + allocator},
                      {"bytes_reserved", "0"},
                      {"bytes_allocated", std::to_string(allocated)},
                      {"bytes_available", std::to_string(100'000 - allocated)},
                      {"fragmentation", "0.25"},
                      {"requested_bytes", std::to_string(bytes - 6)},
                      {"allocation_bytes", std::to_string(bytes)},
                      {"addr", std::to_string(address)},
                      {"tf_op", "&MatMul"}});
    }

    void line(std::uint64_t id, std::uint64_t begin_ns, const std::vector<ProtoMessage>& events) {
        ProtoMessage line;
        line.number(1, id).text(2, "python").number(3, begin_ns);
        for (const ProtoMessage& event : events) {
            line.message(4, event);
        }
        lines_.push_back(line);
    }

    ProtoMessage message() const {
        ProtoMessage plane;
        plane.number(1, 1).text(2, name_);
        for (const ProtoMessage& line : lines_) {
            plane.message(3, line);
        }
        add_names(&plane, 4, events_);
        add_names(&plane, 5, stats_);
        return plane;
    }

    std::string file() const { return ProtoMessage().message(1, message()).bytes(); }

  private:
    using Numbers = std::map<std::string, std::uint64_t>;

    static std::uint64_t number(Numbers* numbers, const std::string& name) {
        return numbers->try_emplace(name, numbers->size() + 1).first->second;
    }

    static void add_names(ProtoMessage* plane, std::uint32_t field, const Numbers& numbers) {
        for (const auto& [name, number] : numbers) {
            const ProtoMessage value = ProtoMessage().number(1, number).text(2, name);
            plane->message(field, ProtoMessage().number(1, number).message(2, value));
        }
    }

    std::string name_;
    Numbers events_;
    Numbers stats_;
    std::vector<ProtoMessage> lines_;
};

std::string simple_file() {
    Plane plane;
    plane.line(7, 1000, {plane.memory(10, 4096, 512, 512), plane.memory(20, 4096, 512, 0, true)});
    return plane.file();
}

}  // namespace

TEST_CASE("memory events of an XLA profile become blocks", "[imports]") {
    Plane plane;
    plane.line(7,
               1000,
               {plane.event("train", 5, 100, {{"_r", "1"}, {"step_num", "3"}}),
                plane.event("$train.py:12 step", 6, 90, {}),
                plane.event("MatMul:MatMul", 8, 50, {}),
                plane.memory(10, 4096, 512, 512),
                plane.memory(20, 8192, 1024, 1536)});
    plane.line(~std::uint64_t{0}, 1000, {plane.memory(30, 4096, 512, 1024, true)});
    const Timeline timeline = timeline_of(plane.file());
    CHECK(events_of(timeline) ==
          std::vector<std::string>{"alloc 4096 512", "alloc 8192 1024", "free 4096"});
    REQUIRE(timeline.events.size() == 5);
    CHECK(timeline.events[1].size_bytes == 506);
    CHECK(timeline.events[1].time_ns == 5);
    CHECK(timeline.events[1].device == 0);
    CHECK(timeline.origins[timeline.events[1].origin].thread == 7);
    CHECK(timeline.origins[timeline.events[3].origin].thread == 2);
    CHECK(timeline.fact("import") == "XLA profile");
    CHECK(timeline.fact("device.0.name") == "GPU_0_bfc");
    CHECK(timeline.fact("text.1") == "train");
    CHECK(timeline.damage.notes.empty());
    const auto analysis = analysis_of(plane.file());
    const std::string text = report_text(*analysis, Terminal(1, ColorChoice::kNever));
    INFO(text);
    for (const char* const line : {"train.py:12",
                                   "Whether a request failed is unknown. Peak allocated 1.5 KiB",
                                   "Not in this XLA profile",
                                   "GPU_0_bfc reports at most 25.0 %",
                                   "GPU_0_bfc may take 97.7 KiB"}) {
        INFO(line);
        CHECK(text.find(line) != std::string::npos);
    }
}

TEST_CASE("times of an XLA profile are unix times, or since the start of the profiler",
          "[imports]") {
    Plane plane;
    plane.line(7, 1764000000000000000, {plane.memory(10, 4096, 512, 512)});
    CHECK(timeline_of(plane.file()).start_unix_ns == 1764000000000000010);
    ProtoMessage environment;
    environment.text(2, "Task Environment")
        .message(6, ProtoMessage().number(1, 1).number(3, 1764000000000000000))
        .message(5,
                 ProtoMessage().number(1, 1).message(
                     2, ProtoMessage().number(1, 1).text(2, "profile_start_time")));
    CHECK(
        timeline_of(simple_file() + ProtoMessage().message(1, environment).bytes()).start_unix_ns ==
        1764000000000001010);
    CHECK(timeline_of(simple_file()).start_unix_ns == 0);
}

TEST_CASE("memory that is older than an XLA profile is shown from its begin", "[imports]") {
    Plane plane;
    plane.line(7, 0, {plane.memory(10, 8192, 512, 4608), plane.memory(11, 4096, 1024, 3584, true)});
    const std::vector<std::string> events = events_of(timeline_of(plane.file()));
    REQUIRE(events.size() == 4);
    CHECK(events[0] == "alloc 4096 1024");
    CHECK(events[1].ends_with(" 3072"));
    CHECK(events[3] == "free 4096");
}

TEST_CASE("allocators of the host are left out if there are some of GPUs", "[imports]") {
    Plane plane;
    plane.line(7,
               0,
               {plane.memory(1, 4096, 512, 512, false, "GPU_1_bfc"),
                plane.memory(2, 4096, 512, 512, false, "gpu_host_bfc"),
                plane.memory(3, 4096, 512, 512, false, "GPU_0_bfc")});
    const Timeline timeline = timeline_of(plane.file());
    REQUIRE(timeline.events.size() == 2);
    CHECK(timeline.events[0].device == 1);
    CHECK(timeline.events[1].device == 0);
    CHECK(timeline.damage.notes ==
          std::vector<std::string>{"1 memory event of other allocators (gpu_host_bfc) is left "
                                   "out"});
}

TEST_CASE("without a GPU the allocators of the host are the devices", "[imports]") {
    Plane plane;
    plane.line(7, 0, {plane.memory(1, 4096, 512, 512, false, "bfc_cpu_allocator_for_gpu")});
    const Timeline timeline = timeline_of(plane.file());
    CHECK(timeline.fact("device.0.name") == "bfc_cpu_allocator_for_gpu");
    CHECK(timeline.fact("import.lacks.01").starts_with("memory of a GPU"));
}

TEST_CASE("memory events without their numbers are left out and counted", "[imports]") {
    Plane plane;
    plane.line(
        7,
        0,
        {plane.memory(1, 4096, 512, 512),
         plane.event("MemoryAllocation", 2, 0, {}),
         plane.event("MemoryAllocation",
                     3,
                     0,
                     {{"allocator_name", "&GPU_0_bfc"}, {"addr", "1"}, {"allocation_bytes", "x"}}),
         plane.event("MemoryAllocation",
                     4,
                     0,
                     {{"allocator_name", "&GPU_0_bfc"},
                      {"addr", "1"},
                      {"allocation_bytes", "18446744073709551615"}})});
    const Timeline timeline = timeline_of(plane.file());
    CHECK(timeline.events.size() == 1);
    CHECK(timeline.damage.notes ==
          std::vector<std::string>{"3 memory events that cannot be read are left out"});
}

TEST_CASE("a limit of the allocator is shown only if its parts are known", "[imports]") {
    const auto limits = [](const std::vector<std::pair<std::string, std::string>>& totals) {
        std::vector<std::pair<std::string, std::string>> stats = {
            {"allocator_name", "&GPU_0_bfc"}, {"allocation_bytes", "512"}, {"addr", "4096"}};
        stats.insert(stats.end(), totals.begin(), totals.end());
        Plane plane;
        plane.line(7, 1000, {plane.event("MemoryAllocation", 10, 0, stats)});
        const Timeline timeline = timeline_of(plane.file());
        for (const auto& [key, value] : timeline.facts) {
            if (const std::size_t at = value.find("GPU_0_bfc may take "); at != std::string::npos) {
                return value.substr(at, value.find(". ", at) - at);
            }
        }
        return std::string();
    };
    CHECK(limits({{"bytes_allocated", "512"}, {"bytes_available", "1536"}}) ==
          "GPU_0_bfc may take 2 KiB");
    CHECK(limits({{"bytes_available", "1536"}}).empty());
    CHECK(limits({{"bytes_allocated", "18446744073709551615"}, {"bytes_available", "5"}}).empty());
    CHECK(limits({{"bytes_allocated", "512"}}).empty());
}

TEST_CASE("names beyond the limit of an XLA profile are left out and counted", "[imports]") {
    const std::string name(1000, 'x');
    ProtoMessage plane;
    plane.number(1, 1).text(2, "/host:CPU");
    Plane memory;
    memory.line(7, 1000, {memory.memory(10, 4096, 512, 512)});
    for (std::uint64_t id = 10; id < 70'000; ++id) {
        const ProtoMessage value = ProtoMessage().number(1, id).text(2, name);
        plane.message(4, ProtoMessage().number(1, id).message(2, value));
    }
    const std::string file = ProtoMessage().message(1, plane).message(1, memory.message()).bytes();
    CHECK(timeline_of(file).damage.notes.empty());
    const std::string joined =
        ProtoMessage().text(1, memory.message().bytes() + plane.bytes()).bytes();
    const Timeline timeline = timeline_of(joined);
    REQUIRE(timeline.damage.notes.size() == 1);
    CHECK(timeline.damage.notes[0].find("names beyond the limits") != std::string::npos);
}

TEST_CASE("a summary of a profile that does not show failures has no count of them", "[imports]") {
    const ProcessSummary process =
        summarize_process(summarize_timeline(timeline_of(simple_file())), "input");
    REQUIRE(process.devices.size() == 1);
    CHECK(process.devices[0].run.ooms == kUnknown64);
}

TEST_CASE("the JSON of an XLA profile is a side of a comparison, with unknown failures",
          "[imports]") {
    const testing::TemporaryFolder folder;
    testing::write_file(folder.file("report.json"), report_json(*analysis_of(simple_file())));
    auto profile = read_profile_json(folder.file("report.json"));
    REQUIRE(profile.ok());
    REQUIRE(profile->devices.size() == 1);
    CHECK(profile->devices[0].run.ooms == kUnknown64);
    const Timeline timeline = timeline_of(simple_file());
    Symbolizer symbols(timeline);
    RunProfile other = profile_of(timeline, &symbols);
    CHECK(other.devices[0].run.ooms == kUnknown64);
    const Comparison comparison = compare(std::move(profile).value(), std::move(other));
    const std::string text = compare_text(comparison, Terminal(1, ColorChoice::kNever));
    INFO(text);
    CHECK(text.find("out of memory                  unknown      unknown") != std::string::npos);
    CHECK(compare_json(comparison).find("\"ooms\": null") != std::string::npos);
}

TEST_CASE("names of an XLA profile are safe to print", "[imports]") {
    Plane plane;
    plane.line(7, 0, {plane.memory(1, 4096, 512, 512, false, "GPU_0_\x1b[2J\xff")});
    CHECK(timeline_of(plane.file()).fact("device.0.name") == "GPU_0_\\u001b[2J?");
}

TEST_CASE("an XLA profile without memory events says how to record them", "[imports]") {
    Plane plane;
    plane.line(7, 0, {plane.event("MatMul", 1, 10, {})});
    CHECK(refusal_of(plane.file()) ==
          "has no memory events. Give an .xplane.pb file of TensorFlow's or JAX's profiler "
          "(host_tracer_level 2 or more) of a run that used the BFC allocator.");
    Plane of_device("/device:GPU:0");
    of_device.line(7, 0, {of_device.memory(1, 4096, 512, 512)});
    CHECK(refusal_of(of_device.file()).starts_with("has no memory events."));
}

TEST_CASE("a cut XLA profile is refused", "[imports]") {
    const std::string whole = simple_file();
    for (std::size_t size = 20; size < whole.size(); ++size) {
        INFO(size);
        CHECK(refusal_of(whole.substr(0, size)).starts_with("is cut off or damaged near byte "));
    }
}

TEST_CASE("damaged messages of an XLA profile are refused with their place", "[imports]") {
    const std::string begin = ProtoMessage().number(1, 1).text(2, "/host:CPU").bytes();
    const auto with = [&begin](const std::string& rest) {
        return refusal_of(ProtoMessage().text(1, begin + rest).bytes());
    };
    CHECK(with(std::string("\x1b")).starts_with("has an invalid field near byte "));  // a group
    CHECK(with(std::string("\x02\x00", 2)).starts_with("has an invalid field near byte "));  // 0
    CHECK(with(std::string(11, '\xff')).starts_with("has an invalid number near byte "));
    // A line that claims to be longer than its plane.
    CHECK(with(std::string("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))
              .starts_with("is cut off or damaged near byte "));
    CHECK(with(ProtoMessage().text(2, std::string(100'000, 'x')).bytes())
              .starts_with("has a text longer than 65536 bytes near byte "));
}
